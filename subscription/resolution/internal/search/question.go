// SPDX-License-Identifier: Apache-2.0

// Package search finds the first solution of a problem in the order of preference, or the rules that exclude every
// solution.
//
// [Solver.Decide] takes one demand after the other, as package resolution describes it, and selects the first candidate
// that is possible. A demand without one is a conflict: what stands in the way of its candidates cannot all be. The
// search remembers that (nogood.go), goes back to the last selection that takes part in it, and never runs into it
// again: the work grows with the problem, not with what could be combined. Conflicts also name the rules that they
// follow from, so that the last one of a search without solution says why there is none.
package search

import (
	"iter"
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
	// AnyOrder: only the verdict matters, so what comes first is Prefer, wherever it can, and what was selected last.
	AnyOrder bool
	Prefer   *model.Node
	// Demands are more than the problem itself asks for; nil is no more.
	Demands *Demands
}

// Demands restrict Subscriptions to one candidate each: Hard without a rule that could be given up, Keep by the rule
// that each keeps its candidate.
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
	// Conflict are rules that exclude every solution, not the fewest.
	Conflict model.Bitset
}

// Pick is a demand and the entry that was selected for it, nil when one selected before meets it.
type Pick struct {
	Choice *model.Choice
	Node   *model.Node
}

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
func (q *Question) serves(sub *model.Subscription) bool {
	demanded, _ := q.demanded(sub)
	return demanded == nil && !q.Scope.Failed(sub) && (q.Subs == nil || q.Subs.Has(sub.Index))
}

// demanded returns the only candidate that counts for a Subscription, nil when all do, and the rule that says so.
func (q *Question) demanded(sub *model.Subscription) (*model.Node, model.RuleKey) {
	if q.Demands == nil {
		return nil, model.RuleKey{}
	}
	kind, r := model.RuleDemanded, q.Demands.Candidate
	if q.Demands.Hard != sub {
		kept, ok := q.Demands.Keep[sub.Index]
		if !ok {
			return nil, model.RuleKey{}
		}
		kind, r = model.RuleKeeps, kept
	}
	n := q.Problem.Node(r, sub.Index)
	key := model.RuleKey{Kind: kind, A: sub.Index, B: n.ID}
	if kind == model.RuleKeeps && !q.enabled(key) {
		return nil, key
	}
	return n, key
}

// roots returns what must be met: existing operators that must stay, then the Subscriptions. Of one that is impossible
// by itself it returns the rules instead.
func (q *Question) roots(list []*model.Choice) (_ []*model.Choice, impossible []model.RuleKey) {
	p := q.Problem
	for _, c := range p.Existing {
		if q.Scope.Freestanding(c) && q.enabled(model.RuleKey{Kind: model.RuleCSV, A: p.Candidate(&c.Choice, 0).ID}) {
			list = append(list, &c.Choice)
		}
	}
	for _, sub := range p.Subs {
		if demanded, _ := q.demanded(sub); demanded != nil && !q.Scope.Failed(sub) {
			list = append(list, sub.Choice)
			continue
		}
		exists := model.RuleKey{Kind: model.RuleSubscription, A: sub.Index}
		if !q.serves(sub) || !q.enabled(exists) {
			continue
		}
		never := model.RuleKey{Kind: model.RuleImpossible, A: sub.Index}
		switch {
		case sub.Impossible == "" && q.enabled(model.RuleKey{Kind: model.RuleRequires, A: sub.Index}):
			list = append(list, sub.Choice)
		case sub.Impossible != "" && q.enabled(never):
			return nil, []model.RuleKey{exists, never}
		}
	}
	return list, nil
}

// inForce returns which of the rules that have a number are.
func (q *Question) inForce() model.Bitset {
	rules := &q.Problem.Rules
	if q.Only != nil {
		set := slices.Clone(q.Only)
		if q.Demands != nil && q.Demands.Hard != nil {
			_, key := q.demanded(q.Demands.Hard)
			if id, ok := rules.Known(key); ok {
				set.Add(id)
			}
		}
		return set
	}
	set := model.SetOf()
	for id := range int32(len(rules.Keys)) {
		key, holds := rules.Keys[id], true
		switch key.Kind {
		case model.RuleSubscription:
			holds = q.serves(q.Problem.Subs[key.A])
		case model.RuleKeeps, model.RuleDemanded:
			n, asked := q.demanded(q.Problem.Subs[key.A])
			holds = n != nil && asked == key
		}
		if holds && !q.Scope.Waived(key) {
			set.Add(id)
		}
	}
	return set
}

// sole returns the only candidate of a choice, nil when there are more or none.
func (q *Question) sole(c *model.Choice) *model.Node {
	if c.Sub != nil {
		if n, _ := q.demanded(c.Sub); n != nil {
			return n
		}
	}
	if c.Total == 1 {
		return q.Problem.Candidate(c, 0)
	}
	return nil
}

// candidate returns a choice's candidate by its place, nil behind the last.
func (q *Question) candidate(c *model.Choice, i int) *model.Node {
	n := q.sole(c)
	if n == nil {
		return q.Problem.Candidate(c, i)
	}
	if i > 0 {
		return nil
	}
	return n
}

// candidates returns all candidates of a choice.
func (q *Question) candidates(c *model.Choice) iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for i := 0; ; i++ {
			if n := q.candidate(c, i); n == nil || !yield(n) {
				return
			}
		}
	}
}

func (q *Question) unsatisfiable(conflict model.Bitset) Answer {
	rules := model.SetOf()
	for id := range conflict.All {
		if q.Problem.Rules.Keys[id].Kind != model.RuleDemanded {
			rules.Add(id)
		}
	}
	return Answer{Verdict: Unsatisfiable, Conflict: rules}
}

// Budget bounds work, counted in steps.
type Budget struct {
	Limit int // negative: none
	Spent int
}

// Left returns what may still be spent, at most a bound.
func (b *Budget) Left(bound int) int {
	if b.Limit < 0 {
		return bound
	}
	return max(0, min(bound, b.Limit-b.Spent))
}

// Pay spends some steps; false when there are not so many left.
func (b *Budget) Pay(steps int) bool {
	b.Spent += steps
	if b.Limit >= 0 && b.Spent > b.Limit {
		b.Spent = b.Limit
		return false
	}
	return true
}
