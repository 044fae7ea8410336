// SPDX-License-Identifier: Apache-2.0

package ruletable_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/ruletable"
	"github.com/olmcore/olm/olmcore"
)

func TestFirstDecisionUsesTheFirstRuleThatDecides(t *testing.T) {
	type light string
	type rule = ruletable.Rule[light, int, string]
	above := func(limit int, decision string) func(int) (string, bool) {
		return func(facts int) (string, bool) { return decision, facts > limit }
	}
	rules := []rule{
		{Name: "Stop", From: []light{"green"}, To: []light{"red"}, Decide: above(5, "stop")},
		{Name: "Slow", From: []light{"green", "red"}, To: []light{"amber", "red"}, Decide: above(2, "slow")},
		{Name: "Look", From: []light{"red"}, Decide: above(0, "look")},
	}
	type outcome struct{ decision, rule string }
	for name, test := range map[string]struct {
		state light
		facts int
		want  outcome
	}{
		"the first row":                    {"green", 6, outcome{"stop", "Stop"}},
		"a row that does not decide":       {"green", 3, outcome{"slow", "Slow"}},
		"a row that applies elsewhere":     {"red", 6, outcome{"slow", "Slow"}},
		"a row that changes no state":      {"red", 1, outcome{"look", "Look"}},
		"no row decides":                   {"green", 0, outcome{}},
		"no row applies in this state":     {"amber", 9, outcome{}},
		"no row applies in an empty state": {"", 9, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			decision, rule := ruletable.FirstDecision(rules, test.state, test.facts)
			require.Equal(t, test.want, outcome{decision, rule})
		})
	}
	require.Equal(t, olmcore.Graph[light]{
		{From: "green", To: "red", By: "Stop"},
		{From: "green", To: "amber", By: "Slow"},
		{From: "green", To: "red", By: "Slow"},
		{From: "red", To: "amber", By: "Slow"},
		{From: "red", To: "red", By: "Slow"},
	}, ruletable.GraphOf([]light{"green", "red"}, rules))
}
