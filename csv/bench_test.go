// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
)

// converged is the gathered Input of a CSV that is installed beside others.
func converged(t testing.TB, c *v1alpha1.ClusterServiceVersion, others int) csv.Input {
	t.Helper()
	cluster, driver := install(t, c)
	namespace := c.Namespace
	if namespace == "" {
		namespace = "operators"
	}
	for i := range others {
		other := &v1alpha1.ClusterServiceVersion{}
		other.Namespace, other.Name = namespace, fmt.Sprintf("other-%04d.v1.0.0", i)
		other.Spec.InstallStrategy.StrategyName = "deployment"
		require.NoError(t, cluster.Create(other))
	}
	require.NoError(t, driver.Settle(context.Background()))
	in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: namespace, Name: c.Name}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, in.ClusterServiceVersion.Status.Phase)
	return offTheWire(t, in)
}

// offTheWire replaces the objects by what an API server would have sent: in the fake cluster they share their strings,
// which makes comparing them too cheap.
func offTheWire(t testing.TB, in csv.Input) csv.Input {
	t.Helper()
	in.ClusterServiceVersion = decoded(t, in.ClusterServiceVersion)[0]
	in.OperatorGroups.Items = decoded(t, in.OperatorGroups.Items...)
	in.CustomResourceDefinitions.Items = decoded(t, in.CustomResourceDefinitions.Items...)
	in.ServiceAccounts.Items = decoded(t, in.ServiceAccounts.Items...)
	in.Roles.Items, in.RoleBindings.Items = decoded(t, in.Roles.Items...), decoded(t, in.RoleBindings.Items...)
	in.ClusterRoles.Items, in.ClusterRoleBindings.Items = decoded(t, in.ClusterRoles.Items...), decoded(t, in.ClusterRoleBindings.Items...)
	in.Deployments.Items = decoded(t, in.Deployments.Items...)
	return in
}

func decoded[T any](t testing.TB, items ...*T) []*T {
	t.Helper()
	out := make([]*T, len(items))
	for i, item := range items {
		text, err := json.Marshal(item)
		require.NoError(t, err)
		out[i] = new(T)
		require.NoError(t, json.Unmarshal(text, out[i]))
	}
	return out
}

func small(t testing.TB) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	objects, err := fromFiles("v1.yaml")
	require.NoError(t, err)
	return objects[0].(*v1alpha1.ClusterServiceVersion)
}

func TestAConvergedCSVAllocatesNothing(t *testing.T) {
	in := converged(t, small(t), 3)
	check(t, in, (csv.Outcome{}).Result)
	in.Checkpoint = checkpointOf(in)
	require.NotNil(t, in.Checkpoint)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = csv.Reconcile(in) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { require.Same(t, in.Checkpoint, checkpointOf(in)) }))
}

func reconcileBench(b *testing.B, in csv.Input, idle bool) {
	b.ReportAllocs()
	for b.Loop() {
		if out, err := csv.Reconcile(in); err != nil || out.Empty() != idle {
			b.Fatal(out, err)
		}
	}
}

func BenchmarkSucceeded(b *testing.B) {
	for _, others := range []int{0, 100, 1000} {
		in := converged(b, small(b), others)
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) { reconcileBench(b, in, true) })
	}
}

// BenchmarkSucceededUngathered hands Reconcile all CSVs of the namespace, as a caller does who does not use Gather.
func BenchmarkSucceededUngathered(b *testing.B) {
	in := converged(b, small(b), 0)
	for i := range 1000 {
		in.Neighbours.Items = append(in.Neighbours.Items, operator(fmt.Sprintf("other-%04d.v1", i), 1))
	}
	reconcileBench(b, in, true)
}

func BenchmarkSucceededPublished(b *testing.B) {
	eachPublished(b, func(b *testing.B, in csv.Input) { reconcileBench(b, in, true) })
}

