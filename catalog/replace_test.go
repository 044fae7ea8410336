// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// ended lets the Pod have run for a time and finished some time ago.
func ended(in *catalog.Input, attempt string, ran, ago time.Duration) {
	p := in.Pods.Items[0]
	p.Status.Phase, p.Annotations["olmcore/attempt"] = corev1.PodFailed, attempt
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		StartedAt: metav1.NewTime(in.Now.Add(-ago - ran)), FinishedAt: metav1.NewTime(in.Now.Add(-ago)),
	}}
}

// TestBackoffOfReplacements checks that the backoff doubles with each attempt up to its maximum and starts again
// after a long run, and that the replacement of a lost Pod waits for the cooldown.
func TestBackoffOfReplacements(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	after := func(attempt string, ran time.Duration) func(*catalog.Input, time.Duration) {
		return func(in *catalog.Input, ago time.Duration) { ended(in, attempt, ran, ago) }
	}
	for name, test := range map[string]struct {
		change  func(in *catalog.Input, ago time.Duration)
		wait    time.Duration
		attempt string
	}{
		"the first":          {after("1", time.Minute), 10 * time.Second, "2"},
		"no number":          {after("x", time.Minute), 10 * time.Second, "2"},
		"less than none":     {after("-5", time.Minute), 10 * time.Second, "2"},
		"the second":         {after("2", time.Minute), 20 * time.Second, "3"},
		"the fifth":          {after("5", time.Minute), 160 * time.Second, "6"},
		"the sixth":          {after("6", time.Minute), 5 * time.Minute, "7"},
		"a great number":     {after("99999999", time.Minute), 5 * time.Minute, "20"},
		"after ten minutes":  {after("6", 10*time.Minute), 10 * time.Second, "1"},
		"just short of that": {after("6", 10*time.Minute-time.Second), 5 * time.Minute, "7"},
		"the last container to end counts": {func(in *catalog.Input, ago time.Duration) {
			ended(in, "1", time.Minute, ago)
			early := in.Pods.Items[0].Status.ContainerStatuses[0]
			early.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				StartedAt: metav1.NewTime(start.Add(-time.Hour)), FinishedAt: metav1.NewTime(start.Add(-time.Minute)),
			}}
			in.Pods.Items[0].Status.ContainerStatuses = append(in.Pods.Items[0].Status.ContainerStatuses, early)
		}, 10 * time.Second, "2"},
		"nothing is known of its end": {func(in *catalog.Input, ago time.Duration) {
			in.Pods.Items[0].Status.Phase = corev1.PodFailed
			unreadyFor(in, ago)
		}, 10 * time.Second, "2"},
		"a node of late": {func(in *catalog.Input, ago time.Duration) {
			in.Pods.Items[0].Spec.NodeName, in.Pods.Items[0].Annotations["olmcore/purpose"], in.Pods.Items[0].Annotations["olmcore/attempt"] = "nowhere", "failover", "3"
			in.Pods.Items[0].CreationTimestamp = metav1.NewTime(in.Now.Add(-ago))
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", start)
		}, 60 * time.Second, "3"},
	} {
		for _, early := range []time.Duration{time.Second, 0} {
			in := invariant.Clone(base)
			test.change(&in, test.wait-early)
			out := answer(t, in)
			require.NoError(t, invariant.Laws(result, in), name)
			made := ""
			for _, a := range out.Actions {
				if c, ok := a.(olmcore.Create); ok {
					made += c.Object.GetAnnotations()["olmcore/attempt"]
				}
			}
			if early > 0 {
				require.Empty(t, made, name)
				require.Equal(t, early, out.RequeueAfter, name)
				require.Equal(t, catalog.ReasonBackOff, catalog.Assess(in).WaitingFor, name)
				require.Equal(t, strings.Contains(name, "node"), strings.Contains(fmt.Sprint(done(out)), "delete"), "the Pod is the memory: %s", name)
				continue
			}
			require.Equal(t, test.attempt, made, name)
		}
	}
}

