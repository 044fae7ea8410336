// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// gone lists the Pods that an outcome deletes, with the grace periods.
func gone(out catalog.Outcome) string {
	text := ""
	for _, a := range out.Actions {
		if d, ok := a.(olmcore.Delete); ok && d.Target.Kind == "Pod" {
			text += fmt.Sprintf("%s %s %d,", d.Target.Name, d.Cause.Reason, *d.GracePeriodSeconds)
		}
	}
	return text
}

// TestWhichPodsAreForceDeleted checks for every policy, and for every reason why a Pod may not end, whether the Pod
// is deleted and with which grace period.
func TestWhichPodsAreForceDeleted(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	nowhere := func(in *catalog.Input) { in.Pods.Items[0].Spec.NodeName = "nowhere" }
	silent := func(in *catalog.Input) { silence(in, time.Hour) }
	broken := func(in *catalog.Input) { unready(in.Pods.Items[0]); setNode(in, corev1.ConditionFalse, time.Hour) }
	both := func(changes ...func(*catalog.Input)) func(*catalog.Input) {
		return func(in *catalog.Input) {
			for _, change := range changes {
				change(in)
			}
		}
	}
	deleted := func(d time.Duration) func(*catalog.Input) { return func(in *catalog.Input) { terminating(in, d) } }
	another := func(in *catalog.Input) { addPod(in, "cool-zz", func(*corev1.Pod) {}) }
	forced := func(in *catalog.Input) { in.Pods.Items[0].DeletionGracePeriodSeconds = new(int64(0)) }
	const never, gone4ever, lost, upstream = catalog.ForceDeleteNever, catalog.ForceDeleteNodeGone, catalog.ForceDeleteNodeLost, catalog.ForceDeleteUpstream
	scheduledAgo := func(d time.Duration) func(*catalog.Input) {
		return func(in *catalog.Input) { scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", in.Now.Add(-d)) }
	}
	stops := func(in *catalog.Input) { unready(in.Pods.Items[0]) }
	type graces map[catalog.ForceDeletePolicy]string
	for name, test := range map[string]struct {
		change func(*catalog.Input)
		want   graces
	}{
		"of a node gone": {nowhere, graces{never: "NodeGone 1", gone4ever: "NodeGone 0", lost: "NodeGone 0", upstream: "NodeGone 0"}},
		// A clock may be ahead, and the cache of the Nodes stale: a Pod that is ready may serve on a Node that was just
		// created.
		"ready, of a node gone, 99 s after": {both(nowhere, scheduledAgo(99*time.Second)), graces{}},
		"ready, of a node gone, 100 s after": {
			both(nowhere, scheduledAgo(100*time.Second)),
			graces{never: "NodeGone 1", gone4ever: "NodeGone 0", lost: "NodeGone 0", upstream: "NodeGone 0"},
		},
		"not ready, of a node gone, 40 s after": {
			both(nowhere, scheduledAgo(40*time.Second), stops),
			graces{never: "NodeGone 1", gone4ever: "NodeGone 0", lost: "NodeGone 0", upstream: "NodeGone 0"},
		},
		"of a node gone, being deleted":    {both(nowhere, deleted(0)), graces{gone4ever: "NodeGone 0", lost: "NodeGone 0", upstream: "NodeGone 0"}},
		"of a node gone, forced already":   {both(nowhere, deleted(0), forced), graces{}},
		"of a silent node":                 {silent, graces{}},
		"of a silent node beside another":  {both(another, silent), graces{never: "PodReplaced 1", gone4ever: "PodReplaced 1", lost: "PodReplaced 1", upstream: "PodReplaced 1"}},
		"of a silent node, being deleted":  {both(silent, deleted(-time.Second)), graces{}},
		"of a silent node, past its end":   {both(silent, deleted(0)), graces{lost: "NodeUnreachable 0", upstream: "NodeUnreachable 0"}},
		"of a broken node, past its end":   {both(broken, deleted(0)), graces{lost: "NodeNotReady 0", upstream: "NodeNotReady 0"}},
		"of a working node, overdue":       {deleted(time.Hour), graces{upstream: "Overdue 0"}},
		"of a node that is leaving":        {both(deleted(time.Hour), func(in *catalog.Input) { off(setNode(in, corev1.ConditionTrue, time.Hour)) }), graces{upstream: "Overdue 0"}},
		"of a node that came back":         {both(deleted(time.Hour), func(in *catalog.Input) { setNode(in, corev1.ConditionTrue, time.Second) }), graces{upstream: "Overdue 0"}},
		"ready, of a silent node, overdue": {both(deleted(time.Hour), func(in *catalog.Input) { setNode(in, corev1.ConditionUnknown, 30*time.Second) }), graces{lost: "Overdue 0", upstream: "Overdue 0"}},
		"ready, of a node just silent":     {both(deleted(time.Hour), func(in *catalog.Input) { setNode(in, corev1.ConditionUnknown, 29*time.Second) }), graces{upstream: "Overdue 0"}},
		"ready, of a node just broken":     {both(deleted(time.Hour), func(in *catalog.Input) { setNode(in, corev1.ConditionFalse, 59*time.Second) }), graces{upstream: "Overdue 0"}},
		"ready, of a broken node, overdue": {both(deleted(time.Hour), func(in *catalog.Input) { setNode(in, corev1.ConditionFalse, 60*time.Second) }), graces{lost: "Overdue 0", upstream: "Overdue 0"}},
		"of a node just gone, overdue": {both(deleted(time.Hour), nowhere, func(in *catalog.Input) {
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", in.Now.Add(-39*time.Second))
		}), graces{upstream: "Overdue 0"}},
		"of no node, overdue":           {both(deleted(time.Hour), func(in *catalog.Input) { in.Pods.Items[0].Spec.NodeName = "" }), graces{lost: "Overdue 0", upstream: "Overdue 0"}},
		"of nodes not read, overdue":    {both(deleted(time.Hour), func(in *catalog.Input) { in.Nodes = olmcore.Observed[*corev1.Node]{} }), graces{lost: "Overdue 0", upstream: "Overdue 0"}},
		"evicted, of nodes not read":    {func(in *catalog.Input) { in.Nodes = olmcore.Observed[*corev1.Node]{}; evicted(in, "DeletionByPodGC") }, graces{lost: "Evicted 0", upstream: "Evicted 0"}},
		"being drained":                 {both(disrupted, deleted(-time.Second)), graces{upstream: "PodDisrupted 0"}},
		"being drained, forced already": {both(disrupted, deleted(-time.Second), forced), graces{}},
		"about to be drained":           {disrupted, graces{upstream: "PodDisrupted 0"}},
		"being deleted by hand":         {deleted(-time.Second), graces{}},
		"finished":                      {func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodFailed }, graces{never: "PodTerminated 0", gone4ever: "PodTerminated 0", lost: "PodTerminated 0", upstream: "PodTerminated 0"}},
		"finished, and held": {func(in *catalog.Input) {
			terminating(in, time.Hour)
			in.Pods.Items[0].Status.Phase, in.Pods.Items[0].Finalizers = corev1.PodFailed, []string{"example.com/x"}
		}, graces{}},
		"finished, and deleted": {func(in *catalog.Input) {
			terminating(in, time.Hour)
			in.Pods.Items[0].Status.Phase = corev1.PodFailed
		}, graces{never: "PodTerminated 0", gone4ever: "PodTerminated 0", lost: "PodTerminated 0", upstream: "PodTerminated 0"}},
		"finished, with a finalizer": {func(in *catalog.Input) {
			in.Pods.Items[0].Status.Phase, in.Pods.Items[0].Finalizers = corev1.PodFailed, []string{"example.com/x"}
		}, graces{never: "PodTerminated 0", gone4ever: "PodTerminated 0", lost: "PodTerminated 0", upstream: "PodTerminated 0"}},
		"set aside, and finished": {func(in *catalog.Input) {
			in.Pods.Items[0].Status.Phase, in.Pods.Items[0].Labels = corev1.PodFailed, nil
		}, graces{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []catalog.ForceDeletePolicy{never, gone4ever, lost, upstream} {
				in := invariant.Clone(base)
				test.change(&in)
				in.Config.ForceDelete = policy
				out := answer(t, in)
				require.NoError(t, invariant.Laws(result, in))
				want := test.want[policy]
				if want != "" {
					want = in.Pods.Items[0].Name + " " + want + ","
				}
				require.Equal(t, want, gone(out), "%s", policy)
			}
		})
	}
}

