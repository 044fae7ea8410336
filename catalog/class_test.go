// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestOneRowAddsAClassOfPod: Pods in quarantine serve no longer. They are replaced on
// another node, removed, and named in the status.
func TestOneRowAddsAClassOfPod(t *testing.T) {
	reconcile, assess := catalog.With(pods.Traits{
		Class: "Quarantined", Is: func(p *pods.Pod) bool { return p.Object.Annotations["quarantine"] != "" },
		Rank: 1, Purpose: registry.PurposeRefill, Reason: "PodQuarantined", AvoidNode: true, Remove: pods.RemoveStuck,
		Complaint: func(*pods.Pod) string { return "PodQuarantined" },
		Note:      "in quarantine", Explanation: "it is in quarantine on {node}",
	})
	in := invariant.Clone(converged(t, catalog.Config{}, cool()))
	pod := in.Pods.Items[0]
	pod.Annotations["quarantine"] = "yes"
	require.NoError(t, invariant.Laws(func(in catalog.Input) (olmcore.Result, error) {
		out, err := reconcile(in)
		return out.Result, err
	}, in))
	out, err := reconcile(in)
	require.NoError(t, err)
	create := out.Actions[0].(olmcore.Create)
	require.Equal(t, olmcore.Cause{Reason: "PodQuarantined", Message: "replaces " + pod.Name + ": it is in quarantine on node a"}, create.Cause)
	replacement := create.Object.(*corev1.Pod)
	require.Equal(t, string(pod.UID), replacement.Annotations["olmcore/replaces"])
	avoided := replacement.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchFields[0]
	require.Equal(t, []string{"a"}, avoided.Values)
	conditions := assess(in).Conditions
	require.Equal(t, "0/1 registry pods ready: "+pod.Name+" (a, in quarantine)", meta.FindStatusCondition(conditions, catalog.ConditionAvailable).Message)
	degraded := meta.FindStatusCondition(conditions, catalog.ConditionDegraded)
	require.Equal(t, "PodQuarantined", degraded.Reason)
	require.Equal(t, pod.Name+" on a: in quarantine", degraded.Message)
	require.Equal(t, catalog.Class("Quarantined"), assess(in).Pods[0].Class)

	addPod(&in, "cool-zz", func(p *corev1.Pod) { delete(p.Annotations, "quarantine") })
	out, err = reconcile(in)
	require.NoError(t, err)
	require.Equal(t, []string{"delete " + pod.Name + " PodQuarantined"}, done(out))
}

// TestEveryClassOfPodIsWhole: what a row of the table must have.
func TestEveryClassOfPodIsWhole(t *testing.T) {
	seen := map[pods.Class]bool{}
	for _, row := range pods.Classes {
		require.NotNil(t, row.Is, row.Class)
		require.False(t, seen[row.Class], "%s is there twice", row.Class)
		seen[row.Class] = true
		require.Equal(t, row.Rank > 0, row.Purpose != "", "%s: a Pod that is replaced has the purpose of its replacement", row.Class)
		require.True(t, row.Rank == 0 || row.Reason != "" || row.Class == pods.ClassLost, "%s: a Pod that is replaced has a reason", row.Class)
		require.True(t, row.Active || !row.Live, "%s: a live Pod takes room", row.Class)
		require.True(t, row.Live || !row.Present, "%s: a Pod of the present spec that counts is live", row.Class)
	}
	require.True(t, pods.Classes[len(pods.Classes)-1].Is(&pods.Pod{}), "the last row fits every Pod")
}