// TestOnlyReplacementsOfLostPodsStartTheCooldown checks that Pods of others, and Pods created for other reasons, do
// not start the cooldown.
func TestOnlyReplacementsOfLostPodsStartTheCooldown(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		waits  bool
	}{
		"a failover":      {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"] = "failover" }, true},
		"a refill":        {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"] = "refill" }, false},
		"somebody else's": {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"], p.OwnerReferences = "failover", nil }, false},
		"a failover of long ago": {func(p *corev1.Pod) {
			p.Annotations["olmcore/purpose"], p.CreationTimestamp = "failover", metav1.NewTime(start)
		}, false},
	} {
		in := invariant.Clone(base)
		in.Pods.Items[0].Spec.NodeName = "nowhere"
		addPod(&in, "cool-zz", func(p *corev1.Pod) {
			p.CreationTimestamp, p.Status.Phase = metav1.NewTime(in.Now.Add(-time.Second)), corev1.PodSucceeded
			p.DeletionTimestamp = new(metav1.NewTime(in.Now))
			test.change(p)
		})
		out := answer(t, in)
		require.Equal(t, test.waits, !strings.Contains(fmt.Sprint(done(out)), "create"), "%s: %v", name, done(out))
	}
}

// TestOrderOfReplacements checks that lost Pods are replaced before terminating Pods, those before failed Pods, and
// the newest first. No Pod is replaced twice.
func TestOrderOfReplacements(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for pods, want := range map[string]string{
		"terminating,lost": "uid2", "lost,terminating": "uid1", "finished,terminating": "uid2", "terminating,finished": "uid1",
		"terminating,terminating young": "uid2", "terminating young,terminating": "uid1", "terminating,terminating": "uid2",
		"old unready,terminating": "uid2", "old unready,finished": "uid2", "candidate terminating,finished": "uid2",
	} {
		in := invariant.Clone(base)
		in.Pods.Items = described(&in, pods)
		out := answer(t, in)
		require.Equal(t, want, out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/replaces"], pods)
		in.Pods.Items[0].Annotations["olmcore/replaces"] = want
		out = answer(t, in)
		require.NotEqual(t, want, out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/replaces"], "%s, replaced already", pods)
	}
}

// refusing is an API server that rejects Pods with another text each time.
type refusing struct {
	*fake.Cluster
	tries []time.Time
}

func (r *refusing) Do(ctx context.Context, a olmcore.Action) error {
	if verb, target, _ := a.Describe(); verb == olmcore.VerbCreate && target.Kind == "Pod" {
		r.tries = append(r.tries, r.Now())
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, target.Name, fmt.Errorf("request %d: %w", len(r.tries), errBroken))
	}
	return r.Cluster.Do(ctx, a)
}

// operate runs a controller for a time. It reconciles after each write and at each deadline, and passes the results
// of the last actions.
func operate(t *testing.T, c *fake.Cluster, x olmcore.Executor, config catalog.Config, d time.Duration) catalog.Assessment {
	var last olmcore.LastResults
	for until := c.Now().Add(d); ; {
		require.NoError(t, c.Settle())
		in, err := catalog.Gather(t.Context(), c, coolKey, config)
		require.NoError(t, err)
		in.Now, in.LastRun = c.Now(), last
		require.NoError(t, invariant.Laws(result, in))
		out := answer(t, in)
		if len(out.Actions) > 0 {
			last = olmcore.LastResultsOf(last, out.Actions, olmcore.Run(t.Context(), x, out.Actions), c.Now())
			continue
		}
		if !c.Now().Before(until) {
			return catalog.Assess(in)
		}
		next := until
		if at := c.Now().Add(out.RequeueAfter); out.RequeueAfter > 0 && at.Before(until) {
			next = at
		}
		require.NoError(t, c.RunFor(next.Sub(c.Now())))
	}
}

// TestARejectedPodIsRetriedWithBackoff checks that a Pod that the API server rejects is retried with backoff, and
// that Pods that serve continue to serve.
func TestARejectedPodIsRetriedWithBackoff(t *testing.T) {
	for name, serves := range map[string]bool{"the first Pod": false, "the Pod of a new spec": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, catalog.Config{}, cool())
			if serves {
				w.run(t, time.Minute)
				require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = "quay.io/example/catalog:v2" }))
			}
			api := &refusing{Cluster: w.Cluster}
			a := operate(t, w.Cluster, api, catalog.Config{}, time.Hour)
			require.Equal(t, serves, a.Ready == 1)
			require.Equal(t, catalog.ReasonPodRejected, a.WaitingFor)
			require.Equal(t, catalog.ReasonPodRejected, a.Conditions[2].Reason)
			require.Contains(t, a.Conditions[2].Message, `pods "cool-`)
			require.Contains(t, a.Conditions[2].Message, "request "+strconv.Itoa(len(api.tries)-1), "the answer before the last one")
			var waits []time.Duration
			for i := 1; i < len(api.tries); i++ {
				waits = append(waits, api.tries[i].Sub(api.tries[i-1]))
			}
			// The second try goes with the write of the status.
			require.Equal(t, []time.Duration{0, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute}, waits[:6])
			require.Len(t, api.tries, 6+(3600-300)/300)

			a = operate(t, w.Cluster, w.Cluster, catalog.Config{}, 5*time.Minute)
			require.Equal(t, catalog.StateServing, a.State)
			require.Empty(t, a.WaitingFor)
			require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason)
		})
	}
}