// TestWhenManyNodesFailPodsAreForceDeletedOneAtATime checks that one decision deletes one Pod by force while many
// Nodes fail, and only if its Node is known to be lost.
func TestWhenManyNodesFailPodsAreForceDeletedOneAtATime(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 3}, cool())
	many := func(in *catalog.Input, bad int) {
		for i := range 6 {
			n := in.Nodes.Items[1].DeepCopy()
			n.Name = fmt.Sprint("n", i)
			if readyOf(n).Status = corev1.ConditionTrue; i < bad {
				readyOf(n).Status = corev1.ConditionUnknown
			}
			in.Nodes.Items = append(in.Nodes.Items, n)
		}
	}
	for name, test := range map[string]struct {
		bad    int
		change func(*catalog.Input, *corev1.Pod)
		want   int
	}{
		"few nodes, gone":  {0, func(_ *catalog.Input, p *corev1.Pod) { p.Spec.NodeName = "nowhere" }, 3},
		"many nodes, gone": {5, func(_ *catalog.Input, p *corev1.Pod) { p.Spec.NodeName = "nowhere" }, 1},
		"many nodes, gone and being deleted": {5, func(in *catalog.Input, p *corev1.Pod) {
			p.Spec.NodeName, p.DeletionTimestamp = "nowhere", &in.Pods.Items[0].CreationTimestamp
		}, 1},
		"few nodes, silent": {2, func(in *catalog.Input, p *corev1.Pod) {
			unready(p)
			p.Spec.NodeName, p.DeletionTimestamp = "n0", &in.Pods.Items[0].CreationTimestamp
		}, 3},
		"many nodes, silent": {5, func(in *catalog.Input, p *corev1.Pod) {
			unready(p)
			p.Spec.NodeName, p.DeletionTimestamp = "n0", &in.Pods.Items[0].CreationTimestamp
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, base, func(in *catalog.Input) {
				many(in, test.bad)
				for _, p := range in.Pods.Items {
					test.change(in, p)
				}
			})
			forced := 0
			for _, a := range out.Actions {
				if d, ok := a.(olmcore.Delete); ok && d.Target.Kind == "Pod" && *d.GracePeriodSeconds == 0 {
					forced++
				}
			}
			require.Equal(t, test.want, forced)
		})
	}
}

