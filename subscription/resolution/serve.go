// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// service is how far the Subscriptions of a namespace can be served.
type service struct {
	search.View
	// picks are the solution for those that are not left out, if any is served.
	picks  []search.Pick
	served bool
	// cores are why some are not served, found what they were made of.
	cores []Core
	found []search.Contradiction
	// failures are those of the Subscriptions that are left out, by name.
	failures map[string]*olmcore.ResolutionFailure
	limits   limits
}

// serve looks for a solution, leaving out the Subscriptions that cannot have one.
func (s *service) serve() {
	for s.look() {
	}
	// What helps one is known when it is known who else is left out.
	for i := range s.cores {
		if found := s.found[i]; len(found.Rules) > 0 {
			s.cores[i].Remedies = explain.RemediesFor(&s.View, &s.cores[i], found, &s.limits.explaining)
		}
	}
}

// look looks for a solution once. true: Subscriptions were left out, and there may be one now.
func (s *service) look() (again bool) {
	share := s.limits.share()
	answer := s.Solver.Decide(s.Question(), &share)
	s.limits.spent += share.Spent
	switch answer.Satisfiability {
	case search.Satisfiable:
		s.Targets = targets(s.Problem, answer.Picks)
		if unsafe, found := s.unsafe(answer.Picks); found {
			return s.leaveOut(unsafe, search.Contradiction{})
		}
		s.done(answer.Picks)
		return false
	case search.Exhausted:
		return s.leaveOutTooHard()
	}
	found, _ := s.Solver.Reasons(s.Question(), answer.Conflict, &s.limits.explaining)
	switch {
	case len(found.Rules) == 0:
		return s.leaveOutTooHard()
	case s.waive(found):
		return true
	}
	core := explain.CoreOf(&s.View, found)
	s.limits.explaining.Spent += s.TakeSteps(0)
	return s.leaveOut(core, found)
}

// done takes a solution, unless no Subscription is left that it is for, or the policy does not let the others go on.
func (s *service) done(picks []search.Pick) {
	served := slices.ContainsFunc(s.Subs, func(sub *model.Subscription) bool { return !s.Scope.Failed(sub) })
	if len(s.cores) == 0 || served && !s.Policy.AllOrNothing {
		s.picks, s.served = picks, true
		return
	}
	s.Targets = nil
}

// leaveOut takes the Subscriptions of a core out of the problem; what they have installed must stay. false: the core
// names none.
func (s *service) leaveOut(core Core, why search.Contradiction) (found bool) {
	s.Targets = nil
	s.cores, s.found = append(s.cores, core), append(s.found, why)
	for _, sub := range s.Subs {
		if !s.Scope.Failed(sub) && slices.Contains(core.Subscriptions, sub.Object.Name) {
			found = true
			s.Scope.LeaveOut(sub)
			s.failures[sub.Object.Name] = failureOf(&core)
		}
	}
	return found
}

// waive gives up the requirements in a contradiction that no Subscription is part of, and whose operators stay only
// because their Subscription failed.
func (s *service) waive(found search.Contradiction) bool {
	var waived []model.RuleKey
	for _, id := range found.Rules {
		switch key := s.Rules.Keys[id]; key.Kind {
		case model.RuleSubscription:
			return false
		case model.RuleBundle:
			n := s.Nodes[key.A]
			if n.Source == model.ExistingSource && s.Scope.Kept(n.Entry) != nil {
				waived = append(waived, key)
			}
		}
	}
	for _, key := range waived {
		s.Scope.Waive(key)
	}
	return len(waived) > 0
}

// leaveOutTooHard leaves out the Subscriptions with which the others are too hard to decide, each for itself; when
// there has been too much work, all that are left.
func (s *service) leaveOutTooHard() bool {
	s.Solver = &search.Solver{} // what is left may be easy
	rest := slices.DeleteFunc(slices.Clone(s.Subs), s.Scope.Failed)
	if len(rest) == 0 || s.limits.steps >= 0 && s.limits.spent > 2*together*s.limits.steps {
		return s.leaveOut(explain.GivenUp(&s.View, rest, s.limits.steps), search.Contradiction{})
	}
	share := s.limits.shareOf(len(rest))
	undecided, contradicts, spent := search.OneByOne(s.Question(), share)
	s.limits.spent += spent
	if len(undecided) == 0 {
		if contradicts == nil {
			contradicts = rest[len(rest)-1]
		}
		undecided = []*model.Subscription{contradicts}
	}
	for _, sub := range undecided {
		s.leaveOut(explain.GivenUp(&s.View, []*model.Subscription{sub}, share), search.Contradiction{})
	}
	return true
}

