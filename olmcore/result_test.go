// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestExpandKeys(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	known := []types.NamespacedName{key("a", "x"), key("b", "y"), key("b", "x")}
	type keys = []types.NamespacedName
	require.Equal(t, keys{key("b", "x"), key("b", "y")}, olmcore.ExpandKeys(keys{key("b", ""), key("b", "x")}, known))
	require.Equal(t, keys{key("a", "x"), key("b", "x"), key("b", "y")}, olmcore.ExpandKeys(keys{{}}, known))
	require.Equal(t, keys{key("c", "z")}, olmcore.ExpandKeys(keys{key("c", "z")}, known))
	require.Empty(t, olmcore.ExpandKeys(nil, known))
}

func TestResultKeepsTheNearestDeadline(t *testing.T) {
	var r olmcore.Result
	require.True(t, r.Empty())
	for _, d := range []time.Duration{0, time.Minute, -time.Second, time.Hour, time.Second} {
		r.Requeue(d)
	}
	require.Equal(t, time.Second, r.RequeueAfter)
	require.True(t, r.Empty())
	r.Diagnostics = []olmcore.Diagnostic{{}}
	require.False(t, r.Empty())
}

func TestCombinedResultsKeepAllPartsAndShareNone(t *testing.T) {
	diagnostic := func(reason string) olmcore.Diagnostic { return olmcore.Diagnostic{Reason: reason} }
	first := olmcore.Result{Diagnostics: make([]olmcore.Diagnostic, 1, 8), RequeueAfter: time.Hour}
	first.Diagnostics[0] = diagnostic("A")
	second := olmcore.Result{
		Actions:     []olmcore.Action{olmcore.Delete{}},
		Transitions: []olmcore.Transition{{To: "READY"}}, Diagnostics: []olmcore.Diagnostic{diagnostic("B")}, RequeueAfter: time.Minute,
	}
	require.Equal(t, olmcore.Result{
		Actions: second.Actions, Transitions: second.Transitions,
		Diagnostics:  []olmcore.Diagnostic{diagnostic("A"), diagnostic("B")},
		RequeueAfter: time.Minute,
	}, first.And(second, olmcore.Result{}))
	require.Equal(t, olmcore.Diagnostic{}, first.Diagnostics[:2][1], "the array of the first Result is not written")
	require.Equal(t, olmcore.Result{}, olmcore.Result{}.And())
}

func TestTransitionString(t *testing.T) {
	for want, edge := range map[string]olmcore.Transition{
		"CONNECTING -> READY (PodReady)":          {From: "CONNECTING", To: "READY", Reason: "PodReady", Certainty: olmcore.CertaintyObserved},
		"Phase none -> Installing (R) inferred":   {Type: "Phase", To: "Installing", Reason: "R", Certainty: olmcore.CertaintyInferred},
		"CatalogSourcesUnhealthy True -> none":    {Type: "CatalogSourcesUnhealthy", From: "True"},
		"Phase Installing -> Complete (R) proven": {Type: "Phase", From: "Installing", To: "Complete", Reason: "R", Certainty: olmcore.CertaintyProven},
	} {
		require.Equal(t, want, edge.String())
	}
}
