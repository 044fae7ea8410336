// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// surplusWorld returns a cluster in which two Pods serve and one is configured.
func surplusWorld(t *testing.T) *pairWorld {
	w := newWorld(t, catalog.Config{}, cool())
	w.run(t, time.Hour)
	pair := &pairWorld{Cluster: w.Cluster}
	pair.addCopy(t, pair.healthy()[0])
	require.Len(t, pair.healthy(), 2)
	return pair
}

// TestTwoManagersThatPreferDifferentPodsKeepOne lets two managers decide at the same time. The cache of one manager
// says that the Node of a Pod is not ready. It checks that one Pod stays.
func TestTwoManagersThatPreferDifferentPodsKeepOne(t *testing.T) {
	for name, order := range map[string][]int{"the first one writes first": {0, 1}, "the second one writes first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w := surplusWorld(t)
			extra, first := w.healthy()[0], w.healthy()[1]
			doubted := first.Spec.NodeName
			require.NotEqual(t, doubted, extra.Spec.NodeName)
			for range rounds {
				var decided [2][]olmcore.Action
				for who := range decided {
					in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
					require.NoError(t, err)
					in.Now = w.Now()
					in = invariant.Clone(in)
					for _, node := range in.Nodes.Items {
						if who == 1 && node.Name == doubted {
							readyOf(node).Status = corev1.ConditionFalse
						}
					}
					decided[who] = answer(t, in).Actions
				}
				for _, who := range order {
					_ = olmcore.Run(context.Background(), w.Cluster, decided[who]) // one meets a Conflict
					require.NotEmpty(t, w.healthy(), "all Pods that serve were deleted")
				}
				require.NoError(t, w.Settle())
			}
			require.Len(t, w.healthy(), 1, "a surplus Pod stays")
		})
	}
}

// TestKeptPodIsRecordedOnlyIfAnotherPodIsDeleted checks that the Pod that stays is recorded only before the deletion of
// another Pod, whatever the annotation contains.
func TestKeptPodIsRecordedOnlyIfAnotherPodIsDeleted(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, value := range map[string]string{"none": "", "a Pod that is gone": "gone", "the Pod": string(base.Pods.Items[0].UID)} {
		in := invariant.Clone(base)
		in.CatalogSource.Annotations = map[string]string{keptPod: value}
		require.Empty(t, answer(t, in).Result, name)
	}

	in := invariant.Clone(base)
	in.CatalogSource.Annotations = map[string]string{keptPod: "gone"}
	addPod(&in, "cool-zz", func(*corev1.Pod) {})
	out := answer(t, withStatus(t, in))
	require.Equal(t, []string{"update cool-w4nrrin4qx PodKept"}, done(out))
	named, ok := out.Actions[0].(olmcore.Update)
	require.True(t, ok)
	require.Equal(t, string(base.Pods.Items[0].UID), named.After.GetAnnotations()[keptPod])
	require.NotEmpty(t, named.Target.ResourceVersion)
}

// withStatus returns an input after its status was written.
func withStatus(t *testing.T, in catalog.Input) catalog.Input {
	if after, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](answer(t, in).Actions); ok {
		in.CatalogSource = after
	}
	return in
}

// TestTheKeptPodMustServe checks that a Pod that is not ready, is being deleted or belongs to others is not kept,
// whatever the annotation contains.
func TestTheKeptPodMustServe(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, change := range map[string]func(*corev1.Pod){
		"not ready":       unready,
		"being deleted":   func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp },
		"of others":       func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"not selected":    func(p *corev1.Pod) { delete(p.Labels, olmcore.LabelManaged) },
		"a candidate":     candidate,
		"of another spec": func(p *corev1.Pod) { p.Labels["olm.pod-spec-hash"] = "old" },
	} {
		in := invariant.Clone(base)
		addPod(&in, "cool-yy", func(p *corev1.Pod) { p.UID = "second" })
		addPod(&in, "cool-zz", func(p *corev1.Pod) { p.UID = "named"; change(p) })
		in.CatalogSource.Annotations = map[string]string{keptPod: "named"}
		require.NotEqual(t, "cool-zz", keptOf(recorded(t, in)), name)
	}
}

