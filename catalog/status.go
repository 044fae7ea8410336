// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// newStatus returns the status that the CatalogSource should have. Fields and conditions of others stay.
func newStatus(f *facts, d decision, c conditions) v1alpha1.CatalogSourceStatus {
	s := *f.source.Status.DeepCopy()
	reason, message := legacyReason(f, d)
	s.Reason = reason
	s.Message = printable.Keep(s.Message, message)
	s.RegistryServiceStatus = registryService(f)
	if f.connection.address != "" {
		// Differs: lastConnect is when this catalog's client connected, not when any catalog's client changed.
		s.GRPCConnectionState = &v1alpha1.GRPCConnectionState{
			Address: f.connection.address, LastObservedState: f.connection.state, LastConnectTime: f.connection.lastConnect,
		}
	}
	// Differs: the time of a poll is written once its Pod is observed, and is the creation time of the Pod.
	recorded := s.LatestImageRegistryPoll
	last := lastPoll(f, d)
	if f.poll.on && !last.IsZero() && (recorded == nil || !recorded.Time.Equal(last)) {
		s.LatestImageRegistryPoll = new(olmcore.Timestamp(last))
	}
	cm := f.registry.ConfigMap
	if f.standing.mode == modeConfigMap && !references(s.ConfigMapResource, cm) {
		s.ConfigMapResource = &v1alpha1.ConfigMapResourceReference{
			Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion,
			LastUpdateTime: olmcore.Timestamp(f.now),
		}
	}
	absent := c.absent()
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return slices.Contains(absent, c.Type) })
	for _, condition := range c.list(f.source.Generation) {
		condition.LastTransitionTime = olmcore.Timestamp(f.now)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// lastPoll returns when the image was polled for the last time, or zero.
func lastPoll(f *facts, d decision) time.Time { return cmp.Or(d.poll.polled, f.poll.last) }

// legacyReason returns status.reason and status.message in OLM's words. Both are empty if nothing is wrong with the
// spec.
func legacyReason(f *facts, d decision) (v1alpha1.ConditionReason, string) {
	failed := d.poll.failed
	switch {
	case f.standing.mode == modeDeleting:
		return f.source.Status.Reason, f.source.Status.Message
	case f.standing.reason != "":
		return f.standing.legacy, f.standing.message
	case failed != nil:
		phase := clip(string(failed.Status.Phase), 20)
		return v1alpha1.CatalogSourceRegistryServerError,
			"couldn't ensure registry server - error ensuring update pod for catalog source " + f.source.Name +
				": update pod " + failed.Name + " in a " + phase + " state: deleted update pod"
	case f.poll.problem != "":
		return v1alpha1.CatalogSourceIntervalInvalidError, f.poll.problem
	}
	return "", ""
}

// registryService returns status.registryService. It names the Service once the Service is observed.
func registryService(f *facts) *v1alpha1.RegistryServiceStatus {
	recorded := f.source.Status.RegistryServiceStatus
	service := f.registry.Observed.Service
	s := v1alpha1.RegistryServiceStatus{Protocol: registry.GRPC, CreatedAt: olmcore.Timestamp(f.now)}
	switch {
	case f.standing.runsPods() && service != nil:
		s.ServiceName = service.Name
		s.ServiceNamespace = service.Namespace
		s.Port = registry.Port
		if !service.CreationTimestamp.IsZero() {
			s.CreatedAt = service.CreationTimestamp
		}
	case f.standing.mode != modeAddress:
		return recorded
	}
	if recorded != nil && !recorded.CreatedAt.IsZero() {
		s.CreatedAt = recorded.CreatedAt
	}
	return &s
}

// references reports whether a reference in the status is that of a ConfigMap in its present version.
func references(r *v1alpha1.ConfigMapResourceReference, cm *corev1.ConfigMap) bool {
	return r != nil && r.Name == cm.Name && r.Namespace == cm.Namespace && r.UID == cm.UID && r.ResourceVersion == cm.ResourceVersion
}

// transitions returns the changes that a status records.
func transitions(f *facts, c conditions, after v1alpha1.CatalogSourceStatus) []olmcore.Transition {
	connection := connectionTransitions(f, after.GRPCConnectionState)
	before := recordedState(f.source.Status.Conditions)
	now := c.state()
	if before == now {
		return connection
	}
	t := olmcore.Moved(olmcore.RefOf(f.source), "State", string(before), string(now), f.now)
	t.Status = c.available.Status
	t.Reason = c.available.Reason
	t.Message = c.available.Message
	t.Bound = olmcore.NotAfter
	at, bound := availableSince(f, c.available.Reason)
	if !at.IsZero() && !at.After(f.now) {
		t.At = olmcore.Timestamp(at)
		t.Bound = bound
	}
	return append([]olmcore.Transition{t}, connection...)
}

// availableSince returns when the catalog began or stopped to serve. It returns zero if ConditionAvailable did not
// change, or if the Pods do not show the time.
func availableSince(f *facts, reason string) (at time.Time, bound olmcore.Bound) {
	recorded := f.recorded(ConditionAvailable)
	if recorded != nil && recorded.Reason == reason {
		return time.Time{}, ""
	}
	switch reason {
	case ReasonRegistryServing:
		return firstReady(f), olmcore.Exact
	case ReasonNoReadyPods:
		return lastUnready(f), olmcore.NotBefore
	}
	return time.Time{}, ""
}

// firstReady returns when the first of the Pods that serve became ready.
func firstReady(f *facts) (first time.Time) {
	for _, p := range f.pods.serving.ready() {
		since := podCondition(p.Pod, corev1.PodReady).LastTransitionTime.Time
		if !since.IsZero() && (first.IsZero() || since.Before(first)) {
			first = since
		}
	}
	return first
}

// lastUnready returns when the last of the Pods that do not serve stopped being ready.
func lastUnready(f *facts) (last time.Time) {
	for _, p := range f.pods.all {
		c := podCondition(p.Pod, corev1.PodReady)
		if p.owned && p.role == roleServing && !p.isServing() && c.Status != corev1.ConditionTrue && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// State summarizes a CatalogSource in one word. It is computed from the conditions Available and Progressing of the
// status.
type State string

// States.
const (
	StateNew         State = ""            // no condition was recorded yet
	StateStarting    State = "Starting"    // no Pod serves yet, and the first Pods are starting
	StateServing     State = "Serving"     // the catalog serves, and no Pod is being started or replaced
	StateUpdating    State = "Updating"    // the catalog serves, and Pods are being started or replaced
	StateRecovering  State = "Recovering"  // no Pod serves, and Pods are being replaced
	StateUnavailable State = "Unavailable" // no Pod serves, and no Pod is being started or replaced
	StateUnknown     State = "Unknown"     // it is unknown whether the catalog serves
	StateInvalid     State = "Invalid"     // no Pod serves, and the spec is invalid
	StateDeleting    State = "Deleting"    // the CatalogSource is being deleted
	StateNotAssessed State = "NotAssessed" // not a state of a CatalogSource: the Input of Assess is invalid
)

// graph is the state graph. A state describes the cluster, which may have changed in any way between two reconciles. So
// only the first and the last state, and StateStarting, restrict the edges.
var graph = stateGraph()

func stateGraph() (g olmcore.Graph[State]) {
	life := []State{StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid}
	// Once a catalog has served, its next Pods are not the first ones.
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

// CanFollow reports whether a reconcile may observe s after an earlier reconcile observed before.
func (s State) CanFollow(before State) bool { return graph.Allows(before, s) }

// stateOf returns the state that two conditions describe.
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

// recordedState returns the state that recorded conditions describe.
func recordedState(conditions []metav1.Condition) State {
	available := meta.FindStatusCondition(conditions, ConditionAvailable)
	progressing := meta.FindStatusCondition(conditions, ConditionProgressing)
	if available == nil {
		return StateNew
	}
	return stateOf(available, cmp.Or(progressing, &metav1.Condition{}))
}
