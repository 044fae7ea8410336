// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

func may(account string, verbs ...string) v1alpha1.StrategyDeploymentPermissions {
	return v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

// releaseOf returns version n of an operator. As in OLM's tests, its permissions and display name change between
// versions, and a ConfigMap gets another name.
func releaseOf(n int, verbs ...string) olmcore.Operator {
	name := fmt.Sprintf("a.v%d", n)
	typed := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	o := Operator("a",
		&corev1.ConfigMap{TypeMeta: typed("ConfigMap"), ObjectMeta: Bare("same"), Data: map[string]string{fmt.Sprintf("v%d", n): "x"}},
		&corev1.ConfigMap{TypeMeta: typed("ConfigMap"), ObjectMeta: Bare(fmt.Sprintf("renamed-%d", n))},
		&corev1.Secret{TypeMeta: typed("Secret"), ObjectMeta: Bare("secret"), Data: map[string][]byte{"n": {byte('0' + n)}}})
	version := o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
	version.Name, version.Spec.DisplayName = name, name
	version.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{may("a", verbs...)}
	o.Name, o.Version = name, fmt.Sprintf("%d.0.0", n)
	if n > 1 {
		o.Replaces = fmt.Sprintf("a.v%d", n-1)
	}
	return o
}

// TestUpgradeInstallsAndRemovesObjects checks that an upgrade installs the objects of the new bundle, whatever users
// changed in the old ones. Objects of the old bundle alone are deleted with the old version, and all others with the
// last one. It includes OLM's cases.
func TestUpgradeInstallsAndRemovesObjects(t *testing.T) {
	for name, c := range map[string]struct{ before, after []string }{
		"permissions are widened":  {[]string{"get"}, []string{"get", "list"}},
		"permissions are narrowed": {[]string{"get", "list"}, []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := World(t, UserSubscription("a"))
			run := func(o olmcore.Operator) {
				driven(t, cluster, 0, makers(Installs(o), installplan.Config{}), plans(installplan.Config{}))
				version := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, NS, o.Name)
				require.Equal(t, o.Name, version.Spec.DisplayName)
				require.Equal(t, o.Replaces, version.Spec.Replaces)
			}
			remove := func(name string) { // as package csv does after its cleanup
				require.NoError(t, fake.Edit(cluster, NS, name, func(v *v1alpha1.ClusterServiceVersion) { v.Finalizers = nil }))
				require.NoError(t, cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](cluster, NS, name)).Unversioned()))
				require.NoError(t, cluster.Settle())
			}
			verbs := func() []string {
				roles, err := olmcore.List[*rbacv1.Role](t.Context(), cluster, NS, nil)
				require.NoError(t, err)
				require.Len(t, roles, 1)
				return roles[0].Rules[0].Verbs
			}
			config := func(name string) *corev1.ConfigMap { return fake.Find[*corev1.ConfigMap](cluster, NS, name) }

			run(releaseOf(1, c.before...))
			require.Equal(t, c.before, verbs())
			require.Equal(t, map[string]string{"v1": "x"}, config("same").Data)
			require.NoError(t, fake.Edit(cluster, NS, "a.v1", func(v *v1alpha1.ClusterServiceVersion) {
				v.Spec.DisplayName = "edited"
				v.Spec.InstallStrategy.StrategySpec.Permissions = nil
			}))

			run(releaseOf(2, c.after...))
			remove("a.v1")
			require.Equal(t, c.after, verbs(), "the old version's went with it")
			require.Equal(t, map[string]string{"v2": "x"}, config("same").Data)
			require.Nil(t, config("renamed-1"))
			require.NotNil(t, config("renamed-2"))
			require.Equal(t, []byte("2"), fake.Find[*corev1.Secret](cluster, NS, "secret").Data["n"])

			remove("a.v2")
			require.Nil(t, config("same"))
			require.Nil(t, config("renamed-2"))
			require.Nil(t, fake.Find[*corev1.Secret](cluster, NS, "secret"))
			require.Nil(t, fake.Find[*corev1.ServiceAccount](cluster, NS, "a"))
		})
	}
}