// TestATenantChoosesOnlyBetweenPodsThatServe checks that the annotation only chooses between Pods that serve.
func TestATenantChoosesOnlyBetweenPodsThatServe(t *testing.T) {
	w := surplusWorld(t)
	for _, chosen := range w.healthy() {
		in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
		require.NoError(t, err)
		in.Now = w.Now()
		in = invariant.Clone(in)
		in.CatalogSource.Annotations = map[string]string{keptPod: string(chosen.UID)}
		deleted := done(answer(t, recorded(t, in)))
		require.Len(t, deleted, 1)
		require.NotContains(t, deleted[0], chosen.Name)
	}
}

// TestAKeptPodIsNotDeletedByAStaleCache checks that a Pod with a number is not deleted while no other Pod with a
// higher number serves, even if its Node seems to be gone.
func TestAKeptPodIsNotDeletedByAStaleCache(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	in := invariant.Clone(base)
	number(in.Pods.Items[0], "1")
	addPod(&in, "cool-zz", func(p *corev1.Pod) { p.UID = "second"; number(p, "2") })
	in.CatalogSource.Annotations = map[string]string{keptPod: string(in.Pods.Items[0].UID)}
	require.Equal(t, []string{"update cool-w4nrrin4qx PodKept"}, done(answer(t, withStatus(t, in))))

	in = invariant.Clone(base)
	number(in.Pods.Items[0], "1")
	in.Nodes.Items[0].Name = "other"
	require.Equal(t, []string{"create a Pod NodeGone"}, done(answer(t, in)))
}

// TestAForgedNumberDoesNotKeepASurplusPod checks that numbers that no manager writes are ignored.
func TestAForgedNumberDoesNotKeepASurplusPod(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, forged := range []string{"9223372036854775807", "1099511627776", "1099511627777", "99999999999999999999", "-1", "x", ""} {
		in := invariant.Clone(base)
		addPod(&in, "cool-zz", func(p *corev1.Pod) { p.UID = "second"; number(p, forged) })
		require.Equal(t, []string{"delete cool-zz PodSurplus"}, done(answer(t, recorded(t, in))), forged)
	}
}

// TestANodeThatRecoversKeepsTheRecordedPod lets the Node of the recorded Pod be out of service, and recover before
// the two surplus Pods are deleted. It checks that the recorded Pod stays, and that one Pod of each Node is deleted.
func TestANodeThatRecoversKeepsTheRecordedPod(t *testing.T) {
	in := converged(t, catalog.Config{Replicas: 2}, cool())
	first := in.Pods.Items[0]
	addPod(&in, "cool-x", func(p *corev1.Pod) { p.UID, p.Spec.NodeName = "x", first.Spec.NodeName })
	addPod(&in, "cool-y", func(p *corev1.Pod) { p.UID, p.Spec.NodeName = "y", in.Pods.Items[1].Spec.NodeName })
	number(first, "1")
	in.CatalogSource.Annotations = map[string]string{keptPod: string(first.UID)}
	in = withStatus(t, in)
	recovered := done(answer(t, in))
	require.Equal(t, []string{"delete cool-x PodSurplus", "delete cool-y PodSurplus"}, recovered)

	leaving := invariant.Clone(in)
	off(setNode(&leaving, corev1.ConditionTrue, time.Hour))
	leaving = withStatus(t, leaving)
	out := answer(t, leaving)
	require.Equal(t, []string{"update " + in.Pods.Items[1].Name + " PodKept"}, done(out))
	checkPromises(t, leaving, out)
	require.Equal(t, []string{"delete " + first.Name + " PodSurplus", "delete cool-x PodSurplus"}, done(answer(t, recorded(t, leaving))))
}

func number(pod *corev1.Pod, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["olmcore/kept-pod-number"] = value
}

// TestAFailedRecordIsWrittenAgain checks that a rollout ends although one write of the annotation failed.
func TestAFailedRecordIsWrittenAgain(t *testing.T) {
	w := newWorld(t, catalog.Config{}, cool())
	w.run(t, time.Hour)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = "quay.io/example/catalog:v2" }))
	w.Cluster.Faults().Inject(fake.Fault{Verb: olmcore.VerbUpdate, Kind: v1alpha1.CatalogSourceKind, Nth: 1, Mode: fake.FailWithoutEffect})
	w.run(t, time.Hour)
	require.Equal(t, catalog.StateServing, catalog.Assess(w.input(t)).State)
	require.Len(t, w.input(t).Pods.Items, 1)
}
