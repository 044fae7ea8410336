// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func TestAGroupAtRestWithItsCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range atRest(t, 10) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
			require.NoError(t, invariant.CheckpointCovers(operatorgroup.Reconcile, in))
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = operatorgroup.Reconcile(in) }))
		})
	}
}

// TestTheCheckpointOfAGroupThatAwaitsItsAccount ends with the grace period.
func TestTheCheckpointOfAGroupThatAwaitsItsAccount(t *testing.T) {
	in := atRest(t, 1)["with an account"]
	in.OperatorGroup = in.OperatorGroup.DeepCopy()
	in.OperatorGroup.CreationTimestamp, in.OperatorGroup.Status.ServiceAccountRef = *ago(time.Second), nil
	in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
	out := reconciled(t, in)
	require.NotNil(t, out.Checkpoint)
	require.Equal(t, 9*time.Second, out.RequeueAfter)
	require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
}

// manyGroups is a cluster of n namespaces with an OperatorGroup each.
func manyGroups(n int) (objects []olmcore.Object, keys []types.NamespacedName) {
	for i := range n {
		name := fmt.Sprintf("n%06d", i)
		g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group", UID: types.UID("group-" + name)}}
		g.Spec.TargetNamespaces, g.Status.Namespaces, g.Status.LastUpdated = []string{name}, []string{name}, ago(time.Hour)
		if i%2 == 1 {
			g.Spec = operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}}
		}
		objects = append(objects, g, namespace(name, map[string]string{"team": name}))
		keys = append(keys, types.NamespacedName{Namespace: name, Name: "group"})
	}
	return objects, keys
}

// BenchmarkManyGroups decides about all groups of such a cluster.
func BenchmarkManyGroups(b *testing.B) {
	for _, n := range []int{100, 1000} {
		objects, keys := manyGroups(n)
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(b, err)
		b.Run(fmt.Sprint("groups=", n), func(b *testing.B) {
			for b.Loop() {
				for _, key := range keys {
					in, err := operatorgroup.Gather(context.Background(), snapshot, key)
					require.NoError(b, err)
					in.Now = now
					_ = reconciled(b, in).Result
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/group")
		})
	}
}

// BenchmarkReconcile is a group at rest, without and with its Checkpoint.
func BenchmarkReconcile(b *testing.B) {
	for _, namespaces := range []int{0, 100, 10000} {
		in := atRest(b, namespaces)["selected"]
		out := reconciled(b, in)
		for name, checkpoint := range map[string]*olmcore.Checkpoint{"plain": nil, "checkpoint": out.Checkpoint} {
			in.Checkpoint = checkpoint
			b.Run(fmt.Sprintf("%s/namespaces=%d", name, namespaces), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if out, err := operatorgroup.Reconcile(in); err != nil || !out.Empty() {
						b.Fatal(out, err)
					}
				}
			})
		}
	}
}

// FuzzReconcile takes any bytes for a group, and for everything around it.
func FuzzReconcile(f *testing.F) {
	for _, in := range atRest(f, 1) {
		data, err := json.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"OperatorGroup":{"metadata":{"name":"g","namespace":"n"},"spec":{"selector":{"matchLabels":{"a b":"c"}}}},"Namespaces":{"Complete":true,"Items":[{"metadata":{"name":"x","labels":{"a b":"c"}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := operatorgroup.Input{}
		if json.Unmarshal(data, &in) != nil {
			return
		}
		in.Now, in.Checkpoint = now, nil
		require.NoError(t, invariant.Deterministic(reconcile, in))
		if _, err := reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
	})
}

// TestLaws hold for any Input.
func TestLaws(t *testing.T) {
	vocabulary := gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"group", "other", "cool.v1", "cool.v2"},
		Words: map[string][]string{"phase": {"", "Pending", "Succeeded", "Failed"}, "kind": {"Cool", "Hot"}, "group": {"example.com", ""}, "version": {"v1"}},
	}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[operatorgroup.Input](vocabulary).Draw(t, "in")
		in.Now, in.Checkpoint = now, nil
		for _, complete := range []*bool{&in.Siblings.Complete, &in.Namespaces.Complete, &in.ClusterServiceVersions.Complete, &in.ClusterRoles.Complete, &in.ServiceAccounts.Complete} {
			*complete = true // items of what was not read are refused
		}
		require.NoError(t, invariant.Laws(reconcile, in))
		require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
	})
}
