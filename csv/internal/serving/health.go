// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/owned"
)

// State is the health of the APIServices of a CSV.
type APIState string

// States, from best to worst. The state of a CSV is the worst state of its APIServices.
const (
	Available  APIState = "Available"  // Available means that all APIServices are served.
	Disrupted  APIState = "Disrupted"  // Disrupted means that Pods are being replaced, for example during a drain.
	NotServed  APIState = "NotServed"  // NotServed means that an APIService or one of its kinds is not available.
	NotUpdated APIState = "NotUpdated" // NotUpdated means that Install must create or update an APIService.
)

var states = []APIState{Available, Disrupted, NotServed, NotUpdated}

// Health returns the worst State of the owned APIServices. A Disrupted APIService that does not become available
// becomes NotServed: see DisruptedFor.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/apiservices.go, areAPIServicesAvailable.
func (s APIServices) Health() APIState {
	worst := 0
	for _, a := range s.apis() {
		worst = max(worst, slices.Index(states, s.stateOf(a)))
	}
	return states[worst]
}

func (s APIServices) stateOf(a *api) APIState {
	switch {
	case s.mustInstall(a):
		return NotUpdated
	case a.live == nil || a.live.DeletionTimestamp != nil || !s.isAdoptable(a.live):
		return NotServed
	case !isAvailable(a.live) && s.disruptedFor(a) > 0:
		return Disrupted
	case !isAvailable(a.live):
		return NotServed
	case s.ServedAPIs.Complete && slices.ContainsFunc(a.kinds, func(k schema.GroupVersionKind) bool { return !slices.Contains(s.ServedAPIs.Items, k) }):
		return NotServed
	}
	return Available
}

// mustInstall reports whether Install would repair an APIService. A caBundle with an additional or missing authority
// needs no repair, because it occurs during every certificate rotation.
func (s APIServices) mustInstall(a *api) bool {
	if s.write(a) == nil {
		return false
	}
	return a.live == nil || !s.isRight(a) || !s.trusts(a)
}

func isAvailable(service *apiregistrationv1.APIService) bool {
	c := available(service)
	return c != nil && c.Status == apiregistrationv1.ConditionTrue
}

func available(service *apiregistrationv1.APIService) *apiregistrationv1.APIServiceCondition {
	for i := range service.Status.Conditions {
		if c := &service.Status.Conditions[i]; c.Type == apiregistrationv1.Available {
			return c
		}
	}
	return nil
}

// disruptionLimit is the maximum time for which an unavailable APIService is Disrupted while its Pods start or stop.
const disruptionLimit = 5 * time.Minute

// DisruptedFor returns the time after which the first disrupted APIService becomes NotServed if nothing changes. It
// returns 0 if no APIService is disrupted.
func (s APIServices) DisruptedFor() time.Duration {
	var left time.Duration
	for _, a := range s.apis() {
		if a.live == nil || isAvailable(a.live) {
			continue
		}
		l := s.disruptedFor(a)
		if l > 0 && (left == 0 || l < left) {
			left = l
		}
	}
	return left
}

// disruptedFor returns the time for which an unavailable APIService is Disrupted, because the Pods behind it start or
// stop. A user who can write in the namespace can create such Pods again and again. So the time since the APIService
// became unavailable is limited too.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/apiservices.go, isAPIServiceBackendDisrupted.
// Differs: only the Pods of the Deployment behind this APIService are considered. The time starts with the disruption
// of the Pod, not with its creation.
func (s APIServices) disruptedFor(a *api) time.Duration {
	d, exists := owned.Find(s.Deployments, s.CSV.Namespace, a.deployment)
	if !exists || s.Objects == nil || !isDegraded(d) {
		return 0
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return 0
	}
	var left time.Duration
	for _, p := range s.Objects.Pods.Items {
		if p.Namespace == s.CSV.Namespace && selector.Matches(labels.Set(p.Labels)) && isStartingOrStopping(p) {
			left = max(left, disruptionLimit-owned.Since(disruptedSince(p), s.Now))
		}
	}
	return min(left, disruptionLimit-owned.Since(unavailable(a.live), s.Now))
}

// isDegraded reports whether a Deployment has unavailable Pods, or Pods of an old spec.
func isDegraded(d *appsv1.Deployment) bool {
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	return d.Status.UnavailableReplicas > 0 || d.Status.UpdatedReplicas < replicas
}

// unavailable returns the time since which an APIService is not available.
func unavailable(service *apiregistrationv1.APIService) *metav1.Time {
	c := available(service)
	if c != nil && !c.LastTransitionTime.IsZero() {
		return &c.LastTransitionTime
	}
	return &service.CreationTimestamp
}

// starting contains the reasons of a container that waits only for a short time. stuck contains those that do not end
// by themselves.
var (
	starting = []string{"ContainerCreating", "PodInitializing"}
	stuck    = []string{"ImagePullBackOff", "ErrImagePull", "CrashLoopBackOff", "CreateContainerConfigError", "InvalidImageName"}
)

// isStartingOrStopping reports whether a Pod is starting or stopping, for example because its Node is drained.
func isStartingOrStopping(p *corev1.Pod) bool {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	waits := func(reasons []string) bool {
		return slices.ContainsFunc(statuses, func(c corev1.ContainerStatus) bool {
			return c.State.Waiting != nil && slices.Contains(reasons, c.State.Waiting.Reason)
		})
	}
	unschedulable := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	if unschedulable || waits(stuck) {
		return false
	}
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending && len(statuses) == 0 || waits(starting)
}

// disruptedSince returns the time since which a Pod is starting or stopping. This is the time at which its deletion was
// requested. Without a deletion, it is the time at which it was scheduled or became unready, or else its creation time.
func disruptedSince(p *corev1.Pod) *metav1.Time {
	if p.DeletionTimestamp != nil {
		grace := int64(0)
		if p.DeletionGracePeriodSeconds != nil {
			grace = min(max(0, *p.DeletionGracePeriodSeconds), int64(maxGrace/time.Second))
		}
		return new(metav1.NewTime(p.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)))
	}
	var last metav1.Time
	for _, c := range p.Status.Conditions {
		if (c.Type == corev1.PodScheduled || c.Type == corev1.PodReady) && c.LastTransitionTime.After(last.Time) {
			last = c.LastTransitionTime
		}
	}
	if last.IsZero() {
		last = p.CreationTimestamp
	}
	return &last
}

// maxGrace is the longest grace period that is used, so that the arithmetic does not overflow.
const maxGrace = 10 * 365 * 24 * time.Hour
