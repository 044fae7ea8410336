// SPDX-License-Identifier: Apache-2.0

// Package explain words what a search found: why there is no solution, why a Subscription does not get its best
// candidate, and what would help.
package explain

import (
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// View is what an explanation is made from: the problem, which Subscriptions are left out of it, and what the others
// get.
type View struct {
	*model.Problem
	Scope *model.Scope
	// Targets is what each Subscription gets, by its number; without entry: nothing. It is empty while there is no
	// solution.
	Targets []model.Ref
	// Solver answers what is asked about the problem.
	Solver *search.Solver
}

// target returns what a Subscription gets.
func (v *View) target(s *model.Subscription) model.Ref {
	if int(s.Index) >= len(v.Targets) {
		return model.Ref{}
	}
	return v.Targets[s.Index]
}

// question is the search for everything that takes part.
func (v *View) question() search.Question {
	return search.Question{Problem: v.Problem, Scope: v.Scope}
}

// Decided is what Of looks at beside the View.
type Decided struct {
	Operators []olmcore.Operator
	Targets   []Target
	Failure   *olmcore.ResolutionFailure
	Cores     []Core
}