// TestPodsThatDoNotStartAreRemoved checks that stuck Pods are removed, except the newest one while no Pod serves.
func TestPodsThatDoNotStartAreRemoved(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	stuck := func(p *corev1.Pod) { unready(p) }
	late := func(change func(*catalog.Input)) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.Now = in.Now.Add(time.Hour)
			change(in)
		}
	}
	first := base.Pods.Items[0].Name
	for name, test := range map[string]struct {
		change func(*catalog.Input)
		want   string
	}{
		"alone": {late(func(in *catalog.Input) { stuck(in.Pods.Items[0]) }), ""},
		"and another one, newer": {late(func(in *catalog.Input) {
			stuck(in.Pods.Items[0])
			addPod(in, "cool-zz", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(50 * time.Minute)) })
		}), first + " PodStuck 1,"},
		"and another one, of the same time": {late(func(in *catalog.Input) {
			stuck(in.Pods.Items[0])
			addPod(in, "cool-zz", func(p *corev1.Pod) { p.CreationTimestamp = in.Pods.Items[0].CreationTimestamp })
		}), first + " PodStuck 1,"},
		"while another one serves": {late(func(in *catalog.Input) {
			addPod(in, "cool-zz", stuck)
			in.Pods.Items[1].CreationTimestamp = metav1.NewTime(start.Add(50 * time.Minute))
		}), "cool-zz PodStuck 1,"},
		"and a candidate, newer": {late(func(in *catalog.Input) {
			stuck(in.Pods.Items[0])
			addPod(in, "cool-zz", candidate)
			in.Pods.Items[1].CreationTimestamp = metav1.NewTime(start.Add(50 * time.Minute))
		}), "cool-zz ProgressDeadlineExceeded 1,"},
		"a candidate that is late, and goes": {late(func(in *catalog.Input) {
			addPod(in, "cool-zz", func(p *corev1.Pod) {
				candidate(p)
				p.CreationTimestamp, p.DeletionTimestamp = metav1.NewTime(start), new(metav1.NewTime(in.Now))
			})
		}), ""},
		"a candidate that may still": {func(in *catalog.Input) {
			in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
			addPod(in, "cool-zz", func(p *corev1.Pod) {
				stuck(p)
				candidate(p)
				p.Labels["olm.pod-spec-hash"] = base.Pods.Items[0].Labels["olm.pod-spec-hash"]
			})
		}, ""},
	} {
		require.Equal(t, test.want, gone(reconcile(t, base, test.change)), name)
	}
}
