// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// scales are the numbers of objects at which the benchmarks show that the cost is linear.
var scales = []int{1_000, 10_000, 100_000}

// manyDeployments is a CSV with n Deployments, all of them there, beside another version with as many.
func manyDeployments(n int) []olmcore.Object {
	c := operator("cool.v1", 1)
	hold(c, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
	other := operator("other.v1", 1)
	other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, other.Spec.CustomResourceDefinitions.Owned = nil, nil
	objects := []olmcore.Object{c, other, group(), establishedCRD()}
	mine, theirs := &c.Spec.InstallStrategy.StrategySpec, &other.Spec.InstallStrategy.StrategySpec
	for i := range n {
		spec := deploymentSpec(fmt.Sprintf("d%06d", i))
		mine.DeploymentSpecs = append(mine.DeploymentSpecs, spec)
		theirs.DeploymentSpecs = append(theirs.DeploymentSpecs, deploymentSpec(fmt.Sprintf("e%06d", i)))
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: spec.Name, UID: types.UID(spec.Name), Labels: ours("").Labels}, Spec: spec.Spec}
		d.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}
		objects = append(objects, d)
	}
	return objects
}

// BenchmarkGatherManyDeployments reads and assesses one CSV with so many Deployments.
func BenchmarkGatherManyDeployments(b *testing.B) {
	for _, n := range scales {
		snapshot, err := olmcore.NewSnapshot(manyDeployments(n), olmcore.Everything)
		require.NoError(b, err)
		b.Run(fmt.Sprint("deployments=", n), func(b *testing.B) {
			for b.Loop() {
				in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
				require.NoError(b, err)
				in.Now, in.KubernetesVersion = now, kubernetesVersion
				require.Len(b, in.Deployments.Items, n)
				_, err = csv.Assess(in)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/deployment")
		})
	}
}

// TestAHundredThousandDeployments: work that grows with the square of their number would not end within the time that a
// run of the tests is given.
func TestAHundredThousandDeployments(t *testing.T) {
	const n = 100_000
	snapshot, err := olmcore.NewSnapshot(manyDeployments(n), olmcore.Everything)
	require.NoError(t, err)
	in, err := csv.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	require.Len(t, in.Deployments.Items, n)
	in.Now, in.KubernetesVersion = now, kubernetesVersion
	_, err = csv.Assess(in)
	require.NoError(t, err)
}

// TestManyDeploymentsAreOfOneRule: what is found by an index is what is found by looking.
func TestManyDeploymentsAreOfOneRule(t *testing.T) {
	objects := manyDeployments(50)
	c := objects[0].(*v1alpha1.ClusterServiceVersion)
	specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	judge := func() csv.Assessment {
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		in.Now, in.KubernetesVersion = now, kubernetesVersion
		in.ServiceAccounts.Items = nil
		return assess(t, in)
	}
	c.Spec.InstallStrategy.StrategySpec.Permissions = nil
	require.Contains(t, judge().Message, `deployment "d000000" not available`)
	*specs = append(*specs, deploymentSpec("d000007"))
	require.Equal(t, `deployment "d000007" listed twice`, judge().Message)
	(*specs)[50].Name = "missing"
	(*specs)[0], (*specs)[50] = (*specs)[50], (*specs)[0]
	require.Equal(t, "installing: missing deployment with name=missing", judge().Message)
}
