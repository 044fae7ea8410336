// SPDX-License-Identifier: Apache-2.0

// Package search finds the first solution of a problem in the order of
// preference, or the rules that exclude every solution.
//
// [Solver.Decide] goes through the demands as package resolution describes it (walk.go):
// that is all there is to do for nearly every namespace. When it goes back too
// often, the same question goes to a solver that learns from each contradiction
// (learn.go), so that the work grows with the problem and not with what could be
// combined; it decides in the same order, so that its answer is the same.
package search

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Verdict is how a search ended.
type Verdict uint8

// Verdicts.
const (
	Satisfiable Verdict = iota
	Unsatisfiable
	Exhausted // the budget ran out
)

// Question is what of a problem is to be solved.
type Question struct {
	Problem *model.Problem
	Scope   *model.Scope
	// Only are the rules in force; nil is all.
	Only model.Bitset
	// Subs are the numbers of the Subscriptions that take part; nil is all.
	Subs model.Bitset
	// Demands are more than the problem itself asks for; nil is no more.
	Demands *Demands
}

// Demands restrict Subscriptions to one candidate each: Hard without a rule that
// could be given up, Keep by the rule that each keeps its candidate.
type Demands struct {
	Hard      *model.Subscription
	Candidate model.Ref
	Keep      map[int32]model.Ref
}

// Answer is how a question ended.
type Answer struct {
	Verdict Verdict
	// Picks are the solution in the order in which it was decided.
	Picks []Pick
	// Conflict are numbers of rules that exclude every solution; only of a question
	// that was asked for reasons.
	Conflict model.Bitset
}

// Pick is a demand and the entry that was selected for it, nil when one selected
// before meets it.
type Pick struct {
	Choice *model.Choice
	Node   *model.Node
}

// Budget bounds work, counted in steps: looks at a candidate, or as much.
type Budget struct {
	Limit int // negative: none
	Spent int
}

// spend takes one step; false when none is left.
func (b *Budget) spend() bool {
	if b.Limit >= 0 && b.Spent >= b.Limit {
		return false
	}
	b.Spent++
	return true
}

// pay takes work of the solver that learns; false when there is not enough left.
func (b *Budget) pay(work *int) bool {
	for ; *work >= workPerStep; *work -= workPerStep {
		if !b.spend() {
			return false
		}
	}
	return true
}

// workPerStep is how many small steps of the solver take as long as a look at a
// candidate.
const workPerStep = 8

// Left returns what may still be spent, at most a bound.
func (b *Budget) Left(bound int) int {
	if b.Limit < 0 {
		return bound
	}
	return max(0, min(bound, b.Limit-b.Spent))
}

// walkLimit is how many steps a walk may take, and for each demand that a question
// begins with, before the solver that learns takes over.
const walkLimit, walkLimitEach = 1500, 20

// Solver answers questions about one problem. What it learns for one of them serves the
// next.
type Solver struct {
	// Learns: walking did not end once, and is not tried again.
	Learns         bool
	plain, tracked *learner
	changes        int // of the scope that they were made for
}

// Decide looks for the first solution.
func (s *Solver) Decide(q Question, budget *Budget) Answer {
	if !s.Learns {
		roots := len(q.Problem.Subs) + len(q.Problem.Existing)
		part := Budget{Limit: budget.Left(walkLimit + walkLimitEach*roots)}
		answer := Walk(q, &part)
		budget.Spent += part.Spent
		if answer.Verdict != Exhausted {
			return answer
		}
		s.Learns = true
	}
	if q.Only != nil {
		return s.conflict(q, budget)
	}
	s.renew(q)
	if s.plain == nil {
		s.plain = newLearner(Question{Problem: q.Problem, Scope: q.Scope}, budget, false)
	}
	s.plain.budget = budget
	return s.plain.decide(q)
}

// conflict returns rules that exclude every solution, not the fewest.
func (s *Solver) conflict(q Question, budget *Budget) Answer {
	s.renew(q)
	if s.tracked == nil {
		s.tracked = newLearner(Question{Problem: q.Problem, Scope: q.Scope}, budget, true)
	}
	s.tracked.budget = budget
	return s.tracked.decide(q)
}

// renew forgets what was learned when operators have to stay that did not before.
func (s *Solver) renew(q Question) {
	if n := q.Scope.Changes(); n != s.changes {
		s.plain, s.tracked, s.changes = nil, nil, n
	}
}

// Walk looks for the first solution by trying alone.
func Walk(q Question, budget *Budget) Answer { return walkThrough(q, budget, false) }

// enabled reports whether a rule is in force.
func (q *Question) enabled(key model.RuleKey) bool {
	if q.Scope.Waived(key) {
		return false
	}
	if q.Only == nil {
		return true
	}
	id, ok := q.Problem.Rules.Known(key)
	return ok && q.Only.Has(id)
}

// serves reports whether a Subscription takes part with all its candidates.
func (q *Question) serves(sub int32) bool {
	s := q.Problem.Subs[sub]
	_, demanded := q.demanded(s)
	return !demanded && !q.Scope.Failed(s) && (q.Subs == nil || q.Subs.Has(sub))
}

// demanded returns the only candidate that counts for a Subscription.
func (q *Question) demanded(sub *model.Subscription) (candidate model.Ref, ok bool) {
	if q.Demands == nil {
		return model.Ref{}, false
	}
	if q.Demands.Hard == sub {
		return q.Demands.Candidate, true
	}
	candidate, ok = q.Demands.Keep[sub.Index]
	return candidate, ok && q.enabled(model.RuleKey{Kind: model.RuleKeeps, A: sub.Index})
}

// roots returns what must be met: existing operators that must stay, then the
// Subscriptions. Of one that is impossible by itself it returns the rules instead.
func (q *Question) roots() (list []*model.Choice, impossible []model.RuleKey) {
	p := q.Problem
	for _, c := range p.Existing {
		if !q.Scope.Freestanding(c) {
			continue
		}
		if n := p.Node(c.Choice.First(), c.Choice.Owner); q.enabled(model.RuleKey{Kind: model.RuleCSV, A: n.ID}) {
			list = append(list, &c.Choice)
		}
	}
	for _, sub := range p.Subs {
		if q.Scope.Failed(sub) {
			continue
		}
		if _, ok := q.demanded(sub); ok {
			list = append(list, sub.Choice)
			continue
		}
		exists := model.RuleKey{Kind: model.RuleSubscription, A: sub.Index}
		if !q.serves(sub.Index) || !q.enabled(exists) {
			continue
		}
		if sub.Impossible == "" {
			if q.enabled(model.RuleKey{Kind: model.RuleRequires, A: sub.Index}) {
				list = append(list, sub.Choice)
			}
			continue
		}
		if never := (model.RuleKey{Kind: model.RuleImpossible, A: sub.Index}); q.enabled(never) {
			return nil, []model.RuleKey{exists, never}
		}
	}
	return list, nil
}

// replaces reports whether n would replace old.
func replaces(n, old *model.Node) bool { return slices.Contains(n.Over, old) }
