// SPDX-License-Identifier: Apache-2.0

// Package ruletable evaluates decision tables: the first row that applies decides.
package ruletable

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// Rule is one row of a decision table. S is the type of the states, F the type of the facts, which a rule only reads,
// and D the type of the decision, which a rule returns.
type Rule[S ~string, F, D any] struct {
	// Name is the name of the rule, for example RequirementsNotMet. It appears in assessments, tests and state graphs.
	Name string
	// From contains the states in which the rule applies. To contains the states that it leads to.
	From, To []S
	// Decide returns a decision. If decided is false, the next row is tried.
	Decide func(facts F) (decision D, decided bool)
}

// FirstDecision returns the decision of the first rule that applies in a state and decides, and the name of that rule.
// If no rule decides, it returns the zero decision and an empty name.
func FirstDecision[S ~string, F, D any](rules []Rule[S, F, D], state S, facts F) (decision D, rule string) {
	for _, r := range rules {
		if !slices.Contains(r.From, state) {
			continue
		}
		if decision, decided := r.Decide(facts); decided {
			return decision, r.Name
		}
	}
	return decision, ""
}

// GraphOf returns the state graph of rules, in the order of the states and the rules.
func GraphOf[S ~string, F, D any](states []S, rules []Rule[S, F, D]) (graph olmcore.Graph[S]) {
	for _, from := range states {
		for _, r := range rules {
			for _, to := range r.To {
				edge := olmcore.Edge[S]{From: from, To: to, By: r.Name}
				if slices.Contains(r.From, from) && !slices.Contains(graph, edge) {
					graph = append(graph, edge)
				}
			}
		}
	}
	return graph
}
