// SPDX-License-Identifier: Apache-2.0

package search

import "github.com/olmcore/olm/subscription/resolution/internal/model"

// OneByOne adds one Subscription after the other, the oldest first, each within its
// share of steps. It returns those with which the question is not decided, and the
// first with which it has no solution; the others have one together, which it takes
// for granted. spent are the steps that it took.
func OneByOne(q Question, share int) (undecided []*model.Subscription, contradicts *model.Subscription, spent int) {
	budget := Budget{Limit: share}
	active := model.SetOf()
	q.Subs = active
	l := newLearner(q, &budget, false)
	for _, sub := range q.Problem.Subs {
		if q.Scope.Failed(sub) {
			continue
		}
		active.Add(sub.Index)
		q.Subs = active
		budget.Spent = 0
		l.backTo(0)
		l.subscription(sub)
		l.complete()
		verdict := l.decide(q).Verdict
		spent += budget.Spent
		if verdict == Satisfiable {
			continue
		}
		active.Remove(sub.Index)
		if verdict == Exhausted {
			undecided = append(undecided, sub)
		} else if contradicts == nil {
			contradicts = sub
		}
	}
	return undecided, contradicts, spent
}
