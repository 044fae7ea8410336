// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Read converts an Input into a Problem. If the namespace cannot be resolved, Problem.Blocked or Problem.Failure
// contains the reason.
func Read(in *Input) *Problem {
	p := &Problem{In: in, Policy: in.Policy}
	p.nodes, p.packages, p.apis, p.names = map[Ref]*Node{}, map[string]int32{}, map[content.API]int32{}, map[string]int32{}
	p.offers, p.programs = map[offerKey]*Offer{}, map[string]CELProgram{}
	p.Blocked = readGroup(p)
	readSubscriptions(p)
	if p.Blocked == "" {
		p.Failure = readRest(p)
	}
	p.Stats.Reading = p.TakeSteps(workPerCall + workPerSubscription*len(p.Subs) + workPerCSV*len(p.Existing) + p.Stats.Candidates)
	return p
}

// readRest reads all but the OperatorGroups and the Subscriptions themselves.
func readRest(p *Problem) (failure string) {
	readCatalogs(p)
	if p.Policy.FailOnUnavailableCatalog && len(p.Missing) > 0 {
		return CatalogError(p.Missing)
	}
	readObjects(p)
	readCSVs(p)
	if p.Policy.FailOnInvalidBundle {
		for _, c := range p.Existing {
			if c.Error != "" {
				return fmt.Sprintf("error using catalogsource %s/@existing: %s", p.In.Namespace, c.Error)
			}
		}
	}
	if failure := readTransitions(p); failure != "" {
		return failure
	}
	readPins(p)
	readCandidates(p)
	return unusable(p)
}

// unusable returns the text of a malformed channel or an invalid bundle that could be considered, when the policy lets
// it stop the namespace.
func unusable(p *Problem) string {
	if p.Policy.FailOnMalformedChannel && slices.ContainsFunc(p.Sources, func(s Source) bool { return len(s.Content.Malformed) > 0 }) {
		if text := malformedTouched(p); text != "" {
			return text
		}
	}
	mayBe := func(s Source) bool { return s.Content.Invalid > 0 || (s.Content.HasRules && p.In.CEL != nil) }
	if !p.Policy.FailOnInvalidBundle || !slices.ContainsFunc(p.Sources, mayBe) {
		return ""
	}
	for _, n := range p.Considered() {
		if n.Source == ExistingSource {
			continue
		}
		// OLM reads the requirements of deprecated bundles, too.
		if text := p.Unreadable(n.Entry); text != "" && text != noCompiler {
			return text
		}
	}
	return ""
}

// malformedTouched finds a malformed channel that a Subscription follows or that would offer something for a
// requirement.
func malformedTouched(p *Problem) string {
	for _, s := range p.Subs {
		spec := s.Object.Spec
		if s.Pkg == nil || (s.Current == nil && spec.StartingCSV != "") {
			continue
		}
		for _, ch := range s.Pkg.Channels {
			if ch.Malformed != "" && (spec.Channel == "" || spec.Channel == ch.Name) {
				return ch.Malformed
			}
		}
	}
	for _, n := range p.Considered() {
		for _, q := range n.Entry.Requirements {
			for i := range p.Sources {
				for _, ch := range p.Sources[i].Content.Malformed {
					if offersIn(p, ch, q) {
						return ch.Malformed
					}
				}
			}
		}
	}
	return ""
}

func offersIn(p *Problem, ch *content.ChannelIndex, q *content.Requirement) bool {
	for _, e := range ch.ByName {
		if p.Satisfies(e, q.Predicate) {
			return true
		}
	}
	return false
}

// CatalogError returns OLM's message about catalogs without content. Differs: the message lists several catalogs in
// sorted order.
func CatalogError(missing []Source) string {
	texts := make([]string, len(missing))
	for i, m := range missing {
		texts[i] = fmt.Sprintf("error using catalogsource %s/%s: %s", m.Key.Namespace, m.Key.Name, m.Problem)
	}
	slices.Sort(texts)
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
