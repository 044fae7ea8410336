// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

// converged returns the gathered Input of an installed CSV in a namespace with others.
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

// offTheWire replaces the objects by copies as an API server would have sent them. Objects of the fake cluster share
// their strings, so comparing them would be too cheap.
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
	objects := fromFiles("v1.yaml")
	return objects[0].(*v1alpha1.ClusterServiceVersion)
}

func TestConvergedCSVAllocatesNothing(t *testing.T) {
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

// BenchmarkSucceededUngathered passes all CSVs of the namespace to Reconcile, like a caller that does not use Gather.
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

// BenchmarkSucceededBesideOthers measures a watch event that changes nothing. The Input is gathered from a namespace
// with many other CSVs.
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

// BenchmarkSteps measures one call in each phase, with the work of that phase.
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

// BenchmarkCalled compares an operator with webhooks and an API to the same operator without them. It measures all
// calls and reads from the creation until the CSV is Succeeded, and calls at rest with and without the Checkpoint.
func BenchmarkCalled(b *testing.B) {
	key := types.NamespacedName{Namespace: "ns", Name: "cool.v1"}
	webhooks, plain := called("cool.v1", 1), called("cool.v1", 1)
	webhooks.Spec.APIServiceDefinitions.Owned = nil
	plain.Spec.WebhookDefinitions, plain.Spec.APIServiceDefinitions.Owned = nil, nil
	for _, c := range []struct {
		name     string
		operator *v1alpha1.ClusterServiceVersion
	}{{"plain", plain}, {"webhooks", webhooks}, {"webhooks-and-api", called("cool.v1", 1)}} {
		var passes []csv.Input
		var worlds []*olmcore.Snapshot
		cluster, driver := newWorld(csv.Config{})
		driver.Controllers = controllersWith(csv.Config{}, func(in *csv.Input) {
			world, err := olmcore.NewSnapshot(cluster.Objects(), olmcore.Everything)
			require.NoError(b, err)
			passes, worlds = append(passes, *in), append(worlds, world)
			if out, err := csv.Reconcile(*in); err == nil && len(out.Certificates) > 0 { // it is called again with what is issued
				answered := *in
				answered.Issued, _, err = olm.Issuer{}.Issue(context.Background(), world, out.Certificates, in.Now)
				require.NoError(b, err)
				passes, worlds = append(passes, answered), append(worlds, nil)
			}
		})
		installIn(b, cluster, driver, c.operator)
		b.Run(c.name+"/until-succeeded", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range passes {
					if worlds[i] != nil {
						_, _ = csv.Gather(context.Background(), worlds[i], key, csv.Config{})
					}
					_, _ = csv.Reconcile(passes[i])
				}
			}
			b.ReportMetric(float64(len(passes)), "passes")
		})
		in := calledIn(b, cluster)
		out, err := csv.Reconcile(in)
		require.NoError(b, err)
		in.Inspected = out.Inspected
		b.Run(c.name+"/succeeded", func(b *testing.B) { reconcileBench(b, in, true) })
		in.Checkpoint = out.Checkpoint
		b.Run(c.name+"/checkpoint", func(b *testing.B) { reconcileBench(b, in, true) })
	}
}

// scales are the numbers of objects at which the benchmarks show that the cost is linear.
var scales = []int{1_000, 10_000, 100_000}

// manyDeployments returns a CSV with n existing Deployments, and another version with as many.
func manyDeployments(n int) []olmcore.Object {
	c := operator("cool.v1", 1)
	hold(c, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	other := operator("other.v1", 1)
	other.Spec.CustomResourceDefinitions.Owned = nil
	objects := append(make([]olmcore.Object, 0, n+4), c, other, group(), establishedCRD())
	mine, theirs := &c.Spec.InstallStrategy.StrategySpec, &other.Spec.InstallStrategy.StrategySpec
	mine.DeploymentSpecs = make([]v1alpha1.StrategyDeploymentSpec, 0, n)
	theirs.DeploymentSpecs = make([]v1alpha1.StrategyDeploymentSpec, 0, n)
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

// BenchmarkGatherManyDeployments reads and assesses one CSV with many Deployments.
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

// TestCostOfManyDeploymentsIsLinear checks that the cost to read and assess a version grows linearly with its
// Deployments.
func TestCostOfManyDeploymentsIsLinear(t *testing.T) {
	requireLinear(t, 400, func(n int) func() {
		snapshot, err := olmcore.NewSnapshot(manyDeployments(n), olmcore.Everything)
		require.NoError(t, err)
		return func() {
			in := gather(t, snapshot)
			require.Len(t, in.Deployments.Items, n)
			in.Now, in.KubernetesVersion = now, kubernetesVersion
			_, err := csv.Assess(in)
			require.NoError(t, err)
		}
	})
}

func binding(name, role, account string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "ns"}},
	}
}

