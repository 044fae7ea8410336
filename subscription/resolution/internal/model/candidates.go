// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// readCandidates finds what each Subscription can end with, in order of preference.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, getSubscriptionVariables.
func readCandidates(p *Problem) {
	p.subsOver = map[*PackageIndex][]*Subscription{}
	choices, offers := make([]Choice, len(p.Subs)), make([]Offer, len(p.Subs))
	for i, s := range p.Subs {
		offers[i].Group = -1
		choices[i] = Choice{Sub: s, Owner: s.Index, Offer: &offers[i]}
		s.Choice = &choices[i]
		candidatesOf(p, s)
		if s.Pkg != nil {
			samePackage := s.Current == nil || slices.ContainsFunc(s.Current.Entry.Packages,
				func(f PackageFact) bool { return f.Name == s.Pkg.Name })
			if samePackage {
				s.Choice.Group = number(p, p.packages, s.Pkg.Name, Group{Kind: OnePerPackage, Name: s.Pkg.Name})
			}
			if s.Current != nil {
				p.subsOver[s.Pkg] = append(p.subsOver[s.Pkg], s)
			}
		}
		p.Stats.Candidates += s.Choice.Total
	}
}

func candidatesOf(p *Problem, s *Subscription) {
	if s.invalidPin != "" && s.Held == "" {
		if s.Current == nil {
			s.Impossible, s.ImpossibleCode = s.invalidPin, PinInvalid
			return
		}
		s.Held, s.HeldText = PinInvalid, s.invalidPin
	}
	code, text := locate(p, s)
	if code == "" && s.Held == "" {
		code, text = catalogCandidates(p, s)
	}
	if code != "" && s.Held == "" {
		if s.Current == nil || p.Policy.FailOnMissingCatalog {
			s.Impossible, s.ImpossibleCode = text, code
			return
		}
		s.Held, s.HeldText = code, text
	}
	if s.Current != nil {
		s.Choice.add(ExistingSource, s.Current.Choice.Segments[0].Entries)
	} else if p.Policy.AdoptSameBundle {
		adoptable(p, s)
	}
}

// locate finds the catalog and the package of a Subscription. A code says what is missing, with OLM's text.
func locate(p *Problem, s *Subscription) (code HeldBackCode, text string) {
	spec, name := s.Object.Spec, s.Object.Name
	switch {
	case spec.Package == "":
		return PackageMissing, fmt.Sprintf("subscription %s has no package", name)
	case spec.CatalogSource == "" || spec.CatalogSourceNamespace == "":
		return CatalogMissing, fmt.Sprintf("subscription %s has no catalog", name)
	}
	index := p.sourceOf(spec)
	if index == NoSource || len(p.Sources[index].Content.Sorted) == 0 {
		return CatalogMissing, fmt.Sprintf("no operators found from catalog %s in namespace %s referenced by subscription %s",
			spec.CatalogSource, spec.CatalogSourceNamespace, name)
	}
	s.Source = index
	s.Pkg = p.Sources[index].Content.ByName[spec.Package]
	if s.Pkg == nil || !hasEntries(s.Pkg) {
		s.Pkg = nil
		return PackageMissing, fmt.Sprintf("no operators found in package %s in the catalog referenced by subscription %s", spec.Package, name)
	}
	return "", ""
}

func hasEntries(p *PackageIndex) bool {
	return slices.ContainsFunc(p.Channels, func(ch *ChannelIndex) bool { return len(ch.ByName) > 0 })
}

