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
	"github.com/olmcore/olm/olmcore"
)

func TestAConvergedCatalogSourceCostsNoAllocation(t *testing.T) {
	replicated := cool()
	replicated.Annotations = map[string]string{"olmcore/replicas": "3"}
	polled := cool()
	polled.Spec.UpdateStrategy = polling("45m")
	for name, in := range map[string]catalog.Input{
		"a polled image": converged(t, catalog.Config{}, polled),
		"one replica":    converged(t, catalog.Config{}, cool()),
		"three replicas": converged(t, catalog.Config{}, replicated),
	} {
		for _, connection := range []*catalog.Connection{in.Connection, nil} {
			in.Connection = connection
			var out catalog.Outcome
			allocations := testing.AllocsPerRun(100, func() { out, _ = catalog.Reconcile(in) })
			require.Zero(t, allocations, name)
			require.Equal(t, olmcore.Result{RequeueAfter: out.RequeueAfter}, out.Result, name)
			require.Equal(t, in.CatalogSource.Spec.UpdateStrategy != nil, out.RequeueAfter > 0, name)
			require.Equal(t, in.PodHash, out.PodHash, name)
		}
	}
}

func BenchmarkConverged(b *testing.B) {
	in := converged(b, catalog.Config{}, cool())
	b.Run("hash handed back", func(b *testing.B) { benchmark(b, in, 0) })
	without := in
	without.PodHash = ""
	b.Run("hash computed", func(b *testing.B) { benchmark(b, without, 0) })
	many := in
	many.Nodes = olmcore.Found(in.Nodes.Items[0], in.Nodes.Items[1])
	for i := range 1000 {
		node := in.Nodes.Items[0].DeepCopy()
		node.Name = fmt.Sprintf("node-%04d", i)
		many.Nodes.Items = append(many.Nodes.Items, node)
	}
	b.Run("1000 nodes", func(b *testing.B) { benchmark(b, many, 0) })
}

func BenchmarkReplacement(b *testing.B) {
	in := converged(b, catalog.Config{}, cool())
	pod := podsOf(in)[0].DeepCopy()
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	in.Pods = []*corev1.Pod{pod}
	for i, node := range in.Nodes.Items {
		if node.Name == pod.Spec.NodeName {
			node = node.DeepCopy()
			readyOf(node).Status = corev1.ConditionUnknown
			readyOf(node).LastTransitionTime = metav1.NewTime(in.Now.Add(-time.Minute))
			in.Nodes.Items[i] = node
		}
	}
	benchmark(b, in, 2)
}

func BenchmarkFirstReconcile(b *testing.B) {
	in := newWorld(b, catalog.Config{}, cool()).input(b)
	benchmark(b, in, 6)
}

func benchmark(b *testing.B, in catalog.Input, actions int) {
	b.ReportAllocs()
	for b.Loop() {
		out, err := catalog.Reconcile(in)
		if err != nil || len(out.Actions) != actions {
			b.Fatal(out, err)
		}
	}
}

func BenchmarkConvergedReplicas(b *testing.B) {
	in := converged(b, catalog.Config{Replicas: 3}, cool())
	b.Run("hash handed back", func(b *testing.B) { benchmark(b, in, 0) })
	in.PodHash = ""
	b.Run("hash computed", func(b *testing.B) { benchmark(b, in, 0) })
}

func BenchmarkConvergedPolled(b *testing.B) {
	cs := cool()
	cs.Spec.UpdateStrategy = polling("45m")
	benchmark(b, converged(b, catalog.Config{}, cs), 0)
}

func BenchmarkConvergedConfigMap(b *testing.B) {
	benchmark(b, mappedInput(b, catalog.Config{}), 0)
}

// BenchmarkNamespace reads and decides about one catalog after the other of a
// namespace: the time per catalog must not grow with their number.
func BenchmarkNamespace(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%d catalogs", n), func(b *testing.B) {
			w := newWorld(b, catalog.Config{}, cool())
			keys := []types.NamespacedName{coolKey}
			for i := 1; i < n; i++ {
				cs := cool()
				cs.Name = fmt.Sprintf("cool%d", i)
				require.NoError(b, w.Cluster.Create(cs))
				keys = append(keys, types.NamespacedName{Namespace: "olm", Name: cs.Name})
			}
			w.run(b, 0)
			snapshot, err := olmcore.NewSnapshot(w.Cluster.Objects(), olmcore.Everything)
			require.NoError(b, err)
			hashes := make([]string, n)
			decide := func(i int) {
				in, err := catalog.Gather(b.Context(), snapshot, keys[i], catalog.Config{})
				if err != nil {
					b.Fatal(err)
				}
				in.Now, in.PodHash = w.Cluster.Now(), hashes[i]
				out, err := catalog.Reconcile(in)
				if err != nil || len(out.Actions) != 0 {
					b.Fatal(out, err)
				}
				hashes[i] = out.PodHash
			}
			for i := range n {
				decide(i)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				decide(i % n)
				i++
			}
		})
	}
}