// targets notes what a solution gives each Subscription.
func targets(p *model.Problem, picks []search.Pick) []model.Ref {
	list := make([]model.Ref, len(p.Subs))
	for _, pick := range picks {
		switch sub := pick.Choice.Sub; {
		case sub == nil:
		case pick.Node != nil:
			list[sub.Index] = pick.Node.Ref
		default: // it has what was selected before
			for _, earlier := range picks {
				if earlier.Node != nil && pick.Choice.Contains(earlier.Node.Ref) {
					list[sub.Index] = earlier.Node.Ref
					break
				}
			}
		}
	}
	return list
}

// unsafe looks for a solution that catalogs without content could make wrong: a new dependency, while a catalog that
// would come before its own is missing, or a new operator that is not the best one because a dependency of the better
// ones is nowhere to be found.
//
// Differs: OLM stops for every catalog without content.
func (s *service) unsafe(picks []search.Pick) (Core, bool) {
	if len(s.Missing) == 0 {
		return Core{}, false
	}
	if core, found := s.unsafeDependency(picks); found {
		return core, true
	}
	return s.unsafeNewOperator()
}

// unsafeDependency looks for a new dependency, while a catalog that would come before its own is missing.
func (s *service) unsafeDependency(picks []search.Pick) (Core, bool) {
	selectedFor := map[*model.Node]*model.Choice{}
	for _, pick := range picks {
		n, c := pick.Node, pick.Choice
		if n == nil {
			continue
		}
		selectedFor[n] = c
		if c.Parent == nil || n.Source == model.ExistingSource || n.Source == c.Parent.Source {
			continue
		}
		for _, m := range s.Missing {
			if m.Priority >= s.Sources[n.Source].Priority {
				for c.Parent != nil {
					c = selectedFor[c.Parent]
				}
				return s.unavailable(c, m), true
			}
		}
	}
	return Core{}, false
}

// unsafeNewOperator looks for a new operator that is not the best one because no catalog has a dependency of the better
// ones.
func (s *service) unsafeNewOperator() (Core, bool) {
	for _, sub := range s.Subs {
		target := s.Targets[sub.Index]
		if s.Scope.Failed(sub) || sub.Current != nil || target.Entry == nil || target == sub.Choice.First() {
			continue
		}
		for _, e := range sub.Upgrades {
			if e == target.Entry {
				break
			}
			n := s.Known(model.Ref{Source: sub.Source, Entry: e})
			if n != nil && n.Dead >= 0 {
				return s.unavailable(sub.Choice, s.Missing[0]), true
			}
		}
	}
	return Core{}, false
}

// unavailable says that an answer depends on a catalog without content.
func (s *service) unavailable(c *model.Choice, m model.Source) Core {
	text := model.CatalogError([]model.Source{m})
	core := Core{Error: true, Minimal: true, Message: model.CatalogError(s.Missing)}
	core.Rules = []Rule{{Kind: CatalogUnavailable, Catalog: m.Key, Text: text}}
	who := "an existing operator"
	if c.Sub != nil {
		core.Subscriptions = []string{c.Sub.Object.Name}
		core.Rules = append(core.Rules, s.Exists(c.Sub))
		who = "Subscription " + c.Sub.Object.Name
	}
	slices.SortFunc(core.Rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	core.Summary = fmt.Sprintf("The answer for %s depends on what catalog %s/%s offers, and its content is not available: %s.", who,
		m.Key.Namespace, m.Key.Name, m.Problem)
	core.Remedies = []Remedy{{Code: RepairCatalog, Object: m.Key.String(),
		Message: "Make catalog " + m.Key.String() + " available again, or delete its CatalogSource."}}
	return core
}

// limits are the budgets of one call, in steps.
type limits struct {
	steps                int // for one Subscription; negative: no bound
	spent                int // on deciding
	explaining, heldBack search.Budget
}

const (
	// together is how many times the budget of one Subscription all of them may take before their shares get smaller,
	// to leastShare each.
	together, leastShare = 8, 2000
	// explainingEach is how many steps each Subscription adds to the budgets that explaining has for all of them.
	explainingEach = 2000
)

func newLimits(p *model.Problem) limits {
	l := limits{steps: p.Policy.Steps(), explaining: search.Budget{Limit: -1}}
	if l.steps >= 0 {
		l.explaining.Limit = l.steps + explainingEach*len(p.Subs)
	}
	l.heldBack = l.explaining
	return l
}

// share is the budget of the next search for all Subscriptions: as much as one of them may take.
func (l *limits) share() search.Budget { return search.Budget{Limit: l.steps} }

// shareOf is how many steps each of some Subscriptions may take.
func (l *limits) shareOf(subscriptions int) int {
	if l.steps < 0 {
		return l.steps
	}
	return min(l.steps, max(leastShare, (together*l.steps-l.spent)/subscriptions))
}