// catalogCandidates adds the entries of the Subscription's package and channel.
func catalogCandidates(p *Problem, s *Subscription) (code HeldBackCode, text string) {
	spec, name := s.Object.Spec, s.Object.Name
	channels := s.Pkg.Channels
	if spec.Channel != "" {
		ch := s.Pkg.Channel(spec.Channel)
		if ch == nil || len(ch.ByName) == 0 {
			return ChannelMissing, fmt.Sprintf("no operators found in channel %s of package %s in the catalog referenced by subscription %s",
				spec.Channel, spec.Package, name)
		}
		channels = []*ChannelIndex{ch}
	}
	if e := unfinishedFirst(p, s, channels); e != nil {
		s.Upgrades = append(s.Upgrades, e)
		return offerCatalog(p, s)
	}
	if s.Current == nil && spec.StartingCSV != "" {
		for _, ch := range channels {
			if e := ch.ByName[spec.StartingCSV]; e != nil {
				s.Upgrades = append(s.Upgrades, e)
			}
		}
		if len(s.Upgrades) == 0 {
			return ChannelMissing, fmt.Sprintf(
				"no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s",
				spec.StartingCSV, spec.Channel, spec.Package, name)
		}
		return offerCatalog(p, s)
	}
	if i := slices.IndexFunc(channels, func(ch *ChannelIndex) bool { return ch.Malformed == "" }); i < 0 {
		return ChannelMalformed, channels[0].Malformed
	}
	switch {
	case s.Current != nil:
		upgrades(p, s, channels)
	case spec.Channel != "":
		s.Upgrades = channels[0].Chain
	default:
		s.Upgrades = s.Pkg.Chains
	}
	return offerCatalog(p, s)
}

// unfinishedFirst returns the entry of a version that exists and that an InstallPlan did not finish for a Subscription
// which has no version else; nil for none. A Subscription that never had an InstallPlan left none unfinished.
func unfinishedFirst(p *Problem, s *Subscription, channels []*ChannelIndex) *Entry {
	status := &s.Object.Status
	if p.Policy.TransitionAsFreestanding || s.Current != nil || status.InstalledCSV != "" || status.InstallPlanGeneration == 0 {
		return nil
	}
	for _, c := range p.Existing {
		if !isUnfinished(s, c) {
			continue
		}
		for _, ch := range channels {
			if e := ch.ByName[c.Object.Name]; e != nil {
				s.resumes = c
				return e
			}
		}
	}
	return nil
}

// offerCatalog adds the catalog's candidates to the choice: the one whose plan is on its way first, and without what a
// version range does not allow.
func offerCatalog(p *Problem, s *Subscription) (code HeldBackCode, text string) {
	withinPins(s)
	if s.resumes != nil {
		if i := slices.IndexFunc(s.Upgrades, func(e *Entry) bool { return e.Name == s.resumes.Object.Name }); i >= 0 {
			s.Upgrades, s.resumes.LeftOut = s.Upgrades[i:i+1], true // the version exists; its plan is made again
		}
	}
	if bundle := p.In.InFlight[s.Object.Name]; bundle != "" {
		if i := slices.IndexFunc(s.Upgrades, func(e *Entry) bool { return e.Name == bundle }); i > 0 {
			reordered := make([]*Entry, 0, len(s.Upgrades))
			reordered = append(append(append(reordered, s.Upgrades[i]), s.Upgrades[:i]...), s.Upgrades[i+1:]...)
			s.Upgrades = reordered
		}
	}
	s.Choice.add(s.Source, s.Upgrades)
	switch {
	case s.Choice.Total > 0 || s.Current != nil:
		return "", ""
	case s.PinnedOut != nil:
		return Pinned, fmt.Sprintf("no operators found in %s in package %s in the catalog referenced by subscription %s",
			s.Outside(s.PinnedOut), s.Pkg.Name, s.Object.Name)
	}
	return PackageMissing, fmt.Sprintf("no operators found matching the criteria of subscription %s", s.Object.Name)
}

