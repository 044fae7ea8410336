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
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// withCheckpoint returns an input at rest with the Checkpoint of its outcome.
func withCheckpoint(t testing.TB, in catalog.Input) catalog.Input {
	out := answer(t, in)
	require.NotNil(t, out.Checkpoint, "not at rest: %+v", out)
	in.Checkpoint = out.Checkpoint
	return in
}

func atRest(t testing.TB) map[string]catalog.Input {
	replicated, polled := cool(), cool()
	replicated.Annotations = map[string]string{"olmcore/replicas": "3"}
	polled.Spec.UpdateStrategy = polling("45m")
	many := converged(t, catalog.Config{}, cool())
	many.Nodes = olmcore.Found(many.Nodes.Items...)
	for i := range 1000 {
		node := many.Nodes.Items[0].DeepCopy()
		node.Name, node.UID = fmt.Sprintf("node-%04d", i), types.UID(fmt.Sprint(i))
		many.Nodes.Items = append(many.Nodes.Items, node)
	}
	return map[string]catalog.Input{
		"one replica":    converged(t, catalog.Config{}, cool()),
		"three replicas": converged(t, catalog.Config{}, replicated),
		"a polled image": converged(t, catalog.Config{}, polled),
		"a config map":   connected(t, mappedWorld(t, catalog.Config{}, mapped())),
		"1000 nodes":     many,
	}
}

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range atRest(t) {
		plain := answer(t, in)
		require.Equal(t, olmcore.Result{RequeueAfter: plain.RequeueAfter}, plain.Result, name)
		in = withCheckpoint(t, in)
		var out catalog.Outcome
		require.Zero(t, testing.AllocsPerRun(100, func() { out, _ = catalog.Reconcile(in) }), name)
		require.Equal(t, plain.Result, out.Result, name)
		require.Equal(t, in.Checkpoint, out.Checkpoint, name)
	}
}

// TestCheckpointCoversTheWholeInput checks that a change of any field of the Input makes the Checkpoint invalid.
func TestCheckpointCoversTheWholeInput(t *testing.T) {
	inputs := atRest(t)
	delete(inputs, "1000 nodes")
	for name, in := range inputs {
		require.NoError(t, invariant.CheckpointSound(catalog.Reconcile, in), name)
		require.NoError(t, invariant.CheckpointCovers(catalog.Reconcile, in), name)
		in.Nodes.Items[0] = in.Nodes.Items[0].DeepCopy()
		readyOf(in.Nodes.Items[0]).Status = corev1.ConditionUnknown
		require.NoError(t, invariant.CheckpointSound(catalog.Reconcile, in), name)
	}
}

func BenchmarkAtRest(b *testing.B) {
	for name, in := range atRest(b) {
		b.Run(name, func(b *testing.B) { benchmark(b, in, 0) })
		b.Run(name+" with checkpoint", func(b *testing.B) { benchmark(b, withCheckpoint(b, in), 0) })
	}
}

func BenchmarkReplacement(b *testing.B) {
	in := converged(b, catalog.Config{}, cool())
	pod := podsOf(in)[0].DeepCopy()
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	in.Pods = olmcore.Found(pod)
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
	benchmark(b, newWorld(b, catalog.Config{}, cool()).input(b), 6)
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

// BenchmarkNamespace reads and reconciles all catalogs of a namespace. The time for each catalog must not grow with
// their number.
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
			checkpoints := make([]*olmcore.Checkpoint, n)
			var reader olmcore.Reader = w.Cluster
			decide := func(i int) olmcore.Result {
				in, err := catalog.Gather(b.Context(), reader, keys[i], catalog.Config{})
				if err != nil {
					b.Fatal(err)
				}
				in.Now, in.Checkpoint = w.Cluster.Now(), checkpoints[i]
				in.Connection = &catalog.Connection{Address: keys[i].Name + ".olm.svc:50051", State: "READY", LastConnect: start, LastTransition: start}
				out, err := catalog.Reconcile(in)
				if err != nil {
					b.Fatal(err)
				}
				checkpoints[i] = out.Checkpoint
				return out.Result
			}
			for i := range n { // the status records the connection
				require.NoError(b, olmcore.Run(b.Context(), w.Cluster, decide(i).Actions))
			}
			snapshot, err := olmcore.NewSnapshot(w.Cluster.Objects(), olmcore.Everything)
			require.NoError(b, err)
			reader = snapshot
			for i := range n {
				decide(i)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if r := decide(i % n); !r.Empty() {
					b.Fatal(r)
				}
				i++
			}
		})
	}
}
