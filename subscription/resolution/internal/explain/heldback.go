// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// HeldBackOf returns the reasons why Subscriptions did not get their best candidate. It divides the budget between
// these Subscriptions.
func HeldBackOf(p *View, budget *search.Budget) []HeldBack {
	var list []HeldBack
	waiting := 0
	for _, s := range p.Subs {
		if !p.Scope.Failed(s) && s.Held == "" && !getsBest(p, s) {
			waiting++
		}
	}
	for _, s := range p.Subs {
		switch {
		case p.Scope.Failed(s):
		case s.Held != "":
			list = append(list, standsStill(s))
		case !getsBest(p, s):
			part := search.Budget{Limit: -1}
			if budget.Limit >= 0 {
				part.Limit = budget.Left(budget.Limit) / waiting
			}
			list = append(list, whyNot(p, s, s.Choice.First(), &part))
			budget.Spent += part.Spent + p.TakeSteps(0)
			waiting--
		case s.PinnedOut != nil:
			list = append(list, pinnedOut(p, s))
		}
	}
	return list
}

// getsBest reports whether a Subscription gets its most preferred bundle, from whichever channel.
func getsBest(p *View, s *model.Subscription) bool {
	target := p.target(s)
	return target.Entry != nil && target.Entry.Name == s.Choice.First().Entry.Name
}

// standsStill explains why an installed operator stays whatever else there may be.
func standsStill(s *model.Subscription) HeldBack {
	h := HeldBack{Subscription: s.Object.Name, Code: s.Held, Summary: fmt.Sprintf("Subscription %s stays at %s: %s.", s.Object.Name, s.Current.Object.Name, s.HeldText)}
	switch s.Held {
	case model.ReplacementInProgress:
		h.Blocker = s.Current.Object.Spec.Replaces
	case model.NoUpgradeEdge:
		h.Remedies = []Remedy{missingEdge(s)}
	}
	return h
}

// pinnedOut explains why a version range keeps a Subscription from its best candidate.
func pinnedOut(p *View, s *model.Subscription) HeldBack {
	h := HeldBack{Subscription: s.Object.Name, Candidate: s.PinnedOut.Name, Code: model.Pinned, Blocker: s.Outside(s.PinnedOut)}
	instead := "gets " + p.target(s).Entry.Name
	if s.Current != nil && p.target(s).Entry == s.Current.Entry {
		instead = "stays at " + s.Current.Object.Name
	}
	h.Summary = fmt.Sprintf("Subscription %s %s: %s does not allow %s.", s.Object.Name, instead, h.Blocker, h.Candidate)
	return h
}

// whyNot explains why a candidate was not chosen for a Subscription.
func whyNot(p *View, s *model.Subscription, candidate model.Ref, budget *search.Budget) HeldBack {
	h := HeldBack{Subscription: s.Object.Name, Candidate: candidate.Entry.Name}
	found, verdict := reasonsAgainst(p, s, candidate, budget)
	if len(found.Rules) == 0 {
		h.Code, h.Summary = model.Unknown, reasonNotFound(s, h.Candidate, verdict, budget)
		return h
	}
	h.Rules = rulesOf(p, found)
	h.Code, h.Blocker = classify(h.Rules, s.Object.Name, h.Candidate)
	h.Also = likewise(p, s, found)
	names := someNames(append([]string{h.Candidate}, h.Also...))
	if len(candidatesNamed(s, h.Candidate)) > 1 {
		names = withChannel(candidate)
	}
	h.Summary = fmt.Sprintf("Subscription %s does not get %s: %s.", s.Object.Name, names, causes(p, h.Rules, s.Object.Name))
	h.Remedies = remediesFor(p, remedies, &trouble{rules: h.Rules, found: found, subs: []*model.Subscription{s}, candidate: candidate}, budget)
	return h
}

