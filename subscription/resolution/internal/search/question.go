// SPDX-License-Identifier: Apache-2.0

// Package search finds the first solution of a problem in the order of preference, or the rules that exclude every
// solution.
//
// [Solver.Decide] processes one requirement after the other, in the order that package resolution documents. It
// selects the first possible candidate for each. A requirement without a possible candidate is a conflict: the
// selections that exclude its candidates cannot be combined.
//
// The search records the conflict (nogood.go), backtracks to the latest selection that is part of it, and never
// repeats it. So the work grows with the size of the problem, and not with the number of possible combinations. A
// conflict also contains the rules that it follows from. If there is no solution, the last conflict explains why.
package search

import (
	"iter"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Satisfiability is the outcome of a search.
type Satisfiability uint8

// These are the possible values of Satisfiability.
const (
	// Satisfiable means that there is a solution.
	Satisfiable Satisfiability = iota
	// Unsatisfiable means that there is no solution.
	Unsatisfiable
	// Exhausted means that the Budget was used up before the search ended.
	Exhausted
)

// Question describes what a Solver decides: a Problem, and the part of the Problem to solve.
type Question struct {
	Problem *model.Problem
	Scope   *model.Scope
	// Only contains the numbers of the rules to apply. Nil means all rules.
	Only model.Bitset
	// Subs contains the Index of each Subscription to include. Nil means all Subscriptions.
	Subs model.Bitset
	// AnyOrder means that the caller needs only the Satisfiability, so any solution may be found. The search then tries
	// Prefer first, and then the most recent selections.
	AnyOrder bool
	Prefer   *model.Node
	// Demands contains additional restrictions. If it is nil, there are none.
	Demands *Demands
}

// Demands restricts Subscriptions to one candidate each. The Subscription Hard must get Candidate; no conflict contains
// this rule. Keep maps the Index of each other restricted Subscription to its candidate. Each entry of Keep is a
// RuleKeeps, which a conflict may contain.
type Demands struct {
	Hard      *model.Subscription
	Candidate model.Ref
	Keep      map[int32]model.Ref
}

// Answer contains the result of a search: a solution, or the rules that exclude every solution.
type Answer struct {
	Satisfiability Satisfiability
	// Picks contains the solution, in the order in which the search decided the requirements.
	Picks []Pick
	// Conflict contains the numbers of rules that exclude every solution. It may contain more rules than necessary.
	Conflict model.Bitset
}

// Pick contains a requirement and the node that was selected for the requirement. Node is nil if an earlier selection
// already meets the requirement.
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
	return Answer{Satisfiability: Unsatisfiable, Conflict: rules}
}

// Budget limits the number of steps of one or more searches.
type Budget struct {
	// Limit is the maximum number of steps. A negative value means no limit.
	Limit int
	Spent int
}

// Left returns the number of remaining steps, but at most bound.
func (b *Budget) Left(bound int) int {
	if b.Limit < 0 {
		return bound
	}
	return max(0, min(bound, b.Limit-b.Spent))
}

// Pay spends the given number of steps. If fewer steps remain, it spends all of them and returns false.
func (b *Budget) Pay(steps int) bool {
	b.Spent += steps
	if b.Limit >= 0 && b.Spent > b.Limit {
		b.Spent = b.Limit
		return false
	}
	return true
}