// upgrades collects the entries with an upgrade edge from the current operator.
func upgrades(p *Problem, s *Subscription, channels []*ChannelIndex) {
	current := s.Current.Entry
	atHead := false
	for _, ch := range channels {
		chain := ch.Chain
		installed := ch.ByName[current.Name]
		ordered := installed != nil && installed.Position >= 0
		if ordered && installed.Position == 0 {
			atHead = true
		}
		if ordered && !p.Policy.AllowBackwardSkipRange {
			chain = chain[:installed.Position]
		}
		for _, e := range chain {
			if upgradesFrom(p, e, current, ordered) {
				s.Upgrades = append(s.Upgrades, e)
			}
		}
	}
	if len(s.Upgrades) == 0 && !atHead {
		s.Held = NoUpgradeEdge
		s.HeldText = missingUpgrade(s, channels)
	}
}

// upgradesFrom reports whether there is an upgrade edge from an installed operator to e. ordered: the chain of e's
// channel says that e is newer.
//
// Differs: unless the policy says otherwise, a skipRange never leads to the installed operator itself or to an older
// one.
func upgradesFrom(p *Problem, e, installed *Entry, ordered bool) bool {
	switch edgeFrom(installed, e) {
	case "":
		return false
	case hasSkipRangeFor:
		return p.Policy.AllowBackwardSkipRange || ordered || (e.HasVersion && e.Version.GT(installed.Version))
	}
	return true
}

// adoptable offers an existing operator without a Subscription as the last candidate.
func adoptable(p *Problem, s *Subscription) {
	for _, e := range s.Upgrades {
		c := p.ByName[e.Name]
		if c == nil || c.LeftOut || len(c.Owners) > 0 || c.Entry.Pkg != e.Pkg || !c.Entry.Version.Equals(e.Version) {
			continue
		}
		if _, annotated := c.Object.Annotations[olmcore.AnnotationProperties]; annotated {
			s.Choice.add(ExistingSource, []*Entry{c.Entry})
			return
		}
	}
}

// maxDeadEnds is the number of dead ends that a text names.
const maxDeadEnds = 3

// missingUpgrade explains why none of the channels upgrades the installed operator of a Subscription. A dead end is an
// entry that replaces or skips the installed operator, or has a skipRange for it, but is no candidate. The text names
// the dead ends and the reason for each.
func missingUpgrade(s *Subscription, channels []*ChannelIndex) string {
	installed := s.Current.Entry
	where := "channel " + channels[0].Name
	if len(channels) > 1 {
		where = "package " + s.Pkg.Name
	}
	var deadEnds []*Entry
	for _, ch := range channels {
		for _, e := range ch.ByName {
			if e.Name != installed.Name && edgeFrom(installed, e) != "" {
				deadEnds = append(deadEnds, e)
			}
		}
	}
	if len(deadEnds) == 0 {
		return fmt.Sprintf("no entry of %s replaces, skips or has a skipRange for %s", where, installed.Name)
	}
	slices.SortFunc(deadEnds, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Channel.Name, b.Channel.Name))
	})
	var texts []string
	for _, e := range deadEnds[:min(len(deadEnds), maxDeadEnds)] {
		texts = append(texts, fmt.Sprintf("%s %s it, but %s", e.Name, edgeFrom(installed, e), whyNoCandidate(e)))
	}
	if more := len(deadEnds) - maxDeadEnds; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more cannot be reached either", more))
	}
	return fmt.Sprintf("%s; no other entry of %s replaces, skips or has a skipRange for it", strings.Join(texts, "; "), where)
}

// edge is the kind of an upgrade edge. Its value is used as a verb in messages.
type edge string

// These are the kinds of upgrade edges. The empty edge means that there is none.
const (
	replaces        edge = "replaces"
	skips           edge = "skips"
	hasSkipRangeFor edge = "has a skipRange for"
)

// edgeFrom returns the upgrade edge from an installed operator to an entry. It returns "" if there is no such edge.
func edgeFrom(installed, e *Entry) edge {
	switch {
	case e.Replaces != "" && e.Replaces == installed.Name:
		return replaces
	case slices.Contains(e.Skips, installed.Name):
		return skips
	case e.Skip != nil && e.Skip.Contains(installed.Version):
		return hasSkipRangeFor
	}
	return ""
}