// reasonsAgainst returns the rules that exclude a candidate of a Subscription. If there are none, it returns the rules
// that exclude it while the earlier Subscriptions keep what they get. The verdict is Satisfiable if nothing excludes
// the candidate.
func reasonsAgainst(p *View, s *model.Subscription, candidate model.Ref, budget *search.Budget) (search.Contradiction, search.Verdict) {
	q := p.Question()
	q.Demands = &search.Demands{Hard: s, Candidate: candidate}
	found, verdict := p.Solver.Reasons(q, nil, budget)
	if verdict != search.Satisfiable {
		return found, verdict
	}
	keep := map[int32]model.Ref{}
	for _, earlier := range p.Subs[:s.Index] {
		if target := p.target(earlier); !p.Scope.Failed(earlier) && target.Entry != nil {
			keep[earlier.Index] = target
		}
	}
	q.Demands = &search.Demands{Hard: s, Candidate: candidate, Keep: keep}
	return p.Solver.Reasons(q, nil, budget)
}

func reasonNotFound(s *model.Subscription, candidate string, verdict search.Verdict, budget *search.Budget) string {
	text := fmt.Sprintf("Subscription %s does not get %s, and the reason was not found", s.Object.Name, candidate)
	if verdict == search.Exhausted {
		text += fmt.Sprintf(" within %d steps", budget.Spent)
	}
	return text + "."
}

// likewise returns the next candidates that a Subscription does not get for the same reason: what its best one
// requires and nothing offers, they require, too.
func likewise(p *View, s *model.Subscription, found search.Contradiction) (names []string) {
	if len(found.Rules) != 1 || p.Rules.Keys[found.Rules[0]].Kind != model.RuleBundle {
		return nil
	}
	key := p.Rules.Keys[found.Rules[0]]
	missing := p.Nodes[key.A].Entry.Requirements[key.B]
	for r := range s.Choice.Refs {
		if r == s.Choice.First() {
			continue
		}
		if r == p.target(s) || !slices.Contains(r.Entry.Requirements, missing) {
			break
		}
		names = append(names, r.Entry.Name)
	}
	return names
}

// classify finds the rule that is most useful to a user.
func classify(rules []Rule, subscription, candidate string) (model.HeldBackCode, string) {
	always := func(*Rule) bool { return true }
	own := func(r *Rule) bool { return r.Bundle == candidate }
	other := func(r *Rule) bool { return r.Subscription != subscription }
	unmet := func(r *Rule) bool { return len(r.Objects) == 0 }
	need := func(r *Rule) string { return r.Need }
	bundle := func(r *Rule) string { return r.Bundle }
	sub := func(r *Rule) string { return r.Subscription }
	wanting := func(r *Rule) string {
		if own(r) {
			return r.Need
		}
		return r.Bundle // another operator needs what the candidate is not
	}
	for _, row := range []struct {
		kind    model.RuleKind
		holds   func(*Rule) bool
		code    model.HeldBackCode
		blocker func(*Rule) string
	}{
		{model.BundleDeprecated, own, model.CandidateDeprecated, bundle},
		{model.BundleInvalid, own, model.CandidateInvalid, bundle},
		{model.BundleExcluded, own, model.CandidateExcluded, bundle},
		{model.KeepsCandidate, always, model.BlockedBySubscription, sub},
		{model.SubscriptionExists, other, model.BlockedBySubscription, sub},
		{model.BundleRequires, unmet, model.RequirementUnmet, need},
		{model.OnePerAPI, always, model.ProvidedByOther, need},
		{model.OnePerName, always, model.NameConflict, bundle},
		{model.BundleRequires, always, model.RequirementUnmet, wanting},
		{model.OnePerPackage, always, model.PackageConflict, func(r *Rule) string { return r.Package }},
		{model.CSVExists, always, model.ProvidedByOther, bundle},
	} {
		for i := range rules {
			if r := &rules[i]; r.Kind == row.kind && row.holds(r) {
				return row.code, row.blocker(r)
			}
		}
	}
	return model.Unknown, ""
}
