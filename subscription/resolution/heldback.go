// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
)

// heldBack finds out why Subscriptions did not get their best candidate.
func (p *problem) heldBack() []HeldBack {
	var list []HeldBack
	for _, s := range p.subs {
		switch {
		case s.failed:
		case s.held != "":
			h := HeldBack{Subscription: s.object.Name, Code: s.held, Summary: fmt.Sprintf("Subscription %s stays at %s: %s.", s.object.Name, s.current.object.Name, s.heldText)}
			if s.held == ReplacementInProgress {
				h.Blocker = s.current.object.Spec.Replaces
			}
			list = append(list, h)
		case s.target != s.choice.first():
			list = append(list, p.whyNot(s, s.choice.first()))
		}
	}
	return list
}

// whyNot explains why a candidate was not chosen for a Subscription: the rules
// that exclude it; where there are none, those together with what earlier
// Subscriptions keep.
func (p *problem) whyNot(s *subscription, candidate ref) HeldBack {
	h := HeldBack{Subscription: s.object.Name, Candidate: candidate.entry.name}
	set, budget := p.contradiction(&demands{hard: s, candidate: candidate})
	if len(set.rules) == 0 && !budget {
		keep := map[int32]ref{}
		for _, earlier := range p.subs[:s.index] {
			if !earlier.failed && earlier.target.entry != nil {
				keep[earlier.index] = earlier.target
			}
		}
		set, budget = p.contradiction(&demands{hard: s, candidate: candidate, keep: keep})
	}
	if len(set.rules) == 0 {
		h.Code = Unknown
		h.Summary = fmt.Sprintf("Subscription %s does not get %s, and the reason was not found", s.object.Name, h.Candidate)
		if budget {
			h.Summary += " within the step budget"
		}
		h.Summary += "."
		return h
	}
	h.Rules = p.words(set)
	h.Code, h.Blocker = classify(h.Rules, s.object.Name, h.Candidate)
	h.Summary = fmt.Sprintf("Subscription %s does not get %s: %s.", s.object.Name, h.Candidate, p.causes(h.Rules, s.object.Name))
	return h
}

// classify finds the rule that matters most to a person.
func classify(rules []Rule, subscription, candidate string) (HeldBackCode, string) {
	find := func(kind RuleKind, holds func(*Rule) bool) *Rule {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Kind == kind && (holds == nil || holds(&r)) })
		if i < 0 {
			return nil
		}
		return &rules[i]
	}
	own := func(r *Rule) bool { return r.Bundle == candidate }
	switch {
	case find(BundleDeprecated, own) != nil:
		return CandidateDeprecated, candidate
	case find(BundleInvalid, own) != nil:
		return CandidateInvalid, candidate
	case find(BundleExcluded, own) != nil:
		return CandidateExcluded, candidate
	}
	if r := find(KeepsCandidate, nil); r != nil {
		return BlockedBySubscription, r.Subscription
	}
	if r := find(SubscriptionExists, func(r *Rule) bool { return r.Subscription != subscription }); r != nil {
		return BlockedBySubscription, r.Subscription
	}
	if r := find(BundleRequires, func(r *Rule) bool { return len(r.Objects) == 0 }); r != nil {
		return RequirementUnmet, r.Need
	}
	if r := find(OnePerAPI, nil); r != nil {
		return ProvidedByOther, r.Need
	}
	if r := find(OnePerName, nil); r != nil {
		return NameConflict, r.Bundle
	}
	if r := find(BundleRequires, nil); r != nil {
		return RequirementUnmet, r.Need
	}
	if r := find(OnePerPackage, nil); r != nil {
		return PackageConflict, r.Package
	}
	if r := find(CSVExists, nil); r != nil {
		return ProvidedByOther, r.Bundle
	}
	return Unknown, ""
}
