// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// status returns the status that is observed. It keeps what others own.
func (r *report) status() v1alpha1.CatalogSourceStatus {
	s := *r.CatalogSource.Status.DeepCopy()
	s.Reason, s.Message = r.legacyReason()
	s.RegistryServiceStatus = r.registryService()
	if r.link.address != "" {
		// Differs: lastConnect is when this catalog's client connected, not when any catalog's client changed.
		s.GRPCConnectionState = &v1alpha1.GRPCConnectionState{
			Address: r.link.address, LastObservedState: r.link.state, LastConnectTime: r.link.connected,
		}
	}
	if have := s.LatestImageRegistryPoll; r.poll.On && !r.lastPoll.IsZero() && (have == nil || !have.Time.Equal(r.lastPoll)) {
		// Differs: it is written once the Pod that polls is observed, and is the time at which that was created.
		s.LatestImageRegistryPoll = new(olmcore.Timestamp(r.lastPoll))
	}
	if cm := r.ConfigMap; r.standing.mode == modeConfigMap && !refersTo(s.ConfigMapResource, cm) {
		s.ConfigMapResource = &v1alpha1.ConfigMapResourceReference{
			Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion, LastUpdateTime: olmcore.Timestamp(r.Now),
		}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Type == ConditionUpdatePolled && r.updatePolled == nil || c.Type == ConditionReplicasSpread && r.replicasSpread == nil
	})
	for _, condition := range r.conditions() {
		condition.LastTransitionTime = olmcore.Timestamp(r.Now)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// legacyReason returns status.reason and status.message, in OLM's words; both are empty while the spec is carried out.
func (r *report) legacyReason() (v1alpha1.ConditionReason, string) {
	failed := r.verdict.Failed
	switch {
	case r.standing.mode == modeDeleting:
		return r.CatalogSource.Status.Reason, r.CatalogSource.Status.Message
	case r.standing.reason != "":
		return r.standing.legacy, r.standing.message
	case failed != nil:
		return v1alpha1.CatalogSourceRegistryServerError, "couldn't ensure registry server - error ensuring update pod for catalog source " +
			r.CatalogSource.Name + ": update pod " + failed.Name + " in a " + clip(string(failed.Status.Phase), 20) + " state: deleted update pod"
	case r.poll.Problem != "":
		return v1alpha1.CatalogSourceIntervalInvalidError, r.poll.Problem
	}
	return "", ""
}

// registryService is status.registryService. It names the Service once that is observed.
func (r *report) registryService() *v1alpha1.RegistryServiceStatus {
	have, service := r.CatalogSource.Status.RegistryServiceStatus, r.registry.Observed.Service
	s := v1alpha1.RegistryServiceStatus{Protocol: registry.GRPC, CreatedAt: olmcore.Timestamp(r.Now)}
	switch {
	case r.standing.runsPods() && service != nil:
		s.ServiceName, s.ServiceNamespace, s.Port = service.Name, service.Namespace, registry.Port
		if !service.CreationTimestamp.IsZero() {
			s.CreatedAt = service.CreationTimestamp
		}
	case r.standing.mode != modeAddress:
		return have
	}
	if have != nil && !have.CreatedAt.IsZero() {
		s.CreatedAt = have.CreatedAt
	}
	return &s
}

func refersTo(r *v1alpha1.ConfigMapResourceReference, cm *corev1.ConfigMap) bool {
	return r != nil && r.Name == cm.Name && r.Namespace == cm.Namespace && r.UID == cm.UID && r.ResourceVersion == cm.ResourceVersion
}

// transitions are the state changes that a status records.
func (r *report) transitions(after v1alpha1.CatalogSourceStatus) (changes []olmcore.Transition) {
	if r.before != r.state {
		t := olmcore.Moved(olmcore.RefOf(r.CatalogSource), "State", string(r.before), string(r.state), r.Now)
		t.Status, t.Reason, t.Message, t.Bound = r.available.Status, r.available.Reason, r.available.Message, olmcore.NotAfter
		if at, bound := r.evidence(); !at.IsZero() && !at.After(r.Now) {
			t.At, t.Bound = olmcore.Timestamp(at), bound
		}
		changes = append(changes, t)
	}
	return append(changes, r.connectionTransition(after.GRPCConnectionState)...)
}

// evidence is when the Pods say that the catalog began to serve, or stopped; zero when they do not.
func (r *report) evidence() (at time.Time, bound olmcore.Bound) {
	before, reason := r.recorded(ConditionAvailable), r.available.Reason
	serves := reason == ReasonRegistryServing
	if !serves && reason != ReasonNoReadyPods || before != nil && before.Reason == reason {
		return at, bound
	}
	for _, p := range r.pods.choose(func(p *registryPod) bool { return p.Owned && p.Role == roleServing && p.serves() == serves }) {
		c := podCondition(p.Pod, corev1.PodReady)
		switch since := c.LastTransitionTime.Time; {
		case since.IsZero():
		case serves && (at.IsZero() || since.Before(at)):
			at, bound = since, olmcore.Exact
		case !serves && c.Status != corev1.ConditionTrue && since.After(at):
			at, bound = since, olmcore.NotBefore
		}
	}
	return at, bound
}
