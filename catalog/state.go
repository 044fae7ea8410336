// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// State is what a CatalogSource is, in one word. It follows from the conditions Available and Progressing, so the recorded one
// can be read from any status.
type State string

// States.
const (
	StateNew         State = ""            // no condition is recorded yet
	StateStarting    State = "Starting"    // nothing serves yet, the first Pods are starting
	StateServing     State = "Serving"     // it serves and nothing is under way
	StateUpdating    State = "Updating"    // it serves, and Pods are started or replaced
	StateRecovering  State = "Recovering"  // nothing serves, and Pods are being replaced
	StateUnavailable State = "Unavailable" // nothing serves, and nothing can be done about it now
	StateUnknown     State = "Unknown"     // whether it serves is not known
	StateInvalid     State = "Invalid"     // nothing serves, and the spec cannot be carried out
	StateDeleting    State = "Deleting"    // it is being deleted
	StateNotAssessed State = "NotAssessed" // no state of a CatalogSource: Assess was handed an Input that breaks the contract
)

// graph is the state graph: what one reconcile may find after another. Every state is a view of the cluster, and a cluster may
// have gone anywhere since. Only the first state and the last are special.
var graph = stateGraph()

func stateGraph() (g olmcore.Graph[State]) {
	life := []State{StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid}
	// Once a catalog has served, its Pods are no longer the first.
	begun := []State{StateServing, StateUpdating, StateRecovering}
	for _, from := range append([]State{StateNew}, life...) {
		for _, to := range append(life, StateDeleting) {
			if from != to && !(to == StateStarting && slices.Contains(begun, from)) {
				g = append(g, olmcore.Edge[State]{From: from, To: to})
			}
		}
	}
	return g
}

// CanFollow reports whether a reconcile may find state s where another found before.
func (s State) CanFollow(before State) bool { return graph.Allows(before, s) }

func stateOf(available, progressing *metav1.Condition) State {
	moving := progressing.Status == metav1.ConditionTrue
	switch {
	case available.Reason == ReasonDeleting:
		return StateDeleting
	case available.Status == metav1.ConditionTrue && moving:
		return StateUpdating
	case available.Status == metav1.ConditionTrue:
		return StateServing
	case available.Status == metav1.ConditionUnknown:
		return StateUnknown
	case available.Reason == ReasonSpecInvalid:
		return StateInvalid
	case moving && progressing.Reason == ReasonInitialRollout:
		return StateStarting
	case moving:
		return StateRecovering
	}
	return StateUnavailable
}

func recordedState(conditions []metav1.Condition) State {
	available := meta.FindStatusCondition(conditions, ConditionAvailable)
	progressing := meta.FindStatusCondition(conditions, ConditionProgressing)
	if available == nil {
		return StateNew
	}
	return stateOf(available, cmp.Or(progressing, &metav1.Condition{}))
}
