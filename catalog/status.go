// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// statusMaker makes the status of the facts and the plan.
type statusMaker struct {
	*facts
	plan *plan
}

// status returns the status that is observed. It keeps what others own.
func (m statusMaker) status(c conditions) v1alpha1.CatalogSourceStatus {
	s := *m.source.Status.DeepCopy()
	s.Reason, s.Message = m.legacyReason()
	s.RegistryServiceStatus = m.registryService()
	s.GRPCConnectionState = m.connectionState()
	s.LatestImageRegistryPoll = m.latestPoll()
	s.ConfigMapResource = m.configMapReference()
	if c.updatePolled == nil {
		meta.RemoveStatusCondition(&s.Conditions, ConditionUpdatePolled)
	}
	if c.replicasSpread == nil {
		meta.RemoveStatusCondition(&s.Conditions, ConditionReplicasSpread)
	}
	for _, condition := range c.list(m.source.Generation) {
		condition.LastTransitionTime = olmcore.Timestamp(m.now)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// action writes a status; nil when it is the recorded one.
func (m statusMaker) action(s v1alpha1.CatalogSourceStatus, why string) olmcore.Action {
	if equality.Semantic.DeepEqual(s, m.source.Status) {
		return nil
	}
	after := m.source.DeepCopy()
	after.Status = s
	return olmcore.UpdateStatusOf(m.source, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: why})
}

// legacyReason returns status.reason and status.message, in OLM's words; both
// are empty while the spec is carried out.
func (m statusMaker) legacyReason() (v1alpha1.ConditionReason, string) {
	switch {
	case m.standing.mode == modeDeleting:
		return m.source.Status.Reason, m.source.Status.Message
	case m.standing.reason != "":
		return m.standing.legacy, m.standing.message
	case m.plan.verdict.Failed != nil:
		pod := m.plan.verdict.Failed
		return v1alpha1.CatalogSourceRegistryServerError, "couldn't ensure registry server - error ensuring update pod for catalog source " + m.source.Name +
			": update pod " + pod.Name() + " in a " + clip(string(pod.Object.Status.Phase), 20) + " state: deleted update pod"
	case m.poll.Problem != "":
		return v1alpha1.CatalogSourceIntervalInvalidError, m.poll.Problem
	}
	return "", ""
}

// registryService is status.registryService. It names the Service once that is observed.
func (m statusMaker) registryService() *v1alpha1.RegistryServiceStatus {
	have := m.source.Status.RegistryServiceStatus
	s := v1alpha1.RegistryServiceStatus{Protocol: registry.GRPC, CreatedAt: olmcore.Timestamp(m.now)}
	service := m.objects.Service
	switch {
	case m.standing.runsPods() && service != nil:
		s.ServiceName, s.ServiceNamespace, s.Port = service.Name, m.source.Namespace, registry.Port
		if !service.CreationTimestamp.IsZero() {
			s.CreatedAt = service.CreationTimestamp
		}
	case m.standing.mode != modeAddress:
		return have
	}
	if have != nil && !have.CreatedAt.IsZero() {
		s.CreatedAt = have.CreatedAt
	}
	return &s
}

// latestPoll is status.latestImageRegistryPoll.
//
// Differs: it is written once the Pod that polls is observed, and is the time at
// which that was created.
func (m statusMaker) latestPoll() *metav1.Time {
	last := m.lastPoll()
	have := m.source.Status.LatestImageRegistryPoll
	if !m.poll.On || last.IsZero() || have != nil && have.Time.Equal(last) {
		return have
	}
	return new(olmcore.Timestamp(last))
}

func (m statusMaker) lastPoll() time.Time {
	if !m.plan.verdict.Polled.IsZero() {
		return m.plan.verdict.Polled
	}
	return m.poll.Last
}

// configMapReference is status.configMapReference.
func (m statusMaker) configMapReference() *v1alpha1.ConfigMapResourceReference {
	have, cm := m.source.Status.ConfigMapResource, m.configMap
	if m.standing.mode != modeConfigMap || refersTo(have, cm) {
		return have
	}
	return &v1alpha1.ConfigMapResourceReference{
		Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion, LastUpdateTime: olmcore.Timestamp(m.now),
	}
}

func refersTo(r *v1alpha1.ConfigMapResourceReference, cm *corev1.ConfigMap) bool {
	return r != nil && r.Name == cm.Name && r.Namespace == cm.Namespace && r.UID == cm.UID && r.ResourceVersion == cm.ResourceVersion
}

// transitions are the state changes that a status records.
func (m statusMaker) transitions(from, to State, s v1alpha1.CatalogSourceStatus) (changes []olmcore.Transition) {
	if from != to {
		available := meta.FindStatusCondition(s.Conditions, ConditionAvailable)
		t := olmcore.Moved(olmcore.RefOf(m.source), "State", string(from), string(to), m.now)
		t.Status, t.Reason, t.Message, t.Bound = available.Status, available.Reason, available.Message, olmcore.NotAfter
		if at, bound := m.evidence(available.Reason); !at.IsZero() && !at.After(m.now) {
			t.At, t.Bound = olmcore.Timestamp(at), bound
		}
		changes = append(changes, t)
	}
	return append(changes, m.connectionTransition(s.GRPCConnectionState)...)
}

// evidence is when the Pods say that the catalog began to serve, or stopped; zero
// when they do not.
func (m statusMaker) evidence(reason string) (at time.Time, bound olmcore.Bound) {
	before := m.recorded(ConditionAvailable)
	serves := reason == ReasonRegistryServing
	if !serves && reason != ReasonNoReadyPods || before != nil && before.Reason == reason {
		return at, bound
	}
	for _, p := range m.pods.Select(func(p *pods.Pod) bool { return p.Owned && p.Role == pods.RoleServing && p.Serves() == serves }) {
		switch since, ready := p.ReadySince(); {
		case since.IsZero():
		case serves && (at.IsZero() || since.Before(at)):
			at, bound = since, olmcore.Exact
		case !serves && !ready && since.After(at):
			at, bound = since, olmcore.NotBefore
		}
	}
	return at, bound
}
