// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var unavailable = live(func(a *apiregistrationv1.APIService) { setAvailable(a, apiregistrationv1.ConditionFalse, time.Minute) })

func TestHealthOfAPIService(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   internalserving.State
	}{
		"served":              {func(*internalserving.Clients) {}, internalserving.Healthy},
		"no owned APIService": {func(s *internalserving.Clients) { s.CSV.Spec.APIServiceDefinitions.Owned = nil }, internalserving.Healthy},
		"nothing at all":      {func(s *internalserving.Clients) { *s = internalserving.Clients{} }, internalserving.Healthy},
		"absent":              {absent, internalserving.Missing},
		"not available":       {unavailable, internalserving.Waiting},
		"unknown": {
			live(func(a *apiregistrationv1.APIService) { setAvailable(a, apiregistrationv1.ConditionUnknown, 0) }), internalserving.Waiting,
		},
		"no condition": {live(func(a *apiregistrationv1.APIService) { a.Status.Conditions = nil }), internalserving.Waiting},
		"going": {
			live(func(a *apiregistrationv1.APIService) { a.DeletionTimestamp = csvtest.Ago(0) }), internalserving.Waiting,
		},
		"one kind is not served": {func(s *internalserving.Clients) { s.ServedAPIs.Items = s.ServedAPIs.Items[1:] }, internalserving.Waiting},
		"discovery was not asked": {
			func(s *internalserving.Clients) { s.ServedAPIs = olmcore.Observed[schema.GroupVersionKind]{} }, internalserving.Healthy,
		},
		"another Service":          {live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "x" }), internalserving.Missing},
		"no service reference":     {live(func(a *apiregistrationv1.APIService) { a.Spec.Service = nil }), internalserving.Missing},
		"an untrusted certificate": {live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = otherCA }), internalserving.Missing},
		"one of two is absent": {
			changes(secondAPI, unavailable, func(s *internalserving.Clients) { s.APIServices = s.APIServices[:1] }), internalserving.Missing,
		},
		"one of two is not served": {secondAPI, internalserving.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			require.Equal(t, c.want, s.Health().State)
			require.Zero(t, s.DisruptedFor())
		})
	}
}

// waiting returns the status of a container that waits.
func waiting(reason string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
}

func runningContainer() []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

// pod returns a Pod of the Deployment that has been running for a day.
func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named("ns", "cool-1", map[string]string{"app": "cool"})}
	p.CreationTimestamp = *csvtest.Ago(24 * time.Hour)
	p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, runningContainer()
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *csvtest.Ago(24 * time.Hour)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: *csvtest.Ago(24 * time.Hour)},
	}
	change(p)
	return p
}

// pending returns a Pod that was scheduled some time ago.
func pending(since time.Duration, change func(*corev1.Pod)) *corev1.Pod {
	return pod(func(p *corev1.Pod) {
		p.CreationTimestamp = *csvtest.Ago(since)
		p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, nil
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *csvtest.Ago(since)},
		}
		change(p)
	})
}

func terminating(since time.Duration, grace *int64) *corev1.Pod {
	return pod(func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = csvtest.Ago(since), grace })
}

// drained changes the fixture: its APIService became unavailable a minute ago, and it has these Pods.
func drained(pods ...*corev1.Pod) func(*internalserving.Clients) {
	return changes(unavailable, func(s *internalserving.Clients) {
		s.Deployments[0].Status.UnavailableReplicas = 1
		s.Objects.Pods = olmcore.Found(pods...)
	})
}

