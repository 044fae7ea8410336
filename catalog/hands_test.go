// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestAPodThatIsSetAsideIsReplaced: somebody takes a Pod's labels, to look at it in
// peace, and perhaps its owner too. It serves no longer, takes nobody's room or name,
// and is left alone; and its troubles are not the catalog's.
func TestAPodThatIsSetAsideIsReplaced(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"its labels": func(p *corev1.Pod) { p.Labels = nil },
		"its labels and its owner": func(p *corev1.Pod) {
			p.Labels, p.OwnerReferences = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, catalog.Config{}, cool())
			aside := map[string]bool{}
			for range 4 {
				w.run(t, time.Minute)
				in := w.input(t)
				a := catalog.Assess(in)
				require.Equal(t, catalog.StateServing, a.State)
				require.Equal(t, 1, a.Ready)
				for _, pod := range a.Pods {
					require.Equal(t, !aside[pod.Name], pod.Serves, pod.Name)
					if pod.Serves {
						aside[pod.Name] = true
						require.NoError(t, fake.Edit(w.Cluster, "olm", pod.Name, change))
					}
				}
				requireSameAnswer(t, w)
			}
			w.run(t, time.Minute)
			require.NoError(t, w.FailNode(map[string]string{"a": "b", "b": "a"}[servesOn(t, w)]))
			w.run(t, 2*time.Minute)
			a := catalog.Assess(w.input(t))
			require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason, a.Conditions[2].Message)
			for pod := range aside {
				left, err := olmcore.Get[*corev1.Pod](t.Context(), w.Cluster, "olm", pod)
				require.NoError(t, err)
				require.True(t, left != nil && left.DeletionTimestamp == nil, "%s was touched", pod)
			}
		})
	}
	require.Equal(t, []types.NamespacedName{coolKey}, catalog.Affected(pod("cool-w4nrrin4qx")), "its name may be free again")
	require.Equal(t, []types.NamespacedName{{Namespace: "olm"}}, catalog.Affected(pod("a-catalog-with-a-name-that-is-as-long-as-can-w4nrrin4qx")))
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "olm", name
	return p
}

func servesOn(t *testing.T, w *world) string {
	for _, pod := range catalog.Assess(w.input(t)).Pods {
		if pod.Serves {
			return pod.Node
		}
	}
	require.Fail(t, "nothing serves")
	return ""
}

// requireSameAnswer: a Reader that knows what an owner owns gives the same answer as
// one that lists everything.
func requireSameAnswer(t *testing.T, w *world) {
	snapshot, err := w.Cluster.Snapshot()
	require.NoError(t, err)
	in, err := catalog.Gather(t.Context(), snapshot, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	want, err := catalog.Reconcile(w.input(t))
	require.NoError(t, err)
	got, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.Equal(t, describe(t, want), describe(t, got))
}

// TestFewerReplicasWhileNothingServes: two Pods of an old spec, neither of which
// serves, leave no room for the one that is asked for now; the worse one goes first.
func TestFewerReplicasWhileNothingServes(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 2}, cool())
	shrink := func(in *catalog.Input) {
		for _, pod := range in.Pods.Items {
			unready(pod)
			pod.Labels["olm.pod-spec-hash"] = "old"
		}
		in.CatalogSource.Annotations = map[string]string{"olmcore/replicas": "1"}
	}
	out := reconcile(t, base, shrink)
	require.Equal(t, []string{"delete " + base.Pods.Items[1].Name + " PodSurplus"}, done(out))
	out = reconcile(t, base, func(in *catalog.Input) {
		shrink(in)
		in.Pods.Items = in.Pods.Items[:1]
	})
	require.Equal(t, []string{"create a Pod PodOutdated", "delete " + base.Pods.Items[0].Name + " PodOutdated"}, done(out))
}

// TestPodsThatPollSpreadAmongThemselves, because the others will go; unless a spread
// is required, which holds for all Pods.
func TestPodsThatPollSpreadAmongThemselves(t *testing.T) {
	for spread, want := range map[catalog.Spread]string{catalog.SpreadPrefer: "catalogsource.operators.coreos.com/update", catalog.SpreadRequire: "olm.pod-spec-hash"} {
		base := converged(t, catalog.Config{Replicas: 2, Spread: spread}, cool())
		out := reconcile(t, base, pollAgo(time.Hour, nil))
		require.Equal(t, []string{"create a Pod PollDue"}, done(out))
		for _, constraint := range out.Actions[0].(olmcore.Create).Object.(*corev1.Pod).Spec.TopologySpreadConstraints {
			require.Contains(t, constraint.LabelSelector.MatchLabels, want)
			require.Len(t, constraint.LabelSelector.MatchLabels, 1)
		}
	}
}

// TestThousandsOfPods: a controller without a computed name may have made any number
// of twins. Whatever became of them, one decision deals with all.
func TestThousandsOfPods(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	const n = 1500
	for name, test := range map[string]struct {
		change           func(i int, p *corev1.Pod)
		creates, deletes int
	}{
		"serving":         {func(int, *corev1.Pod) {}, 0, n - 1},
		"on a node each":  {func(i int, p *corev1.Pod) { p.Spec.NodeName = fmt.Sprint("gone", i) }, 1, n},
		"with a content":  {func(i int, p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = fmt.Sprint("x@sha256:", i) }, 0, n - 1},
		"finished":        {func(_ int, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 1, n},
		"being deleted":   {func(_ int, p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(base.Now)) }, 1, 0},
		"not starting":    {func(_ int, p *corev1.Pod) { unready(p); p.Status.Conditions = nil }, 0, n - 1},
		"of another spec": {func(_ int, p *corev1.Pod) { p.Labels["olm.pod-spec-hash"] = "old" }, 0, n - 1},
		"not yet serving": {func(_ int, p *corev1.Pod) { candidate(p) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			in.Pods.Items, in.Now = nil, in.Now.Add(10*time.Minute)
			for i := range n {
				p := base.Pods.Items[0].DeepCopy()
				p.Name, p.UID = fmt.Sprintf("cool-%05d", i), types.UID(fmt.Sprint("twin", i))
				test.change(i, p)
				in.Pods.Items = append(in.Pods.Items, p)
			}
			out, err := catalog.Reconcile(in)
			require.NoError(t, err)
			verbs := map[olmcore.Verb]int{}
			for _, a := range out.Actions {
				if verb, target, _ := a.Describe(); target.Kind == "Pod" {
					verbs[verb]++
				}
			}
			require.Equal(t, []int{test.creates, test.deletes}, []int{verbs[olmcore.VerbCreate], verbs[olmcore.VerbDelete]})
			checkSafety(t, in, out, 1)
		})
	}
}