// TestDeletedPlanIsCreatedAgain checks that a plan that a user deletes while it waits for approval is created again
// with the same content and the next generation. It includes OLM's cases.
func TestDeletedPlanIsCreatedAgain(t *testing.T) {
	c := World(t, UserSubscription("a", Manual))
	d := driven(t, c, 0, makers(Installs(Operator("a")), installplan.Config{}), plans(installplan.Config{}))
	first := onlyPlan(t, c)
	require.Equal(t, RequiresApproval, first.Status.Phase)
	require.NoError(t, c.Delete(olmcore.RefOf(first).Unversioned()))
	sub := fake.Find[*v1alpha1.Subscription](c, NS, "a").DeepCopy() // forgets the plan, as package subscription makes it
	sub.Status.InstallPlanRef, sub.Status.CurrentCSV = nil, ""
	require.NoError(t, c.UpdateStatus(sub))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	second := onlyPlan(t, c)
	require.NotEqual(t, first.UID, second.UID)
	require.Equal(t, RequiresApproval, second.Status.Phase)
	require.Equal(t, first.Spec.Generation+1, second.Spec.Generation)
	Same(t, first.Status.Plan, second.Status.Plan)
}

// TestTenWorkersCreateOnePlan checks that ten workers with the same Input create one plan of generation 1, because the
// API server accepts only the first of ten equal names. It includes OLM's cases.
func TestTenWorkersCreateOnePlan(t *testing.T) {
	c := World(t, UserSubscription("a"))
	making := makers(Installs(Operator("a")), installplan.Config{})
	snapshot, err := c.Snapshot()
	require.NoError(t, err)
	results := make([]olmcore.Result, 10)
	var workers sync.WaitGroup
	for i := range results {
		workers.Go(func() {
			r, err := making.Reconcile(t.Context(), snapshot, types.NamespacedName{Namespace: NS}, Noon, nil)
			if err == nil {
				results[i] = r
			}
		})
	}
	workers.Wait()
	for _, r := range results {
		require.Len(t, r.Actions, 1)
		_ = olmcore.Run(t.Context(), c, r.Actions) // nine of them exist already
	}
	driven(t, c, 0, making)
	p := onlyPlan(t, c)
	require.Equal(t, 1, p.Spec.Generation)
	sub := fake.Find[*v1alpha1.Subscription](c, NS, "a")
	require.Equal(t, p.UID, sub.Status.InstallPlanRef.UID)
	require.Equal(t, 1, sub.Status.InstallPlanGeneration)
}

// TestUsedGenerationIsSkipped checks that a new plan and its Subscription get the next free generation. It includes
// OLM's cases.
func TestUsedGenerationIsSkipped(t *testing.T) {
	foreign := Plan(Installing, []*v1alpha1.Step{CSVStep("other.v1")}, func(p *v1alpha1.InstallPlan) { p.Finalizers = nil })
	c := World(t, UserSubscription("a"), foreign)
	before := fake.Find[*v1alpha1.InstallPlan](c, NS, foreign.Name).DeepCopy()
	driven(t, c, 0, makers(Installs(Operator("a")), installplan.Config{}))
	Same(t, before, fake.Find[*v1alpha1.InstallPlan](c, NS, foreign.Name))
	sub := fake.Find[*v1alpha1.Subscription](c, NS, "a")
	require.Equal(t, 2, sub.Status.InstallPlanGeneration)
	made := fake.Find[*v1alpha1.InstallPlan](c, NS, sub.Status.InstallPlanRef.Name)
	require.Equal(t, 2, made.Spec.Generation)
	require.Equal(t, []string{"a.v1"}, made.Spec.ClusterServiceVersionNames)
}

