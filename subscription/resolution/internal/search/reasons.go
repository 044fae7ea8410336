// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Contradiction is rules that exclude each other.
type Contradiction struct {
	// Rules are their numbers; none when there is a solution, or when the budget ran
	// out before any were found.
	Rules []int32
	// Minimal: none of them can be left out.
	Minimal bool
}

// Reasons returns a minimal set of rules that exclude each other. It names as few
// Subscriptions as can be, too: the others shall not fail for it. Those of later
// Subscriptions are given up first, so that the earlier ones explain the result.
// On Exhausted the Contradiction is what was known by then.
func (s *Solver) Reasons(q Question, budget *Budget) (Contradiction, Verdict) {
	q.Problem.Considered() // says which Subscription each entry serves
	if !s.Learns {
		part := Budget{Limit: budget.Left(reasonsLimit + walkLimitEach*len(q.Problem.Subs))}
		r := reducer{q, func(q Question) Answer { return walkThrough(q, &part, true) }}
		found, verdict := r.reduce(r.first())
		budget.Spent += part.Spent
		if verdict != Exhausted {
			return found, verdict
		}
	}
	r := reducer{q, func(q Question) Answer { return s.conflict(q, budget) }}
	answer := r.first()
	if answer.Verdict != Unsatisfiable {
		return Contradiction{}, answer.Verdict
	}
	// The rest is about what is in the contradiction, and needs to know no more.
	q.Subs = r.subscriptionsOf(answer.Conflict)
	if d := q.Demands; d != nil && d.Keep != nil {
		q.Demands = &Demands{Hard: d.Hard, Candidate: d.Candidate, Keep: r.keptIn(answer.Conflict)}
	}
	l := newLearner(q, budget, true)
	r = reducer{q, l.decide}
	return r.reduce(answer)
}

// reasonsLimit is how many steps the walks that look for reasons may take.
const reasonsLimit = 30_000

// reducer makes a contradiction smaller by asking the same question with fewer
// rules.
type reducer struct {
	q   Question
	ask func(Question) Answer
}

// first asks the question itself.
func (r *reducer) first() Answer {
	if d := r.q.Demands; d != nil && d.Keep == nil {
		// Most demands fail by themselves, whatever the other Subscriptions ask for.
		if answer := r.ask(r.with(nil, model.SetOf())); answer.Verdict != Satisfiable {
			return answer
		}
	}
	return r.ask(r.q)
}

// reduce leaves out of a contradiction what is not needed.
func (r *reducer) reduce(answer Answer) (Contradiction, Verdict) {
	if answer.Verdict != Unsatisfiable {
		return Contradiction{}, answer.Verdict
	}
	conflict, ok := r.fewerSubscriptions(answer.Conflict)
	if ok {
		conflict, ok = r.fewerRules(conflict)
	}
	found := Contradiction{Rules: conflict.Members(), Minimal: ok}
	if !ok {
		return found, Exhausted
	}
	return found, Unsatisfiable
}

// keptIn returns what the Subscriptions of a contradiction keep.
func (r *reducer) keptIn(rules model.Bitset) map[int32]model.Ref {
	keep := map[int32]model.Ref{}
	for _, id := range rules.Members() {
		if key := r.q.Problem.Rules.Key(id); key.Kind == model.RuleKeeps {
			keep[key.A] = r.q.Demands.Keep[key.A]
		}
	}
	return keep
}

// with is the question with fewer rules or Subscriptions.
func (r *reducer) with(only, subs model.Bitset) Question {
	q := r.q
	q.Only = only
	if subs != nil {
		q.Subs = subs
	}
	return q
}

// fewerSubscriptions leaves out one Subscription of a conflict after the other,
// with all rules for the rest in force. false: the budget ran out.
func (r *reducer) fewerSubscriptions(conflict model.Bitset) (_ model.Bitset, ok bool) {
	subs := r.subscriptionsOf(conflict)
	for i := int32(len(r.q.Problem.Subs)) - 1; i >= 0; i-- {
		if !subs.Has(i) {
			continue
		}
		subs.Remove(i)
		switch answer := r.ask(r.with(nil, subs)); answer.Verdict {
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
	rules := &r.q.Problem.Rules
	order := conflict.Members()
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(weight(rules.Key(a)), weight(rules.Key(b))), cmp.Compare(rules.Owner(a), rules.Owner(b)))
	})
	for _, rule := range slices.Backward(order) {
		if !conflict.Has(rule) {
			continue
		}
		conflict.Remove(rule)
		switch answer := r.ask(r.with(conflict, nil)); answer.Verdict {
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

// subscriptionsOf returns the numbers of the Subscriptions in a set of rules; it
// is never nil.
func (r *reducer) subscriptionsOf(rules model.Bitset) model.Bitset {
	subs := model.SetOf()
	for _, id := range rules.Members() {
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
