// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// keeper is a Reader that keeps indexes.
type keeper struct {
	*olmcore.Snapshot
	kept map[string]any
}

func (k keeper) Index(key string, build func() any) any {
	if k.kept[key] == nil {
		k.kept[key] = build()
	}
	return k.kept[key]
}

// TestGatherReadsTheSameWithAnIndex: of groups with the same APIs and of bindings of every form.
func TestGatherReadsTheSameWithAnIndex(t *testing.T) {
	objects := []olmcore.Object{}
	for i, annotation := range []string{"Cool.v1.example.com", "Other.v1.example.com", "A.v1.b, Cool.v1.example.com", "", "Cool.v1.example.com,Z.v1.z"} {
		objects = append(objects, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", i), Name: "g", Annotations: map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: annotation},
		}})
	}
	for i, subject := range []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "ns0", Name: "sa"}, {Kind: "ServiceAccount", Namespace: "ns1", Name: "sa"}, {Kind: "ServiceAccount", Name: "sa"},
		{Kind: "User", Name: "system:serviceaccount:ns0:sa"}, {Kind: "User", Name: "sa"},
		{Kind: "Group", Name: "system:serviceaccounts"}, {Kind: "Group", Name: "system:serviceaccounts:ns0"}, {Kind: "Group", Name: "system:authenticated"},
		{Kind: "Group", Name: "system:serviceaccounts:ns1"}, {Kind: "Group", Name: "admins"},
	} {
		name := fmt.Sprint("b", i)
		objects = append(objects,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject, {Kind: "User", Name: "x"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}})
	}
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns0", Name: "cool.v1", UID: "1"}}
	c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cools.example.com", Kind: "Cool", Version: "v1"}}
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "sa"}}
	snapshot, err := olmcore.NewSnapshot(append(objects, c), olmcore.Everything)
	require.NoError(t, err)
	want, err := csv.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: "ns0", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	require.Len(t, want.OtherGroups.Items, 2)
	require.Len(t, want.ClusterRoleBindings.Items, 5)
	indexed := keeper{snapshot, map[string]any{}}
	for range 2 {
		got, err := csv.Gather(t.Context(), indexed, types.NamespacedName{Namespace: "ns0", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	}
	require.NotEmpty(t, indexed.kept)
}

// TestGatherReadsTheSameOfAnyNamespaceWithAnIndex: of lines of versions, of what they share, and of who is told of by
// what is there.
func TestGatherReadsTheSameOfAnyNamespaceWithAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawShared(t)
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		indexed := keeper{snapshot, map[string]any{}}
		for _, o := range objects {
			if _, ok := o.(*v1alpha1.ClusterServiceVersion); !ok {
				continue
			}
			key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
			want, err := csv.Gather(t.Context(), snapshot, key, csv.Config{})
			require.NoError(t, err)
			got, err := csv.Gather(t.Context(), indexed, key, csv.Config{})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()))
		}
	})
}

// drawShared draws two namespaces of CSVs that have things in common.
func drawShared(t *rapid.T) (objects []olmcore.Object) {
	one := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	some := func(label string, names ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID[string]).Draw(t, label)
	}
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, namespace := range []string{"ns0", "ns1"} {
		objects = append(objects, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "g", Annotations: map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: one("APIs", "", "Cool.v1.x.com", "Other.v1.x.com")},
		}})
		for i, name := range names {
			c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
			c.Spec.Replaces = one("replaces", "", "", "", "gone", names[(i+1)%len(names)], names[0])
			if rapid.IntRange(0, 5).Draw(t, "copy") == 0 {
				c.Status.Reason = v1alpha1.CSVReasonCopied
			}
			for _, crd := range some("CRDs", "cools.x.com", "others.x.com", "more.x.com") {
				kind := one("kind", "Cool", "Other", crd)
				c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: crd, Kind: kind, Version: "v1"})
			}
			for _, d := range some("deployments", "d0", "d1", "d2"+name, "d3"+name) {
				c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{Name: d})
			}
			for _, account := range some("accounts", "sa0", "sa1") {
				c.Spec.InstallStrategy.StrategySpec.Permissions = append(c.Spec.InstallStrategy.StrategySpec.Permissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account})
			}
			sub := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: &v1alpha1.SubscriptionSpec{}}
			sub.Status.InstalledCSV, sub.Status.CurrentCSV = one("installed", names...), one("current", names...)
			live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "d2" + name, Labels: map[string]string{
				"olm.owner": one("owner", names...), "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion",
			}}}
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
				Subjects: []rbacv1.Subject{{Kind: one("subject", "ServiceAccount", "User", "Group"), Namespace: one("of", "", "ns0", "ns1"),
					Name: one("bound", "sa0", "sa1", "system:serviceaccount:ns0:sa0", "system:serviceaccounts", "system:serviceaccounts:ns1", "x")}},
			}
			objects = append(objects, c, sub, live, binding)
		}
	}
	for _, name := range []string{"cools.x.com", "others.x.com"} {
		objects = append(objects, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"operatorframework.io/installed-alongside-1": one("alongside", "ns0/", "ns1/") + one("version", names...)},
		}})
	}
	return objects
}

// outcomeIn is what Reconcile says about a CSV in a world of objects.
func outcomeIn(t *testing.T, objects []olmcore.Object, key types.NamespacedName, now time.Time) csv.Outcome {
	t.Helper()
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = now, kubernetesVersion
	out, err := outcome(in)
	require.NoError(t, err)
	return out
}

// TestWhatChangesTheResultIsAffected takes the objects of a world away, one after the other: when the result of a CSV
// changes, the object must have named it.
func TestWhatChangesTheResultIsAffected(t *testing.T) {
	steps := map[string]struct {
		do   func(c *fake.Cluster, d *fake.Driver)
		want int // how many objects matter to any CSV
	}{
		"installed": {func(*fake.Cluster, *fake.Driver) {}, 5},
		"in mid-upgrade": {func(c *fake.Cluster, d *fake.Driver) {
			more := fromFiles("rbac-v2.yaml", "v2.yaml")
			require.NoError(t, c.Create(more...))
			for range 3 {
				_, err := d.Round(context.Background())
				require.NoError(t, err)
			}
		}, 3},
		"in mid-clean-up": {func(c *fake.Cluster, d *fake.Driver) {
			require.NoError(t, c.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1"))))
		}, 1},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, small(t))
			step.do(cluster, driver)
			all := cluster.Objects()
			var keys []types.NamespacedName
			for _, v := range csvs(cluster) {
				keys = append(keys, types.NamespacedName{Namespace: v.Namespace, Name: v.Name})
			}
			now := cluster.Now().Add(time.Second)
			mattered := map[olmcore.Key]bool{}
			for _, key := range keys {
				want := outcomeIn(t, all, key, now)
				for i, o := range all {
					if k := olmcore.KeyOf(o); k.Kind == "ClusterServiceVersion" && k.Name == key.Name {
						continue
					}
					got := outcomeIn(t, slices.Delete(slices.Clone(all), i, i+1), key, now)
					if cmp.Equal(want, got) {
						continue
					}
					mattered[olmcore.KeyOf(o)] = true
					require.Contains(t, olmcore.ExpandKeys(csv.Affected(o), append(keys, types.NamespacedName{Namespace: "x", Name: "x"})), key, "%s", olmcore.KeyOf(o))
				}
			}
			require.GreaterOrEqual(t, len(mattered), step.want, "%v", mattered)
		})
	}
}