// requireLinear checks that the number of allocations grows no faster than the input. It counts allocations because
// times depend on the machine.
func requireLinear(t *testing.T, n int, prepare func(n int) (call func())) {
	t.Helper()
	one, four := testing.AllocsPerRun(1, prepare(n)), testing.AllocsPerRun(1, prepare(4*n))
	require.LessOrEqual(t, four, 5*one+100)
}

// TestCostOfHugeInputsIsLinear checks CSVs with many requirements, and clusters with many objects.
func TestCostOfHugeInputsIsLinear(t *testing.T) {
	for name, fill := range map[string]func(in *csv.Input, n int){
		"permissions": func(in *csv.Input, n int) {
			s := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
			for i := range n / 10 {
				rules := []rbacv1.PolicyRule{{Verbs: []string{"get", fmt.Sprint(i)}, APIGroups: []string{"", "apps"}, Resources: []string{"pods", "nodes"}}}
				s.ClusterPermissions = append(s.ClusterPermissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "cool", Rules: rules})
				role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}, Rules: rules}
				in.ClusterRoles.Items = append(in.ClusterRoles.Items, role)
				in.ClusterRoleBindings.Items = append(in.ClusterRoleBindings.Items, binding(role.Name, role.Name, "cool"))
			}
		},
		"bindings of others": func(in *csv.Input, n int) {
			for i := range 10 * n {
				in.ClusterRoleBindings.Items = append(in.ClusterRoleBindings.Items, binding(fmt.Sprint(i), "x", "other"))
			}
		},
		"definitions": func(in *csv.Input, n int) {
			spec := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			spec.Owned, in.CustomResourceDefinitions.Items = nil, nil
			for i := range n / 10 {
				crd := establishedCRD()
				crd.Name, crd.Spec.Names.Kind = fmt.Sprintf("k%d.example.com", i), fmt.Sprintf("K%d", i)
				spec.Required = append(spec.Required, v1alpha1.CRDDescription{Name: crd.Name, Version: "v1", Kind: crd.Spec.Names.Kind})
				in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, crd)
			}
		},
		"other versions": func(in *csv.Input, n int) {
			for i := range n {
				o := operator(fmt.Sprintf("other.v%d", i), i)
				o.Spec.CustomResourceDefinitions.Owned, o.Spec.Replaces = nil, fmt.Sprintf("other.v%d", i-1)
				in.Neighbours.Items = append(in.Neighbours.Items, o)
			}
		},
		"an annotation of another group": func(in *csv.Input, n int) {
			in.OtherGroups = olmcore.Found(otherGroup(strings.Repeat("Cool.", 20*n)+","+coolAPI, ""))
		},
		"requirements in the status": func(in *csv.Input, n int) {
			in.ClusterServiceVersion.Status.RequirementStatus = make([]v1alpha1.RequirementStatus, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, phase := range []phaseName{pending, installReady, succeeded, failed, replacing} {
				requireLinear(t, 200, func(n int) func() {
					in := input(phase, "RequirementsUnknown", "")
					fill(&in, n)
					for range 2 { // metadata, annotation of the group; then the phase
						if after, ok := metadataOf(firstOf(reconciled(t, in).Actions)); ok {
							in.ClusterServiceVersion = after
						}
					}
					return func() { reconciled(t, in) }
				})
			}
		})
	}
}

// TestGatherReadsLongUpgradeChain checks that Gather reads all versions of an upgrade chain, however long it is and in
// whatever order the versions are listed.
func TestGatherReadsLongUpgradeChain(t *testing.T) {
	requireLinear(t, 600, func(n int) func() {
		objects := make([]olmcore.Object, n)
		for i := range objects {
			c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("chain.v%05d", i), UID: types.UID(fmt.Sprint(i))}}
			if i > 0 {
				c.Spec.Replaces = fmt.Sprintf("chain.v%05d", i-1)
			}
			objects[i] = c
		}
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		return func() {
			for _, at := range []int{0, n / 2, n - 1} {
				in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("chain.v%05d", at)}, csv.Config{})
				require.NoError(t, err)
				require.Len(t, in.Neighbours.Items, n-1)
			}
		}
	})
}

func firstOf(actions []olmcore.Action) olmcore.Action {
	if len(actions) == 0 {
		return nil
	}
	return actions[0]
}
