// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Contradiction is rules that exclude each other.
type Contradiction struct {
	// Rules are their numbers; none when there is a solution, or when the budget ran out before any were found.
	Rules []int32
	// Minimal: none of them can be left out.
	Minimal bool
}

// Reasons returns a minimal set of rules that exclude each other, starting with those of a conflict; nil is not known.
// It names as few Subscriptions as can be, too: the others shall not fail for it. Those of later Subscriptions are
// given up first, so that the earlier ones explain the result. On Exhausted the Contradiction is what was known by
// then.
func (s *Solver) Reasons(q Question, conflict model.Bitset, budget *Budget) (Contradiction, Verdict) {
	q.Problem.Considered() // says which Subscription each entry serves
	r := reducer{q, s, budget}
	if conflict == nil {
		answer := r.first()
		if answer.Verdict != Unsatisfiable {
			return Contradiction{}, answer.Verdict
		}
		conflict = answer.Conflict
	}
	conflict, ok := r.fewerSubscriptions(conflict)
	if ok {
		conflict, ok = r.fewerRules(conflict)
	}
	found := Contradiction{Rules: conflict.Members(), Minimal: ok}
	if !ok {
		return found, Exhausted
	}
	return found, Unsatisfiable
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
		if answer := r.ask(nil, model.SetOf()); answer.Verdict != Satisfiable {
			return answer
		}
	}
	return r.solver.Decide(r.q, r.budget)
}

// ask asks the question with fewer rules and Subscriptions.
func (r *reducer) ask(only, subs model.Bitset) Answer {
	q := r.q
	q.Only, q.Subs = only, subs
	return r.solver.Decide(q, r.budget)
}

// fewerSubscriptions leaves out one Subscription of a conflict after the other, with all rules for the rest in force.
// false: the budget ran out.
func (r *reducer) fewerSubscriptions(conflict model.Bitset) (_ model.Bitset, ok bool) {
	subs := r.subscriptionsOf(conflict)
	for i := int32(len(r.q.Problem.Subs)) - 1; i >= 0; i-- {
		if !subs.Has(i) {
			continue
		}
		subs.Remove(i)
		switch answer := r.ask(nil, subs); answer.Verdict {
		case Satisfiable:
			subs.Add(i)
		case Unsatisfiable:
			conflict = answer.Conflict
			subs = r.subscriptionsOf(conflict)
		case Exhausted:
			return conflict, false
		}
	}
	return conflict, true
}

// fewerRules leaves out one rule after the other. false: the budget ran out.
func (r *reducer) fewerRules(conflict model.Bitset) (_ model.Bitset, ok bool) {
	rules, subs := &r.q.Problem.Rules, r.subscriptionsOf(conflict)
	order := conflict.Members()
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(weight(rules.Key(a)), weight(rules.Key(b))), cmp.Compare(rules.Owner(a), rules.Owner(b)))
	})
	for _, rule := range slices.Backward(order) {
		if !conflict.Has(rule) {
			continue
		}
		conflict.Remove(rule)
		r.q.Prefer = nil
		switch key := rules.Key(rule); key.Kind {
		case model.RuleBundle, model.RuleBlocked, model.RuleReplaces:
			r.q.Prefer = r.q.Problem.NodeOf(key.A) // without the rule it may be possible
		}
		switch answer := r.ask(conflict, subs); answer.Verdict {
		case Satisfiable:
			conflict.Add(rule)
		case Unsatisfiable:
			conflict = answer.Conflict
		case Exhausted:
			conflict.Add(rule)
			return conflict, false
		}
	}
	return conflict, true
}

// subscriptionsOf returns the numbers of the Subscriptions in a set of rules; it is never nil.
func (r *reducer) subscriptionsOf(rules model.Bitset) model.Bitset {
	subs := model.SetOf()
	for id := range rules.All {
		if key := r.q.Problem.Rules.Key(id); key.Kind == model.RuleSubscription {
			subs.Add(key.A)
		}
	}
	return subs
}

// weight puts the rules that are given up first behind the others.
func weight(key model.RuleKey) int {
	if key.Kind == model.RuleKeeps {
		return 1
	}
	return 0
}

// OneByOne adds one Subscription after the other, the oldest first, each within its share of steps beside what the
// others took. It returns those with which the question is not decided, and the first with which it has no solution;
// the others have one together, which it takes for granted. spent are the steps that it took.
func OneByOne(q Question, share int) (undecided []*model.Subscription, contradicts *model.Subscription, spent int) {
	solver, others := Solver{}, 0
	q.Subs = model.SetOf()
	for _, sub := range q.Problem.Subs {
		if q.Scope.Failed(sub) {
			continue
		}
		q.Subs.Add(sub.Index)
		budget := Budget{Limit: share}
		if share >= 0 {
			budget.Limit += others
		}
		verdict := solver.Decide(q, &budget).Verdict
		spent += budget.Spent
		switch {
		case verdict == Satisfiable:
			others = budget.Spent
			continue
		case verdict == Exhausted:
			undecided = append(undecided, sub)
		case contradicts == nil:
			contradicts = sub
		}
		q.Subs.Remove(sub.Index)
	}
	return undecided, contradicts, spent
}