// TestVersionIsListedOnce checks a version with steps and a lookup. It includes OLM's cases.
func TestVersionIsListedOnce(t *testing.T) {
	o, cm := ImageOf(t, Rich())
	cm.UID, cm.ResourceVersion = "", ""
	c := World(t, &v1alpha1.CatalogSource{ObjectMeta: InOLM("cool")}, cm, UserSubscription("rich"), UserSubscription("b"))
	driven(t, c, 0, makers(Installs(o, Operator("b")), Things))
	p := onlyPlan(t, c)
	require.Len(t, p.Status.BundleLookups, 1)
	require.Equal(t, "rich.v1", p.Status.BundleLookups[0].Identifier)
	require.Equal(t, []string{"b.v1", "rich.v1"}, p.Spec.ClusterServiceVersionNames)
}

// TestStepsNameTheirCatalog checks that each step names its catalog, and the plan all of them. It includes OLM's cases.
func TestStepsNameTheirCatalog(t *testing.T) {
	a, b := Operator("a", CRDObject("v1")), Operator("b")
	b.Catalog = types.NamespacedName{Namespace: "there", Name: "warm"}
	c := World(t, UserSubscription("a"), UserSubscription("b"))
	driven(t, c, 0, makers(Installs(a, b), installplan.Config{}))
	p := onlyPlan(t, c)
	var got []string
	for _, s := range p.Status.Plan {
		got = append(got, fmt.Sprintf("%s %s from %s/%s for %s", s.Resource.Kind, s.Resource.Name, s.Resource.CatalogSourceNamespace, s.Resource.CatalogSource, s.Resolving))
	}
	require.Equal(t, []string{
		"ClusterServiceVersion a.v1 from olm/cool for a.v1", "ClusterServiceVersion b.v1 from there/warm for b.v1",
		"CustomResourceDefinition things.example.com from olm/cool for a.v1",
	}, got)
	require.Equal(t, []string{"cool", "warm"}, p.Status.CatalogSources)
}

// TestPublishedBundlesAreInstalled checks that the plan of each bundle becomes Complete, that its objects exist, and
// that no action follows.
func TestPublishedBundlesAreInstalled(t *testing.T) {
	t.Parallel()
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			o := PublishedOperator(b)
			c := World(t, append(monitoring(), &v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "sub"}, Spec: &v1alpha1.SubscriptionSpec{Package: b.Operator},
			})...)
			config := installplan.Config{MaxStatusBytes: 4 << 20}
			d := driven(t, c, 0, makers(Installs(o), config), plans(config))
			p := onlyPlan(t, c)
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			require.Empty(t, p.Finalizers)
			require.True(t, olmcore.OwnedBy(p, fake.Find[*v1alpha1.Subscription](c, NS, "sub").UID))
			for _, s := range p.Status.Plan {
				require.Contains(t, []v1alpha1.StepStatus{Created, Present}, s.Status, s.Resource.Name)
			}
			before := c.ResourceVersion()
			require.NoError(t, d.Settle(t.Context()))
			require.Equal(t, before, c.ResourceVersion(), "it is done")
		})
	}
}

// TestNothingIsInstalledWithoutApproval checks plans with failing writes over a long time.
func TestNothingIsInstalledWithoutApproval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(UserSubscription("rich", Manual), UserSubscription("b"))
		require.NoError(t, err)
		Faults(t, c)
		d := driven(t, c, 20*time.Minute, makers(Installs(Rich(), Operator("b")), Things), plans(Things), sweeps(Things))
		c.Faults().Clear()
		require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
		require.Equal(t, RequiresApproval, onlyPlan(t, c).Status.Phase)
		for _, o := range c.Objects() {
			require.NotContains(t, []string{"ClusterServiceVersion", "Service", "ConfigMap", "ClusterRole", "CustomResourceDefinition"}, olmcore.KeyOf(o).Kind)
		}
	})
}
