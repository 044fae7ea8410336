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

// Projects reports whether an annotation is a bundle's own.
var Projects = model.Projects

// ask reads an input for searches of a test; nil when there is nothing to search.
func ask(in *Input) *search.Question {
	p := model.Read(in)
	if p.Blocked != "" || p.Failure != "" {
		return nil
	}
	return &search.Question{Problem: p, Scope: &model.Scope{}}
}

// CheckCore solves an input again with the rules of its contradiction alone, and with each of them but one. It
// returns the number of rules, 0 for an input that has a solution.
func CheckCore(in Input) (rules int, err error) {
	q := ask(&in)
	if q == nil || (&search.Solver{}).Decide(*q, &search.Budget{Limit: -1}).Satisfiability != search.Unsatisfiable {
		return 0, nil
	}
	found, _ := (&search.Solver{}).Reasons(*q, nil, &search.Budget{Limit: -1})
	words := func() []Rule {
		return explain.CoreOf(&search.View{Problem: q.Problem, Scope: q.Scope}, found).Rules
	}
	verdict := func(rules []int32) search.Satisfiability {
		part := *q
		part.Only = model.SetOf(rules...)
		return (&search.Solver{}).Decide(part, &search.Budget{Limit: -1}).Satisfiability
	}
	if verdict(found.Rules) != search.Unsatisfiable {
		return 0, fmt.Errorf("the rules alone have a solution: %v", words())
	}
	for i := range found.Rules {
		if verdict(slices.Delete(slices.Clone(found.Rules), i, i+1)) != search.Satisfiable {
			return 0, fmt.Errorf("rule %d of %v is not needed", i, words())
		}
	}
	return len(found.Rules), nil
}

// ReasonsWithin looks for the contradiction of an input within some steps.
func ReasonsWithin(in Input, steps int) (rules int, minimal bool) {
	found, _ := (&search.Solver{}).Reasons(*ask(&in), nil, &search.Budget{Limit: steps})
	return len(found.Rules), found.Minimal
}

// HeldBackWithin looks for the reasons of an input's HeldBack within some steps.
func HeldBackWithin(in Input, steps int) []HeldBack {
	s, _ := resolve(&in)
	return explain.HeldBackOf(&s.View, &search.Budget{Limit: steps})
}

// Selection is one entry of a solution. By is the entry whose Requirement it meets, -1 for none; Skipped entries meet
// none.
type Selection struct {
	Name        string
	Properties  []olmcore.Property
	By          int
	Requirement olmcore.Property
	Skipped     bool
}

// Selections returns the solution of an input in the order in which it was decided, nil when there is none.
func Selections(in Input) (list []Selection) {
	q := ask(&in)
	if q == nil {
		return nil
	}
	answer := (&search.Solver{}).Decide(*q, &search.Budget{Limit: -1})
	if answer.Satisfiability != search.Satisfiable {
		return nil
	}
	index := map[*model.Node]int{}
	for _, pick := range answer.Picks {
		n, c := pick.Node, pick.Choice
		if n == nil {
			continue
		}
		x := Selection{Name: n.Entry.Name, Properties: n.Entry.Properties, By: -1, Skipped: !n.Eligible()}
		if c.Parent != nil {
			kind, value, _ := strings.Cut(c.Parent.Entry.Requirements[c.Index].Key, " ")
			x.By, x.Requirement = index[c.Parent], olmcore.Property{Type: kind, Value: []byte(value)}
		}
		index[n] = len(list)
		list = append(list, x)
	}
	return list
}
