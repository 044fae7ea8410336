// SPDX-License-Identifier: Apache-2.0

package search

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// View contains a Problem and its solution. Its Scope contains the Subscriptions that failed.
type View struct {
	*model.Problem
	Scope *model.Scope
	// Targets contains the entry that each Subscription gets, by the Index of the Subscription. If a Subscription gets no
	// entry, its Ref has a nil Entry. Targets is empty if there is no solution yet.
	Targets []model.Ref
	// Solver answers further Questions about the problem.
	Solver *Solver
}

// Question returns the Question for the Problem and Scope of the View. Subscriptions that the Scope marks as
// failed are left out.
func (v *View) Question() Question {
	return Question{Problem: v.Problem, Scope: v.Scope}
}

// Target returns the entry that a Subscription gets. If there is none, its Entry is nil.
func (v *View) Target(s *model.Subscription) model.Ref {
	if int(s.Index) >= len(v.Targets) {
		return model.Ref{}
	}
	return v.Targets[s.Index]
}

// ReasonsAgainst returns the rules that exclude a candidate of a Subscription. If there are none, it returns the rules
// that exclude it while the earlier Subscriptions keep what they get. The verdict is Satisfiable if nothing excludes
// the candidate.
func (v *View) ReasonsAgainst(s *model.Subscription, candidate model.Ref, budget *Budget) (Contradiction, Satisfiability) {
	q := v.Question()
	q.Demands = &Demands{Hard: s, Candidate: candidate}
	found, verdict := v.Solver.Reasons(q, nil, budget)
	if verdict != Satisfiable {
		return found, verdict
	}
	keep := map[int32]model.Ref{}
	for _, earlier := range v.Subs[:s.Index] {
		if target := v.Target(earlier); target.Entry != nil {
			keep[earlier.Index] = target
		}
	}
	q.Demands = &Demands{Hard: s, Candidate: candidate, Keep: keep}
	return v.Solver.Reasons(q, nil, budget)
}

// Attempt is a change that may make a problem solvable. One of Changes and Scope is set.
type Attempt struct {
	// Changes are made to the Input.
	Changes []model.Change
	// Scope changes the Scope of the problem instead, if the Input that would help is unknown.
	Scope func(*model.Scope)
	// For contains the Subscriptions that should be served. Other Subscriptions that failed stay left out.
	For []*model.Subscription
	// Candidate is the entry that the only Subscription of For should get. If its Entry is nil, any candidate is enough.
	Candidate model.Ref
}

// Helps reports whether the problem has a solution with an Attempt.
func (v *View) Helps(a Attempt, budget *Budget) bool {
	problem, solver := v.Problem, v.Solver
	if a.Changes != nil {
		in, err := model.Changed(*v.In, a.Changes...)
		if err != nil {
			return false
		}
		problem, solver = model.Read(&in), &Solver{}
		budget.Spent += problem.Stats.Reading
		if problem.Blocked != "" || problem.Failure != "" {
			return false
		}
	}
	q := Question{Problem: problem, Scope: &model.Scope{}}
	for _, s := range v.Subs {
		other := problem.SubscriptionNamed(s.Object.Name)
		if other != nil && v.Scope.Failed(s) && !slices.Contains(a.For, s) {
			q.Scope.LeaveOut(other)
		}
	}
	if a.Scope != nil {
		a.Scope(q.Scope)
	}
	if a.Candidate.Entry != nil {
		sub := problem.SubscriptionNamed(a.For[0].Object.Name)
		if sub == nil || sub.Impossible != "" || !sub.Choice.Contains(a.Candidate) {
			return false
		}
		q.Demands = &Demands{Hard: sub, Candidate: a.Candidate}
	}
	part := Budget{Limit: budget.Left(budget.Limit)}
	verdict := solver.Decide(q, &part).Satisfiability
	budget.Spent += part.Spent
	return verdict == Satisfiable
}
