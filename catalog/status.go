// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// statusChange is how the status that is observed differs from the recorded one.
type statusChange struct {
	reason     v1alpha1.ConditionReason
	message    string
	service    *v1alpha1.RegistryServiceStatus
	connection *v1alpha1.GRPCConnectionState
	poll       *metav1.Time
	configMap  *v1alpha1.ConfigMapResourceReference
	from, to   State
	changed    bool
}

func (v *view) compareStatus(conditions *[kinds]condition) statusChange {
	have := &v.cs.Status
	c := statusChange{service: v.wantedService(), connection: v.wantedConnectionState(), poll: v.wantedPoll(), configMap: v.wantedReference()}
	c.reason, c.message = v.legacyReason()
	c.from = recordedState(have.Conditions)
	c.to = stateOf(conditions[0].status, conditions[0].reason, conditions[1].status, conditions[1].reason)
	c.changed = have.Reason != c.reason || have.Message != c.message ||
		have.RegistryServiceStatus != c.service || have.GRPCConnectionState != c.connection || have.LatestImageRegistryPoll != c.poll ||
		have.ConfigMapResource != c.configMap
	for i := range conditions {
		c.changed = c.changed || v.conditionDiffers(&conditions[i])
	}
	return c
}

func (v *view) conditionDiffers(c *condition) bool {
	have := meta.FindStatusCondition(v.cs.Status.Conditions, c.kind)
	if c.status == "" {
		return have != nil
	}
	return have == nil || have.Status != c.status || have.Reason != c.reason || have.Message != string(c.message) ||
		have.ObservedGeneration != v.cs.Generation
}

// legacyReason returns status.reason and status.message, in OLM's words; both
// are empty while the spec is carried out.
func (v *view) legacyReason() (v1alpha1.ConditionReason, string) {
	switch v.mode {
	case modeInvalid:
		return v.problem.reason, v.problem.message
	case modeDeleting:
		return v.cs.Status.Reason, v.cs.Status.Message
	case modeBlocked:
		if v.blocked == ReasonConfigMapMissing {
			return v1alpha1.CatalogSourceConfigMapError, v.haltText()
		}
		return v1alpha1.CatalogSourceRegistryServerError, v.haltText()
	case modeImage, modeAddress, modeConfigMap:
		if v.poll.failed != "" {
			return v1alpha1.CatalogSourceRegistryServerError, v.poll.failed
		}
		if v.poll.problem != "" {
			return v1alpha1.CatalogSourceIntervalInvalidError, v.poll.problem
		}
	}
	return "", ""
}

// wantedService is status.registryService; the recorded one itself when it is
// right. It names the Service once that is observed.
func (v *view) wantedService() *v1alpha1.RegistryServiceStatus {
	have := v.cs.Status.RegistryServiceStatus
	name, namespace, port := "", "", ""
	switch {
	case v.runsPods() && v.service() != nil:
		name, namespace, port = v.service().Name, v.cs.Namespace, grpcPortText
	case v.mode != modeAddress:
		return have
	}
	if have != nil && have.Protocol == grpcName && have.ServiceName == name && have.ServiceNamespace == namespace && have.Port == port && !have.CreatedAt.IsZero() {
		return have
	}
	want := v1alpha1.RegistryServiceStatus{Protocol: grpcName, ServiceName: name, ServiceNamespace: namespace, Port: port}
	switch {
	case have != nil && !have.CreatedAt.IsZero():
		want.CreatedAt = have.CreatedAt
	case v.runsPods() && !v.service().CreationTimestamp.IsZero():
		want.CreatedAt = v.service().CreationTimestamp
	default:
		want.CreatedAt = olmcore.Timestamp(v.in.Now)
	}
	return &want
}

// statusAction writes the status. It keeps what others own.
func (v *view) statusAction(c *statusChange, conditions []metav1.Condition) olmcore.Action {
	cs := v.in.CatalogSource
	after := cs.DeepCopy()
	s := &after.Status
	s.Reason, s.Message = c.reason, c.message
	s.RegistryServiceStatus, s.GRPCConnectionState = c.service.DeepCopy(), c.connection.DeepCopy()
	s.LatestImageRegistryPoll, s.ConfigMapResource = c.poll.DeepCopy(), c.configMap.DeepCopy()
	s.Conditions = slices.DeleteFunc(s.Conditions, func(have metav1.Condition) bool {
		return optional(have.Type) && meta.FindStatusCondition(conditions, have.Type) == nil
	})
	for _, want := range conditions {
		s.Conditions, _ = olmcore.SetCondition(s.Conditions, want, v.in.Now)
	}
	return olmcore.UpdateStatusOf(cs, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: conditions[0].Message})
}

// transitions are the state changes that the status records.
func (v *view) transitions(c *statusChange, available metav1.Condition) (changes []olmcore.Transition) {
	target := olmcore.RefOf(v.in.CatalogSource).Unversioned()
	if c.from != c.to {
		t := olmcore.Transition{
			Target: target, Type: "State", From: string(c.from), To: string(c.to), Status: available.Status,
			Reason: available.Reason, Message: available.Message, Certainty: olmcore.CertaintyObserved,
			At: olmcore.Timestamp(v.in.Now), Bound: olmcore.NotAfter,
		}
		if at, bound := v.evidence(available.Reason); !at.IsZero() && !at.After(v.in.Now) {
			t.At, t.Bound = olmcore.Timestamp(at), bound
		}
		changes = append(changes, t)
	}
	before, after := v.cs.Status.GRPCConnectionState, c.connection
	if after == nil || before == after || before != nil && before.LastObservedState == after.LastObservedState || v.in.Connection == nil ||
		v.in.Connection.Address != after.Address {
		return changes
	}
	t := olmcore.Transition{
		Target: target, Type: "Connection", To: after.LastObservedState, Certainty: olmcore.CertaintyObserved,
		At: olmcore.Timestamp(v.in.Now), Bound: olmcore.NotAfter, Message: after.Address,
	}
	if before != nil {
		t.From = before.LastObservedState
	}
	if at := v.connectionSince(after); !at.IsZero() {
		t.At, t.Bound = olmcore.Timestamp(at), olmcore.Exact
	}
	return append(changes, t)
}

// evidence is when the Pods say that the catalog began to serve, or stopped; zero
// when they do not.
func (v *view) evidence(reason string) (at time.Time, bound olmcore.Bound) {
	had := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionAvailable)
	if reason != ReasonRegistryServing && reason != ReasonNoReadyPods || had != nil && had.Reason == reason {
		return at, bound
	}
	for i := range v.pods {
		p := &v.pods[i]
		if p.class == ClassForeign || p.role != roleServing || p.serves() != (reason == ReasonRegistryServing) {
			continue
		}
		for j := range p.pod.Status.Conditions {
			c := &p.pod.Status.Conditions[j]
			switch since := c.LastTransitionTime.Time; {
			case c.Type != corev1.PodReady:
			case reason == ReasonRegistryServing && (at.IsZero() || since.Before(at)):
				at, bound = since, olmcore.Exact
			case reason == ReasonNoReadyPods && c.Status != corev1.ConditionTrue && since.After(at):
				at, bound = since, olmcore.NotBefore
			}
		}
	}
	return at, bound
}