func TestStartingAndStoppingPodsExcuseUnavailableAPIService(t *testing.T) {
	same := func(*corev1.Pod) {}
	waits := func(reason string) *corev1.Pod {
		return pending(time.Minute, func(p *corev1.Pod) { p.Status.ContainerStatuses = waiting(reason) })
	}
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   time.Duration // for which it is excused; 0: not at all
	}{
		"no Pod":                               {drained(), 0},
		"a healthy Pod":                        {drained(pod(same)), 0},
		"one is Terminating":                   {drained(terminating(time.Minute, nil)), 4 * time.Minute},
		"its grace period counts, too":         {drained(terminating(-20*time.Second, new(int64(30)))), 4 * time.Minute},
		"after grace and all":                  {drained(terminating(2*time.Minute, new(int64(60)))), 2 * time.Minute},
		"a negative grace period":              {drained(terminating(time.Minute, new(int64(-600)))), 4 * time.Minute},
		"an endless grace period":              {drained(terminating(-time.Hour, new(int64(math.MaxInt64)))), 0},
		"it has been Terminating for too long": {drained(terminating(5*time.Minute, nil)), 0},
		"one is Pending without statuses":      {drained(pending(time.Minute, same)), 4 * time.Minute},
		"one is Running without statuses":      {drained(pending(time.Minute, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })), 0},
		"a container is created":               {drained(waits("ContainerCreating")), 4 * time.Minute},
		"a Pod is initialized":                 {drained(waits("PodInitializing")), 4 * time.Minute},
		"a container waits for another reason": {drained(waits("Other")), 0},
		"an init container is created": {
			drained(pending(2*time.Minute, func(p *corev1.Pod) { p.Status.InitContainerStatuses = waiting("ContainerCreating") })), 3 * time.Minute,
		},
		"no image":                 {drained(waits("ImagePullBackOff")), 0},
		"no image at first":        {drained(waits("ErrImagePull")), 0},
		"it crashes":               {drained(waits("CrashLoopBackOff")), 0},
		"its configuration is bad": {drained(waits("CreateContainerConfigError")), 0},
		"its image name is bad":    {drained(waits("InvalidImageName")), 0},
		"no image of an init container": {drained(pending(time.Minute, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = waiting("ImagePullBackOff"), waiting("PodInitializing")
		})), 0},
		"one that crashes is Terminating": {drained(pod(func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Status.ContainerStatuses = csvtest.Ago(0), waiting("CrashLoopBackOff")
		})), 0},
		"no node has room": {drained(pending(time.Minute, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: *csvtest.Ago(time.Minute)},
			}
		})), 0},
		"it has been Pending for too long": {drained(pending(5*time.Minute, same)), 0},
		"it was made long ago and has no conditions": {drained(pending(time.Minute, func(p *corev1.Pod) {
			p.CreationTimestamp, p.Status.Conditions = *csvtest.Ago(time.Hour), nil
		})), 0},
		"it was made just now and has no conditions": {
			drained(pending(time.Minute, func(p *corev1.Pod) { p.Status.Conditions = nil })), 4 * time.Minute,
		},
		"a Pod of a day ceased to be ready": {drained(pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = waiting("ContainerCreating")
			p.Status.Conditions[1].Status, p.Status.Conditions[1].LastTransitionTime = corev1.ConditionFalse, *csvtest.Ago(30 * time.Second)
		})), 4 * time.Minute},
		"it was scheduled long after it was made": {
			drained(pending(time.Minute, func(p *corev1.Pod) { p.CreationTimestamp = *csvtest.Ago(time.Hour) })), 4 * time.Minute,
		},
		"one healthy, one on its way": {drained(pod(same), terminating(0, nil)), 4 * time.Minute},
		"one stuck, one on its way":   {drained(waits("CrashLoopBackOff"), terminating(0, nil)), 4 * time.Minute},
		"a Pod of another operator": {
			drained(pod(func(p *corev1.Pod) { p.Labels, p.DeletionTimestamp = map[string]string{"app": "x"}, csvtest.Ago(0) })), 0,
		},
		"a Pod of another namespace": {
			drained(pod(func(p *corev1.Pod) { p.Namespace, p.DeletionTimestamp = "x", csvtest.Ago(0) })), 0,
		},
		"the clock was set back": {drained(terminating(-time.Hour, nil)), 4 * time.Minute},
		"all replicas are available": {
			changes(drained(terminating(0, nil)), backing(func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = 0 })), 0,
		},
		"a replica is old": {changes(drained(terminating(0, nil)), backing(func(d *appsv1.Deployment) {
			d.Status.UnavailableReplicas, d.Status.UpdatedReplicas = 0, 0
		})), 4 * time.Minute},
		"one replica is the default": {changes(drained(terminating(0, nil)), backing(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status.UnavailableReplicas, d.Status.UpdatedReplicas = nil, 0, 0
		})), 4 * time.Minute},
		"a Deployment without a selector": {
			changes(drained(terminating(0, nil)), backing(func(d *appsv1.Deployment) { d.Spec.Selector = nil })), 0,
		},
		"a selector that is bad": {changes(drained(terminating(0, nil)), backing(func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Operator: "?"}}
		})), 0},
		"no Deployment": {changes(drained(terminating(0, nil)), func(s *internalserving.Clients) { s.Deployments = nil }), 0},
		"another Deployment is disturbed": {changes(drained(terminating(0, nil)), func(s *internalserving.Clients) {
			other := s.Deployments[0].DeepCopy()
			other.Name = "other"
			s.Deployments[0].Status.UnavailableReplicas = 0
			s.Deployments = append(s.Deployments, other)
		}), 0},
		"no condition says since when": {changes(drained(terminating(0, nil)), live(func(a *apiregistrationv1.APIService) {
			a.Status.Conditions, a.CreationTimestamp = nil, *csvtest.Ago(2 * time.Minute)
		})), 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			want := internalserving.Disrupted
			if c.want == 0 {
				want = internalserving.Waiting
			}
			require.Equal(t, want, s.Health().State)
			require.Equal(t, c.want, s.DisruptedFor())
			if c.want == 0 {
				return
			}
			s.Now = csvtest.Now.Add(c.want - time.Nanosecond)
			require.Equal(t, internalserving.Disrupted, s.Health().State, "until then")
			s.Now = csvtest.Now.Add(c.want)
			require.NotEqual(t, internalserving.Disrupted, s.Health().State, "and no longer")
		})
	}
}

