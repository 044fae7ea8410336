// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// HeldBackOf returns the reasons why Subscriptions did not get their best candidate. It divides the budget between
// the Subscriptions for which it has to search.
func HeldBackOf(v *search.View, budget *search.Budget) (list []model.HeldBack) {
	searches := func(s *model.Subscription) bool { return !v.Scope.Failed(s) && s.Held == "" && !getsBest(v, s) }
	waiting := len(slices.DeleteFunc(slices.Clone(v.Subs), func(s *model.Subscription) bool { return !searches(s) }))
	for _, s := range v.Subs {
		switch {
		case v.Scope.Failed(s):
		case s.Held != "":
			list = append(list, standsStill(s))
		case searches(s):
			part := search.Budget{Limit: -1}
			if budget.Limit >= 0 {
				part.Limit = budget.Left(budget.Limit) / waiting
			}
			list = append(list, whyNotBest(v, s, &part))
			budget.Spent += part.Spent + v.TakeSteps(0)
			waiting--
		case s.PinnedOut != nil:
			list = append(list, pinnedOut(v, s))
		}
	}
	return list
}

// getsBest reports whether a Subscription gets its most preferred bundle, from any channel.
func getsBest(v *search.View, s *model.Subscription) bool {
	target := v.Target(s)
	return target.Entry != nil && target.Entry.Name == s.Choice.First().Entry.Name
}

// standsStill explains why an installed operator remains independently of the candidates.
func standsStill(s *model.Subscription) model.HeldBack {
	h := model.HeldBack{Subscription: s.Object.Name, Code: s.Held, Summary: s.HeldSentence()}
	switch s.Held {
	case model.ReplacementInProgress:
		h.Blocker = s.Current.Object.Spec.Replaces
	case model.NoUpgradeEdge:
		h.Remedies = []model.Remedy{missingEdge(s)}
	}
	return h
}

// pinnedOut explains that a version range excludes the best candidate of a Subscription.
func pinnedOut(v *search.View, s *model.Subscription) model.HeldBack {
	h := model.HeldBack{Subscription: s.Object.Name, Candidate: s.PinnedOut.Name, Code: model.Pinned, Blocker: s.Outside(s.PinnedOut)}
	instead := "gets " + v.Target(s).Entry.Name
	if s.Current != nil && v.Target(s).Entry == s.Current.Entry {
		instead = "stays at " + s.Current.Object.Name
	}
	h.Summary = fmt.Sprintf("Subscription %s %s: %s does not allow %s.", h.Subscription, instead, h.Blocker, h.Candidate)
	return h
}

// whyNotBest explains why a Subscription does not get its best candidate.
func whyNotBest(v *search.View, s *model.Subscription, budget *search.Budget) model.HeldBack {
	best := s.Choice.First()
	found, verdict := v.ReasonsAgainst(s, best, budget)
	if len(found.Rules) == 0 {
		return reasonNotFound(s, best.Entry.Name, verdict, budget)
	}
	also := likewise(v, s, found)
	names := someNames(append([]string{best.Entry.Name}, also...))
	if len(s.Choice.Named(best.Entry.Name)) > 1 {
		names = withChannel(best)
	}
	h := excludedBy(v, s, found, best.Entry.Name, names)
	h.Also = also
	c := conflict{rules: h.Rules, found: found, subs: []*model.Subscription{s}, candidate: best}
	h.Remedies = c.remedies(v, causes, budget)
	return h
}

// excludedBy explains that the rules of a Contradiction exclude a candidate. named is the candidate as the Summary names
// it.
func excludedBy(v *search.View, s *model.Subscription, found search.Contradiction, candidate, named string) model.HeldBack {
	h := model.HeldBack{Subscription: s.Object.Name, Candidate: candidate, Rules: v.RulesOf(found.Rules, v.Scope)}
	h.Code, h.Blocker = classify(h.Rules, s.Object.Name, candidate)
	h.Summary = fmt.Sprintf("Subscription %s does not get %s: %s.", s.Object.Name, named, describe(v, h.Rules, s.Object.Name))
	return h
}

func reasonNotFound(s *model.Subscription, candidate string, verdict search.Satisfiability, budget *search.Budget) model.HeldBack {
	text := fmt.Sprintf("Subscription %s does not get %s, and the reason was not found", s.Object.Name, candidate)
	if verdict == search.Exhausted {
		text += fmt.Sprintf(" within %d steps", budget.Spent)
	}
	return model.HeldBack{Subscription: s.Object.Name, Candidate: candidate, Code: model.Unknown, Summary: text + "."}
}

// likewise returns the next candidates that a Subscription does not get because they also have the unmet requirement of
// its best candidate.
func likewise(v *search.View, s *model.Subscription, found search.Contradiction) (names []string) {
	key := v.Rules.Keys[found.Rules[0]]
	if len(found.Rules) != 1 || key.Kind != model.RuleBundle {
		return nil
	}
	missing := v.Nodes[key.A].Entry.Requirements[key.B]
	for r := range s.Choice.Refs {
		if r == s.Choice.First() {
			continue
		}
		if r == v.Target(s) || !slices.Contains(r.Entry.Requirements, missing) {
			break
		}
		names = append(names, r.Entry.Name)
	}
	return names
}
