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

	"github.com/olmcore/olm/csv/internal/model"
)

// State is the health of the clients of a CSV.
type State string

// States of clients.
const (
	Healthy     State = "Healthy"     // Healthy means that all clients are up to date, and all APIServices are served.
	Disrupted   State = "Disrupted"   // Disrupted means that Pods of an APIService are being replaced, as during a drain.
	Waiting     State = "Waiting"     // Waiting means that a webhook waits for its certificate, or an APIService is not served.
	Missing     State = "Missing"     // Missing means that Install must create or update a client.
	Failing     State = "Failing"     // Failing means that a webhook cannot be installed.
	NotObserved State = "NotObserved" // NotObserved means that a list was not read, so webhooks are not judged.
)

// Health is the State of the clients of a CSV, and its message. For Waiting and Missing the message is that of OLM. For
// Failing it is the problem, and for NotObserved it contains the names of the lists. Otherwise it is empty.
type Health struct {
	State   State
	Message string
}

// Messages of OLM about clients that are not up to date.
const (
	apisMissing     = "apiServices not installed"
	webhooksMissing = "webhooks not installed"
)

// Health returns Healthy if all clients are up to date and all APIServices are served. Otherwise the APIServices have
// their worst State, and webhooks usually have the State of the first one that is not up to date. A client that an
// installation repairs takes precedence over one that only needs time. While an APIService is Disrupted, the State of
// the webhooks does not count. See DisruptedFor for the end of that State.
//
// As in OLM, an admission webhook is up to date if the hash of its description matches. A conversion webhook is up to
// date if its CRDs have the strategy Webhook. The caBundle of a webhook that calls the CSV must also contain an
// authority of the Deployment.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/apiservices.go, areAPIServicesAvailable.
func (s Clients) Health() Health {
	f := factsOf(s)
	apis, webhooks := healthOfAPIs(f), healthOfWebhooks(f)
	switch {
	case apis.State == Disrupted, apis.State == Missing:
		return apis
	case apis.State == Waiting && (webhooks.State == Healthy || webhooks.State == NotObserved):
		return apis
	}
	return webhooks
}

// healthOfAPIs returns the worst health of the owned APIServices.
func healthOfAPIs(f *facts) Health {
	fromBest, worst := []State{Healthy, Disrupted, Waiting, Missing}, 0
	for _, a := range f.apis {
		worst = max(worst, slices.Index(fromBest, stateOfAPI(f.source, a)))
	}
	state := fromBest[worst]
	if state == Waiting || state == Missing {
		return Health{state, apisMissing}
	}
	return Health{State: state}
}

// healthOfWebhooks returns the health of the first webhook or conversion that is not up to date.
func healthOfWebhooks(f *facts) Health {
	if unread := f.unread(); unread != "" {
		return Health{NotObserved, unread}
	}
	if problem := unlabelled(f.own); problem != "" {
		return Health{Failing, problem}
	}
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		switch {
		case isConversion(w) && f.converts(w) || !isConversion(w) && f.admits(w):
		case f.isMissing(w) && f.bundle(ServiceName(w.DeploymentName), nil) == nil:
			return Health{Waiting, webhooksMissing}
		case isConversion(w):
			return Health{Failing, "conversionWebhook not ready"}
		default:
			return Health{Missing, webhooksMissing}
		}
	}
	return Health{State: Healthy}
}

func stateOfAPI(s Clients, a *api) State {
	isServed := func(k schema.GroupVersionKind) bool { return slices.Contains(s.ServedAPIs.Items, k) }
	switch {
	case mustInstall(s, a):
		return Missing
	case a.live == nil || a.live.DeletionTimestamp != nil || !s.isAdoptable(a.live):
		return Waiting
	case !isAvailable(a.live) && s.disruptedFor(a) > 0:
		return Disrupted
	case !isAvailable(a.live):
		return Waiting
	case s.ServedAPIs.Complete && slices.ContainsFunc(a.kinds, func(k schema.GroupVersionKind) bool { return !isServed(k) }):
		return Waiting
	}
	return Healthy
}

// mustInstall reports whether Install would repair an APIService. A caBundle with an additional or missing authority
// needs no repair, because it occurs during every certificate rotation.
func mustInstall(s Clients, a *api) bool {
	if s.write(a) == nil {
		return false
	}
	return a.live == nil || !s.isRight(a) || !s.trusts(a.live.Spec.CABundle, s.wantedBundle(a.deployment, nil))
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

// DisruptedFor returns the time after which the first disrupted APIService is Waiting if nothing changes. It
// returns 0 if no APIService is disrupted.
func (s Clients) DisruptedFor() time.Duration {
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
func (s Clients) disruptedFor(a *api) time.Duration {
	d, exists := model.Find(s.Deployments, s.CSV.Namespace, a.deployment)
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
			left = max(left, disruptionLimit-model.Since(disruptedSince(p), s.Now))
		}
	}
	return min(left, disruptionLimit-model.Since(unavailable(a.live), s.Now))
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
