// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// AnnotationVersionRange is an annotation of a Subscription that restricts its operator to a range of versions. New
// installations and upgrades stay inside the range. The range does not allow anything that the spec of the
// Subscription excludes. It does not affect the installed version, or InstallPlans that exist already.
const AnnotationVersionRange = olmcore.KeyPrefix + "version-range"

// Pin restricts the operator of a Subscription to a version range, like the annotation AnnotationVersionRange. If a
// Subscription has several ranges, all of them must contain the version.
type Pin struct {
	// Subscription is the name of the Subscription.
	Subscription string
	// Range is a version range with the syntax of a bundle's skipRange. "1.2.0" allows only that version, and
	// "!=1.3.0" excludes one version. "<=1.2.0" sets a maximum, and ">=1.2.0 <2.0.0" sets both bounds.
	Range string
}

// pin is a Pin that was read.
type pin struct {
	in *VersionRange
	// from says where it stands.
	from string
}

const fromAnnotation, fromInput = "annotation " + AnnotationVersionRange, "Input.Pins"

// readPins reads what holds Subscriptions inside version ranges.
func readPins(p *Problem) {
	for _, s := range p.Subs {
		if text, ok := s.Object.Annotations[AnnotationVersionRange]; ok {
			readPin(p, s, text, fromAnnotation)
		}
		for _, pin := range p.In.Pins {
			if pin.Subscription == s.Object.Name {
				readPin(p, s, pin.Range, fromInput)
			}
		}
		if len(s.pins) > 0 || s.invalidPin != "" {
			p.pinned = append(p.pinned, s)
		}
	}
	for _, pin := range p.In.Pins {
		if !slices.ContainsFunc(p.Subs, func(s *Subscription) bool { return s.Object.Name == pin.Subscription }) {
			p.Report(olmcore.Warning, ReasonInvalidPin, p.SubscriptionRef(pin.Subscription), "",
				"there is no Subscription %s that the version range %q could hold", pin.Subscription, pin.Range)
		}
	}
}

func readPin(p *Problem, s *Subscription, text, from string) {
	in, err := ParseRange(text)
	if err == nil {
		s.pins = append(s.pins, pin{in, from})
		return
	}
	s.invalidPin = fmt.Sprintf("the version range %q (%s) cannot be read: %v", Cut(text, 200), from, err)
	path := ""
	if from == fromAnnotation {
		path = fmt.Sprintf("metadata.annotations[%q]", AnnotationVersionRange)
	}
	p.Report(olmcore.Warning, ReasonInvalidPin, p.SubscriptionRef(s.Object.Name), path,
		"%s; nothing is installed or upgraded for the Subscription", s.invalidPin)
}

// Outside returns a description of the version range that excludes a catalog entry. If a range of the Subscription
// cannot be read, Outside describes that range. It returns "" if no range excludes the entry.
func (s *Subscription) Outside(e *Entry) string {
	if s.invalidPin != "" {
		return s.invalidPin
	}
	for _, pin := range s.pins {
		if !e.HasVersion || !pin.in.Contains(e.Version) {
			return fmt.Sprintf("the version range %q (%s)", pin.in.Text, pin.from)
		}
	}
	return ""
}

// withinPins takes out of a Subscription's candidates what its ranges do not allow.
func withinPins(s *Subscription) {
	if len(s.pins) == 0 {
		return
	}
	best := s.Upgrades
	s.Upgrades = slices.DeleteFunc(slices.Clone(best), func(e *Entry) bool { return s.Outside(e) != "" })
	if len(best) > 0 && (len(s.Upgrades) == 0 || s.Upgrades[0] != best[0]) {
		s.PinnedOut = best[0]
	}
}

// pinned says which Subscription of an entry's package must not have it: nothing else may bring it either. "" is none.
func pinned(p *Problem, e *Entry) string {
	for _, s := range p.pinned {
		if s.Object.Spec.Package == e.Channel.Pkg.Name {
			if text := s.Outside(e); text != "" {
				return fmt.Sprintf("Subscription %s does not allow %s: %s", s.Object.Name, e.Name, text)
			}
		}
	}
	return ""
}