// TestPodsExcuseUnavailableAPIServiceForLimitedTime checks that a tenant cannot hide an unavailable API. A user who can
// write Pods can create one after the other, or Pods with times in the future. Only the API server records since when
// the API is unavailable.
func TestPodsExcuseUnavailableAPIServiceForLimitedTime(t *testing.T) {
	s := changed(drained())
	for minute := range 10 {
		s.Now = csvtest.Now.Add(time.Duration(minute) * time.Minute)
		fresh := pending(0, func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(s.Now.Add(time.Hour))
			p.Status.Conditions = nil
		})
		gone := terminating(-time.Duration(minute+60)*time.Minute, new(int64(0)))
		s.Objects.Pods = olmcore.Found(fresh, gone)
		want := internalserving.Disrupted
		if minute >= 4 {
			want = internalserving.Waiting
		}
		require.Equal(t, want, s.Health().State, "after %d minutes", minute)
	}
}

// TestHealthIsTheWorstState checks that a problem that an installation repairs is not waited for.
func TestHealthIsTheWorstState(t *testing.T) {
	s := changed(drained(terminating(0, nil)), secondAPI)
	s.ServedAPIs = olmcore.Observed[schema.GroupVersionKind]{}
	require.Equal(t, internalserving.Disrupted, s.Health().State)
	setAvailable(s.APIServices[1], apiregistrationv1.ConditionFalse, 3*time.Minute)
	require.Equal(t, internalserving.Disrupted, s.Health().State)
	require.Equal(t, 2*time.Minute, s.DisruptedFor(), "of the one that ends first")
	setAvailable(s.APIServices[1], apiregistrationv1.ConditionFalse, 6*time.Minute)
	require.Equal(t, internalserving.Waiting, s.Health().State)
	s.APIServices = s.APIServices[:1]
	require.Equal(t, internalserving.Missing, s.Health().State)
}