// TestACandidateThatFinishesIsReplacedAfterTheBackoff checks that a candidate that finished is replaced after the
// backoff.
func TestACandidateThatFinishesIsReplacedAfterTheBackoff(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	arrange := func(age time.Duration) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
			addPod(in, "cool-zz", func(p *corev1.Pod) {
				candidate(p)
				p.Labels["olm.pod-spec-hash"] = base.Pods.Items[0].Labels["olm.pod-spec-hash"]
				p.Status.Phase, p.Annotations["olmcore/attempt"] = corev1.PodFailed, "2"
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(in.Now.Add(-age))}}
			})
		}
	}
	out := reconcile(t, base, arrange(19*time.Second))
	require.Empty(t, done(out))
	require.Equal(t, time.Second, out.RequeueAfter)
	out = reconcile(t, base, arrange(20*time.Second))
	require.Equal(t, []string{"create a Pod PodOutdated", "delete cool-zz PodTerminated"}, done(out))
	require.Equal(t, "3", out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/attempt"])
}

// TestSlowStartupProbesExtendTheDeadline checks that the deadline of a Pod is longer than its startup probes.
// Otherwise no new Pod of a slow registry would ever serve.
func TestSlowStartupProbesExtendTheDeadline(t *testing.T) {
	for _, test := range []struct {
		config catalog.Config
		want   time.Duration
	}{
		{catalog.Config{}, 10 * time.Minute},
		{catalog.Config{StartupFailureThreshold: 30}, 10 * time.Minute},
		{catalog.Config{StartupFailureThreshold: 180}, time.Hour},
		{catalog.Config{StartupFailureThreshold: math.MaxInt32}, 48 * time.Hour},
	} {
		base := converged(t, test.config, cool())
		in := invariant.Clone(base)
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
		addPod(&in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			unready(p)
			p.Labels["olm.pod-spec-hash"], p.CreationTimestamp = base.Pods.Items[0].Labels["olm.pod-spec-hash"], metav1.NewTime(in.Now)
		})
		require.True(t, catalog.Assess(in).NextDeadline.Equal(in.Now.Add(test.want)), "%+v", test)
		in.Now = in.Now.Add(test.want) // a stuck candidate is a late one
		out := answer(t, in)
		require.Equal(t, []string{"delete cool-zz ProgressDeadlineExceeded"}, done(out))
	}
}
