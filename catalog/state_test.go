// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
)

// situations contains an input change for each state that leads to it, whatever was recorded before.
var situations = map[catalog.State]func(*catalog.Input){
	catalog.StateServing:  func(*catalog.Input) {},
	catalog.StateUpdating: disrupted,
	catalog.StateStarting: func(in *catalog.Input) { in.Pods.Items = nil },
	catalog.StateRecovering: func(in *catalog.Input) {
		unready(in.Pods.Items[0])
		in.Pods.Items[0].Annotations["olmcore/purpose"] = "failover"
	},
	catalog.StateUnavailable: func(in *catalog.Input) {
		for _, node := range in.Nodes.Items {
			readyOf(node).Status = corev1.ConditionUnknown
		}
		unready(in.Pods.Items[0])
	},
	catalog.StateUnknown:  func(in *catalog.Input) { in.Pods.Items, in.Namespace = nil, nil },
	catalog.StateInvalid:  func(in *catalog.Input) { in.Pods.Items, in.CatalogSource.Spec.SourceType = nil, "" },
	catalog.StateDeleting: func(in *catalog.Input) { in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now)) },
}

// record records a state in a status.
func record(state catalog.State, status *v1alpha1.CatalogSourceStatus) {
	available, progressing := metav1.Condition{Type: "Available"}, metav1.Condition{Type: "Progressing", Status: metav1.ConditionFalse}
	switch state {
	case catalog.StateNew:
		status.Conditions = nil
		return
	case catalog.StateServing:
		available.Status, progressing.Reason = metav1.ConditionTrue, catalog.ReasonComplete
	case catalog.StateUpdating:
		available.Status, progressing.Status, progressing.Reason = metav1.ConditionTrue, metav1.ConditionTrue, catalog.ReasonSpecRollout
	case catalog.StateStarting:
		available.Status, progressing.Status, progressing.Reason = metav1.ConditionFalse, metav1.ConditionTrue, catalog.ReasonInitialRollout
	case catalog.StateRecovering:
		available.Status, progressing.Status, progressing.Reason = metav1.ConditionFalse, metav1.ConditionTrue, catalog.ReasonRefill
	case catalog.StateUnavailable:
		available.Status, progressing.Reason = metav1.ConditionFalse, catalog.ReasonNameConflict
	case catalog.StateUnknown:
		available.Status = metav1.ConditionUnknown
	case catalog.StateInvalid:
		available.Status, available.Reason = metav1.ConditionFalse, catalog.ReasonSpecInvalid
	case catalog.StateDeleting:
		available.Status, available.Reason = metav1.ConditionFalse, catalog.ReasonDeleting
	}
	status.Conditions = []metav1.Condition{available, progressing}
}

// TestEveryEdgeOfTheStateGraphIsTaken goes from each recorded state to each state that can be observed next. It
// compares the reported Transition with the graph.
func TestEveryEdgeOfTheStateGraphIsTaken(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	states := []catalog.State{catalog.StateNew}
	for state := range situations {
		states = append(states, state)
	}
	taken := map[[2]catalog.State]bool{}
	for _, from := range states {
		for to, arrange := range situations {
			in := invariant.Clone(base)
			record(from, &in.CatalogSource.Status)
			arrange(&in)
			if from == catalog.StateDeleting {
				situations[catalog.StateDeleting](&in) // it cannot be taken back
			}
			out := answer(t, in)
			a := catalog.Assess(in)
			require.Equal(t, from, a.Recorded)
			if a.State == from {
				require.Empty(t, out.Transitions)
				continue
			}
			require.Equal(t, string(from), out.Transitions[0].From)
			require.Equal(t, string(a.State), out.Transitions[0].To)
			require.True(t, a.State.CanFollow(from), "%q -> %q is no edge", from, to)
			taken[[2]catalog.State{from, a.State}] = true
		}
	}
	for _, from := range states {
		for _, to := range states {
			edge := [2]catalog.State{from, to}
			require.Equal(t, to.CanFollow(from), taken[edge], "%q -> %q", from, to)
		}
	}
}
