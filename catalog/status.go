// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// status returns the status that is observed. It keeps what others own.
func (f *facts) status(pl *plan, c conditions) v1alpha1.CatalogSourceStatus {
	s := *f.source.Status.DeepCopy()
	s.Reason, s.Message = f.legacyReason(pl)
	s.RegistryServiceStatus = f.registryService()
	s.GRPCConnectionState = f.connectionState()
	s.LatestImageRegistryPoll = f.latestPoll(pl)
	s.ConfigMapResource = f.configMapReference()
	if c.updatePolled == nil {
		meta.RemoveStatusCondition(&s.Conditions, ConditionUpdatePolled)
	}
	if c.replicasSpread == nil {
		meta.RemoveStatusCondition(&s.Conditions, ConditionReplicasSpread)
	}
	for _, condition := range c.list(f.source.Generation) {
		condition.LastTransitionTime = olmcore.Timestamp(f.now)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// statusAction writes a status; nil when it is the recorded one.
func (f *facts) statusAction(s v1alpha1.CatalogSourceStatus, why string) olmcore.Action {
	if equality.Semantic.DeepEqual(s, f.source.Status) {
		return nil
	}
	after := f.source.DeepCopy()
	after.Status = s
	return olmcore.UpdateStatusOf(f.source, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: why})
}

// legacyReason returns status.reason and status.message, in OLM's words; both
// are empty while the spec is carried out.
func (f *facts) legacyReason(pl *plan) (v1alpha1.ConditionReason, string) {
	switch {
	case f.standing.mode == modeDeleting:
		return f.source.Status.Reason, f.source.Status.Message
	case f.standing.reason != "":
		return f.standing.legacy, f.standing.message
	case pl.verdict.Failed != nil:
		pod := pl.verdict.Failed
		return v1alpha1.CatalogSourceRegistryServerError, "couldn't ensure registry server - error ensuring update pod for catalog source " + f.source.Name +
			": update pod " + pod.Name() + " in a " + clip(string(pod.Object.Status.Phase), 20) + " state: deleted update pod"
	case f.poll.Problem != "":
		return v1alpha1.CatalogSourceIntervalInvalidError, f.poll.Problem
	}
	return "", ""
}

// registryService is status.registryService. It names the Service once that is observed.
func (f *facts) registryService() *v1alpha1.RegistryServiceStatus {
	have := f.source.Status.RegistryServiceStatus
	s := v1alpha1.RegistryServiceStatus{Protocol: registry.GRPC, CreatedAt: olmcore.Timestamp(f.now)}
	service := f.objects.Service
	switch {
	case f.standing.runsPods() && service != nil:
		s.ServiceName, s.ServiceNamespace, s.Port = service.Name, f.source.Namespace, registry.Port
		if !service.CreationTimestamp.IsZero() {
			s.CreatedAt = service.CreationTimestamp
		}
	case f.standing.mode != modeAddress:
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
func (f *facts) latestPoll(pl *plan) *metav1.Time {
	last := f.lastPoll(pl)
	have := f.source.Status.LatestImageRegistryPoll
	if !f.poll.On || last.IsZero() || have != nil && have.Time.Equal(last) {
		return have
	}
	return new(olmcore.Timestamp(last))
}

func (f *facts) lastPoll(pl *plan) time.Time {
	if !pl.verdict.Polled.IsZero() {
		return pl.verdict.Polled
	}
	return f.poll.Last
}

// configMapReference is status.configMapReference.
func (f *facts) configMapReference() *v1alpha1.ConfigMapResourceReference {
	have, cm := f.source.Status.ConfigMapResource, f.configMap
	if f.standing.mode != modeConfigMap {
		return have
	}
	reference := v1alpha1.ConfigMapResourceReference{
		Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion, LastUpdateTime: olmcore.Timestamp(f.now),
	}
	if have != nil && have.Name == cm.Name && have.Namespace == cm.Namespace && have.UID == cm.UID && have.ResourceVersion == cm.ResourceVersion {
		reference.LastUpdateTime = have.LastUpdateTime
	}
	return &reference
}

// transitions are the state changes that a status records.
func (f *facts) transitions(from, to State, s v1alpha1.CatalogSourceStatus) (changes []olmcore.Transition) {
	if from != to {
		available := meta.FindStatusCondition(s.Conditions, ConditionAvailable)
		t := olmcore.Moved(olmcore.RefOf(f.source), "State", string(from), string(to), f.now)
		t.Status, t.Reason, t.Message, t.Bound = available.Status, available.Reason, available.Message, olmcore.NotAfter
		if at, bound := f.evidence(available.Reason); !at.IsZero() && !at.After(f.now) {
			t.At, t.Bound = olmcore.Timestamp(at), bound
		}
		changes = append(changes, t)
	}
	return append(changes, f.connectionTransition(s.GRPCConnectionState)...)
}

// evidence is when the Pods say that the catalog began to serve, or stopped; zero
// when they do not.
func (f *facts) evidence(reason string) (at time.Time, bound olmcore.Bound) {
	before := f.recorded(ConditionAvailable)
	serves := reason == ReasonRegistryServing
	if !serves && reason != ReasonNoReadyPods || before != nil && before.Reason == reason {
		return at, bound
	}
	for _, p := range f.pods.Select(func(p *pods.Pod) bool { return p.Owned && p.Role == pods.RoleServing && p.Serves() == serves }) {
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