// whyNoCandidate returns the reason why an entry is not a candidate, although it has an upgrade edge from the installed
// operator.
func whyNoCandidate(e *Entry) string {
	ch := e.Channel
	switch {
	case ch.Malformed != "":
		return "the upgrade graph of channel " + ch.Name + " is broken"
	case e.Stranded:
		return fmt.Sprintf("the head of channel %s, %s, does not lead to %s", ch.Name, ch.Chain[0].Name, e.Name)
	case e.Position < 0:
		return fmt.Sprintf("%s skips %s", ch.SkippedBy(e), e.Name)
	}
	return e.Name + " is not newer"
}

// HeldSentence returns a sentence with the reason why the installed operator remains, independently of the candidates.
func (s *Subscription) HeldSentence() string {
	return fmt.Sprintf("Subscription %s stays at %s: %s.", s.Object.Name, s.Current.Object.Name, s.HeldText)
}

// NotCandidate explains why an entry of a channel that the Subscription follows is not one of its candidates. It
// returns the kind of reason and a sentence.
func (s *Subscription) NotCandidate(e *Entry) (HeldBackCode, string) {
	name, installed := s.Object.Name, s.Current
	ch := e.Channel
	switch {
	case s.Held != "":
		return s.Held, s.HeldSentence()
	case installed == nil && s.Object.Spec.StartingCSV != "":
		return LessPreferred, fmt.Sprintf("Subscription %s asks to start with %s.", name, s.Object.Spec.StartingCSV)
	case e.Stranded:
		return ChannelMalformed, fmt.Sprintf("%s is stranded: the head of channel %s does not lead to it.", e.Name, ch.Name)
	case e.Position < 0 && ch.Malformed == "":
		return Skipped, fmt.Sprintf("%s is skipped by %s of channel %s.", e.Name, ch.SkippedBy(e), ch.Name)
	case s.Outside(e) != "":
		return Pinned, fmt.Sprintf("Subscription %s may not have %s: %s does not allow it.", name, e.Name, s.Outside(e))
	case installed == nil:
		return ChannelMalformed, fmt.Sprintf("The upgrade graph of channel %s is broken: %s.", ch.Name, ch.Malformed)
	}
	why := "it neither replaces nor skips it, nor has a skipRange for its version"
	if link := edgeFrom(installed.Entry, e); link != "" {
		why = fmt.Sprintf("it %s %s, but %s", link, installed.Object.Name, whyNoCandidate(e))
	}
	return NoUpgradeEdge, fmt.Sprintf("There is no upgrade from %s to %s: %s.", installed.Object.Name, e.Name, why)
}

// Followed returns the channels that the Subscription follows.
func (s *Subscription) Followed() []*ChannelIndex {
	if s.Pkg == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Pkg.Channels), func(ch *ChannelIndex) bool {
		return s.Object.Spec.Channel != "" && s.Object.Spec.Channel != ch.Name
	})
}

// FollowedEntry returns the entry of a bundle in the first channel that has it and that the Subscription follows. It
// returns nil if there is no such channel.
func (s *Subscription) FollowedEntry(bundle string) *Entry {
	for _, ch := range s.Followed() {
		if e := ch.ByName[bundle]; e != nil {
			return e
		}
	}
	return nil
}

// BundleNames returns the sorted names of the bundles in the channels that the Subscription follows.
func (s *Subscription) BundleNames() (names []string) {
	for _, ch := range s.Followed() {
		names = slices.AppendSeq(names, maps.Keys(ch.ByName))
	}
	slices.Sort(names)
	return names
}

// HeadToReach returns the name of the head of the first channel that the Subscription follows and that has a Chain. It
// returns "" if there is no such channel.
func (s *Subscription) HeadToReach() string {
	for _, ch := range s.Followed() {
		if len(ch.Chain) > 0 {
			return ch.Chain[0].Name
		}
	}
	return ""
}