// BenchmarkCheckpointPublished is BenchmarkSucceededPublished with the Checkpoint.
func BenchmarkCheckpointPublished(b *testing.B) {
	eachPublished(b, func(b *testing.B, in csv.Input) {
		in.Checkpoint = checkpointOf(in)
		require.NotNil(b, in.Checkpoint)
		reconcileBench(b, in, true)
	})
}

func eachPublished(b *testing.B, run func(*testing.B, csv.Input)) {
	csvs := realCSVs(b)
	for _, name := range []string{
		"etcdoperator.v0.9.4", "snapscheduler.v3.5.0", "strimzi-cluster-operator.v1.2.0", "kuadrant-operator.v0.11.1",
		"loki-operator.v0.11.0", "cert-manager.v1.16.5", "stackgres-community.v1.18.8",
	} {
		in := converged(b, csvs[name], 0)
		b.Run(name, func(b *testing.B) { run(b, in) })
	}
}

// BenchmarkSucceededBesideOthers is what an adapter pays for a watch event that changed nothing: the Input is gathered
// beside that many other CSVs.
func BenchmarkSucceededBesideOthers(b *testing.B) {
	all := realCSVs(b)
	for _, name := range []string{"snapscheduler.v3.5.0", "loki-operator.v0.11.0", "stackgres-community.v1.18.8"} {
		c := all[name]
		text, err := json.Marshal(c)
		require.NoError(b, err)
		namespace := c.Namespace
		if namespace == "" {
			namespace = "operators"
		}
		cluster, _ := install(b, c)
		made := 0
		for _, others := range []int{0, 100, 1000, 10000} {
			for ; made < others; made++ {
				other := &v1alpha1.ClusterServiceVersion{}
				other.Namespace, other.Name = namespace, fmt.Sprintf("other-%05d.v1.0.0", made)
				require.NoError(b, cluster.Create(other))
			}
			in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: namespace, Name: name}, csv.Config{})
			require.NoError(b, err)
			in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
			in = offTheWire(b, in)
			b.Run(fmt.Sprintf("size=%dKB/others=%d/nocheckpoint", len(text)/1000, others), func(b *testing.B) { reconcileBench(b, in, true) })
			in.Checkpoint = checkpointOf(in)
			require.NotNil(b, in.Checkpoint)
			b.Run(fmt.Sprintf("size=%dKB/others=%d", len(text)/1000, others), func(b *testing.B) { reconcileBench(b, in, true) })
		}
	}
}

func BenchmarkOneChange(b *testing.B) {
	in := converged(b, small(b), 0)
	in.Deployments.Items = nil
	reconcileBench(b, in, false)
}

func BenchmarkGather(b *testing.B) {
	for _, others := range []int{0, 1000} {
		cluster, driver := install(b, small(b))
		for i := range others {
			other := &v1alpha1.ClusterServiceVersion{}
			other.Namespace, other.Name = "ns", fmt.Sprintf("other-%04d.v1.0.0", i)
			require.NoError(b, cluster.Create(other))
		}
		require.NoError(b, driver.Settle(context.Background()))
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSteps is one call in each phase, with the work that the phase has.
func BenchmarkSteps(b *testing.B) {
	for _, step := range []struct {
		name string
		in   csv.Input
	}{
		{"None", input(none, "", "")},
		{"Pending", input(pending, "RequirementsUnknown", "")},
		{"InstallReady", input(installReady, "AllRequirementsMet", "")},
		{"Installing", input(installing, "InstallSucceeded", "")},
		{"Failed", input(failed, "ComponentUnhealthy", "")},
	} {
		b.Run(step.name, func(b *testing.B) { reconcileBench(b, step.in, false) })
	}
	in := input(succeeded, "InstallSucceeded", "")
	successorOf(&in, pending)
	b.Run("Succeeded/upgrade", func(b *testing.B) { reconcileBench(b, in, false) })
	in = input(replacing, "BeingReplaced", "")
	successorOf(&in, succeeded)
	b.Run("Replacing", func(b *testing.B) { reconcileBench(b, in, false) })
	in = input(deleting, "Replaced", "")
	b.Run("Deleting", func(b *testing.B) { reconcileBench(b, in, false) })
}
