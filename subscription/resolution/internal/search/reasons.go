// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Contradiction is a set of rules that exclude each other.
type Contradiction struct {
	// Rules contains the numbers of the rules. It is empty if there is a solution, or if the Budget was used up before
	// any rules were found.
	Rules []int32
	// Minimal means that every rule is necessary for the contradiction.
	Minimal bool
}

// Reasons returns a minimal set of rules that exclude each other. If conflict is nil, Reasons first searches for a
// conflict. The result names as few Subscriptions as possible, so that the other Subscriptions do not fail. The result
// prefers rules of earlier Subscriptions. If the Budget is used up early, the set may not be minimal. If the
// Satisfiability is not Unsatisfiable, no rules were found.
func (s *Solver) Reasons(q Question, conflict model.Bitset, budget *Budget) (Contradiction, Satisfiability) {
	q.Problem.Considered() // says which Subscription each entry serves
	r := reducer{q, s, budget}
	if conflict == nil {
		answer := r.first()
		if answer.Satisfiability != Unsatisfiable {
			return Contradiction{}, answer.Satisfiability
		}
		conflict = answer.Conflict
	}
	var subscriptions []int32
	for id := range conflict.All {
		if q.Problem.Rules.Keys[id].Kind == model.RuleSubscription {
			subscriptions = append(subscriptions, id)
		}
	}
	slices.SortFunc(subscriptions, func(a, b int32) int { return cmp.Compare(q.Problem.Rules.Keys[b].A, q.Problem.Rules.Keys[a].A) })
	conflict, ok := r.without(conflict, subscriptions, true)
	if ok {
		conflict, ok = r.without(conflict, r.order(conflict), false)
	}
	return Contradiction{conflict.Members(), ok}, Unsatisfiable
}

// reducer makes a contradiction smaller by asking the same question with fewer rules.
type reducer struct {
	q      Question
	solver *Solver
	budget *Budget
}

// first asks the question itself. Most demands fail by themselves, whatever the Subscriptions ask for.
func (r *reducer) first() Answer {
	if d := r.q.Demands; d != nil && d.Keep == nil {
		q := r.q
		q.Subs = model.SetOf()
		if answer := r.solver.Decide(q, r.budget); answer.Satisfiability != Satisfiable {
			return answer
		}
	}
	return r.solver.Decide(r.q, r.budget)
}

// without leaves out of a conflict one rule after the other, and asks again. With each Subscription that is left out,
// all rules for the rest are in force; else only those of the conflict. false: the budget ran out.
func (r *reducer) without(conflict model.Bitset, order []int32, subscriptions bool) (_ model.Bitset, ok bool) {
	for _, rule := range order {
		if !conflict.Has(rule) {
			continue
		}
		q := r.q
		q.Only, q.Subs, q.AnyOrder = slices.Clone(conflict), r.subscriptionsOf(conflict), true
		q.Only.Remove(rule)
		key := q.Problem.Rules.Keys[rule]
		switch {
		case subscriptions:
			q.Only = nil
			q.Subs.Remove(key.A)
		case key.Kind == model.RuleBundle || key.Kind == model.RuleBlocked || key.Kind == model.RuleReplaces:
			q.Prefer = q.Problem.Nodes[key.A] // without the rule it may be possible
		}
		switch answer := r.solver.Decide(q, r.budget); answer.Satisfiability {
		case Unsatisfiable:
			conflict = answer.Conflict
		case Exhausted:
			return conflict, false
		}
	}
	return conflict, true
}

// order sorts the rules of a conflict: what is given up first comes first. Those by which earlier Subscriptions keep
// their candidates come before all others, then those that serve the later Subscriptions.
func (r *reducer) order(conflict model.Bitset) []int32 {
	rules := &r.q.Problem.Rules
	keeps := func(id int32) int {
		if rules.Keys[id].Kind == model.RuleKeeps {
			return 1
		}
		return 0
	}
	order := conflict.Members()
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(keeps(a), keeps(b)), cmp.Compare(rules.Owners[a], rules.Owners[b]))
	})
	slices.Reverse(order)
	return order
}

// subscriptionsOf returns the numbers of the Subscriptions in a set of rules; it is never nil.
func (r *reducer) subscriptionsOf(rules model.Bitset) model.Bitset {
	subs := model.SetOf()
	for id := range rules.All {
		if key := r.q.Problem.Rules.Keys[id]; key.Kind == model.RuleSubscription {
			subs.Add(key.A)
		}
	}
	return subs
}

// OneByOne finds the Subscriptions that prevent a solution, or that cannot be decided within share steps. It adds the
// Subscriptions to the question one after the other, and removes such a Subscription before it adds the next one. The
// results are:
//   - undecided: the Subscriptions that reached the limit
//   - contradicts: the first Subscription that made the question unsatisfiable, or nil
//   - spent: the number of steps
func OneByOne(q Question, share int) (undecided []*model.Subscription, contradicts *model.Subscription, spent int) {
	solver := Solver{}
	q.Subs = model.SetOf()
	for _, sub := range q.Problem.Subs {
		if q.Scope.Failed(sub) {
			continue
		}
		q.Subs.Add(sub.Index)
		budget := Budget{Limit: share}
		verdict := solver.Decide(q, &budget).Satisfiability
		spent += budget.Spent
		if verdict == Satisfiable {
			continue
		}
		q.Subs.Remove(sub.Index)
		if verdict == Exhausted {
			undecided = append(undecided, sub)
		} else if contradicts == nil {
			contradicts = sub
		}
	}
	return undecided, contradicts, spent
}
