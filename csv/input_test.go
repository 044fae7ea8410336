// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

func TestInvalidInputsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *csv.Input){
		"ClusterServiceVersion":                    func(in *csv.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.name":      func(in *csv.Input) { in.ClusterServiceVersion.Name = "" },
		"ClusterServiceVersion.metadata.namespace": func(in *csv.Input) { in.ClusterServiceVersion.Namespace = "" },
		"ClusterServiceVersion.metadata.uid":       func(in *csv.Input) { in.ClusterServiceVersion.UID = "" },
		"Now":                                      func(in *csv.Input) { in.Now = time.Time{} },
		"Neighbours[0]":                            func(in *csv.Input) { in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Deployments[1]":                           func(in *csv.Input) { in.Deployments = olmcore.Found(installed(), nil) },
		"Config.InstallTimeout":                    func(in *csv.Input) { in.Config.InstallTimeout = -1 },
		"Config.PackageServerNamespaces[0]":        func(in *csv.Input) { in.Config.PackageServerNamespaces = []string{"a.b"} },
		"Config.ProxyEnv[1].Name":                  func(in *csv.Input) { in.Config.ProxyEnv = []corev1.EnvVar{{Name: "NO_PROXY"}, {Value: "x"}} },
	} {
		in := input(pending, "RequirementsUnknown", "")
		change(&in)
		_, err := csv.Reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
		assessed, wrong := csv.Assess(in)
		require.Equal(t, err, wrong)
		require.Equal(t, csv.Assessment{}, assessed)
	}
}

func TestGatherReadsOnlyRelatedObjects(t *testing.T) {
	c, d := newWorld(csv.Config{})
	objects := fromFiles("base.yaml", "v1.yaml", "rbac-v2.yaml", "v2.yaml")
	require.NoError(t, c.Create(objects...))
	stranger := operator("stranger.v1", 1)
	stranger.Spec.CustomResourceDefinitions.Owned = nil
	stranger.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
	rival := operator("rival.v1", 1)
	copied := operator("copied.v1", 1)
	copied.Labels["olm.copiedFrom"] = "other"
	for _, o := range []*v1alpha1.ClusterServiceVersion{stranger, rival, copied} {
		o.ResourceVersion, o.UID = "", ""
		require.NoError(t, c.Create(o))
	}
	require.NoError(t, c.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "somebody", APIGroup: "rbac.authorization.k8s.io"}},
	}))
	require.NoError(t, c.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unrelated"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "somebody", APIGroup: "rbac.authorization.k8s.io"}},
	}))
	require.NoError(t, d.Cluster.Settle())
	in, err := csv.Gather(context.Background(), c, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	var names []string
	for _, n := range in.Neighbours.Items {
		names = append(names, n.Name)
	}
	require.Equal(t, []string{"cool.v2", "rival.v1"}, names)
	require.Len(t, in.ClusterRoleBindings.Items, 2)
	require.Len(t, in.ClusterRoles.Items, 2)
	require.Empty(t, in.RoleBindings.Items)
	require.True(t, in.Deployments.Complete)
	require.False(t, in.Deletion.Peers.Complete, "what only a clean-up needs is not read")

	_, err = csv.Gather(context.Background(), c, types.NamespacedName{Namespace: "ns", Name: "gone"}, csv.Config{})
	require.True(t, apierrors.IsNotFound(err))
}

var errRead = errors.New("read failed")

// failing fails every read after the first few.
type failing struct {
	olmcore.Reader
	after int
}

func (f *failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if f.after--; f.after < 0 {
		return nil, errRead
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f *failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, s labels.Selector) ([]olmcore.Object, error) {
	if f.after--; f.after < 0 {
		return nil, errRead
	}
	return f.Reader.List(ctx, gvk, namespace, s)
}

func TestAffectedReturnsRelatedCSVs(t *testing.T) {
	all, ns := []types.NamespacedName{{}}, []types.NamespacedName{{Namespace: "ns"}}
	one := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}}
	fromX := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}, {Namespace: "x", Name: "cool.v1"}}
	copied := operator("cool.v1", 1)
	copied.Labels["olm.copiedFrom"] = "x"
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	coOwned := olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "ns", Name: "cool.v1"}})
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"nil":                  {nil, nil},
		"a typed nil":          {(*corev1.Pod)(nil), nil},
		"a CSV":                {operator("cool.v1", 1), ns},
		"a copy":               {copied, fromX},
		"a group":              {&operatorsv1.OperatorGroup{ObjectMeta: meta}, ns},
		"a condition":          {&operatorsv2.OperatorCondition{ObjectMeta: meta}, ns},
		"a Deployment":         {&appsv1.Deployment{ObjectMeta: meta}, ns},
		"a Role":               {&rbacv1.Role{ObjectMeta: meta}, ns},
		"a CRD":                {establishedCRD(), all},
		"a ClusterRole":        {&rbacv1.ClusterRole{ObjectMeta: ours("r")}, all},
		"a shared object":      {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: coOwned}}, one},
		"a copied record":      {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "s", Annotations: coOwned}}, nil},
		"a namespace":          {namespace("ns", nil), ns},
		"a Subscription":       {&v1alpha1.Subscription{ObjectMeta: meta, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1", CurrentCSV: "cool.v1"}}, one},
		"a binding by account": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns"}}}, ns},
		"a binding by user":    {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "system:serviceaccount:ns:a"}}}, ns},
		"a binding by group":   {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}, all},
		"a binding by the accounts of a namespace": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:ns"}}}, ns},
		"an object with owner labels":              {&corev1.Secret{ObjectMeta: ours("s")}, one},
		"an object without owner labels":           {&corev1.Secret{ObjectMeta: meta}, nil},
	} {
		require.Equal(t, c.want, csv.Affected(c.object), name)
	}
}

// TestHealthyCSVIsKeptIfAKindIsNotRead checks that a healthy CSV does not change if a Snapshot lacks one kind, and that
// the missing kind is reported. If all kinds were read, the CSV is at rest.
func TestHealthyCSVIsKeptIfAKindIsNotRead(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "uid-sub"},
		Spec:       &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"disk": "fast"}}},
		Status:     v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
	}
	in.Subscriptions = olmcore.Found(sub)
	deploy(t, &in)
	healthy := []olmcore.Object{
		in.ClusterServiceVersion, in.OperatorGroups.Items[0], in.CustomResourceDefinitions.Items[0], in.ServiceAccounts.Items[0],
		in.Roles.Items[0], in.RoleBindings.Items[0], in.Deployments.Items[0], sub,
	}
	reconciled := func(without string) csv.Outcome {
		in := gather(t, snapshotWithout(t, without, healthy))
		out, err := outcome(in)
		require.NoError(t, err)
		a := assess(t, in)
		require.Equal(t, succeeded, a.Phase)
		require.Equal(t, out.Diagnostics, a.Diagnostics)
		return out
	}
	require.Equal(t, csv.Outcome{}, reconciled("Pod"))
	for _, kind := range []string{
		"OperatorGroup", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "Deployment", "Subscription",
	} {
		out := reconciled(kind)
		require.Empty(t, out.Actions, kind)
		require.Equal(t, 5*time.Second, out.RequeueAfter, kind)
		require.Len(t, out.Diagnostics, 1, kind)
		require.Equal(t, csv.ReasonNotObserved, out.Diagnostics[0].Reason)
		require.Contains(t, out.Diagnostics[0].Message, kind+"s")
	}
}

// snapshotWithout returns a Snapshot in which all kinds were read except one.
func snapshotWithout(t *testing.T, without string, objects []olmcore.Object, more ...schema.GroupKind) *olmcore.Snapshot {
	t.Helper()
	for _, kind := range []string{"ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleQuickStart", "ConsoleYAMLSample"} {
		more = append(more, schema.GroupKind{Group: "console.openshift.io", Kind: kind})
	}
	for _, kind := range olmcore.Kinds() {
		more = append(more, kind.GroupKind())
	}
	var read []olmcore.Scope
	for _, kind := range more {
		if kind.Kind != without {
			read = append(read, olmcore.Scope{Kind: kind})
		}
	}
	objects = slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool { return olmcore.RefOf(o).Kind == without })
	snapshot, err := olmcore.NewSnapshot(objects, read...)
	require.NoError(t, err)
	return snapshot
}

// TestGatherFailsIfTheCSVIsNotRead checks that the error of Gather explains what is unknown.
func TestGatherFailsIfTheCSVIsNotRead(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "ns", Name: "x"}
	_, err = csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "everything about a ClusterServiceVersion")
}

// TestCleanupWaitsForUnreadKinds checks that a cleanup waits if a kind that it deletes, or the operands, were not read.
func TestCleanupWaitsForUnreadKinds(t *testing.T) {
	for name, without := range map[string]string{"cluster objects": "ClusterRole", "operands": "Cool", "the group": "OperatorGroup"} {
		t.Run(name, func(t *testing.T) {
			in := gather(t, snapshotWithout(t, without, append(uninstalling(t), selecting("")), schema.GroupKind{Group: "example.com", Kind: "Cool"}))
			if without == "ClusterRole" {
				in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
				in.ClusterServiceVersion.Spec.Cleanup.Enabled = false
			}
			out := reconciled(t, in)
			require.NotEqual(t, release, does(t, in))
			if without != "Cool" { // that is asked for
				require.Contains(t, out.Diagnostics[0].Message, without)
			}
			for _, a := range out.Actions {
				_, target, _ := a.Describe()
				require.NotEqual(t, "Cool", target.Kind)
			}
		})
	}
}

// keeper is a Reader that stores indexes.
type keeper struct {
	olmcore.IndexedReader
	kept map[olmcore.Term]bool // the terms that were looked up
}

func keeping(r olmcore.Reader) keeper { return keeper{olmcore.Indexed(r), map[olmcore.Term]bool{}} }

func (k keeper) Find(ctx context.Context, r olmcore.Reader, l olmcore.Lookup, terms ...olmcore.Term) ([]olmcore.Object, error) {
	for _, term := range terms {
		k.kept[term] = true
	}
	return k.IndexedReader.Find(ctx, r, l, terms...)
}

// TestGatherReadsTheSameWithAnIndex checks groups with the same APIs, and bindings with all kinds of subjects.
func TestGatherReadsTheSameWithAnIndex(t *testing.T) {
	objects := []olmcore.Object{}
	for i, annotation := range []string{"Cool.v1.example.com", "Other.v1.example.com", "A.v1.b, Cool.v1.example.com", "", "Cool.v1.example.com,Z.v1.z"} {
		objects = append(objects, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", i), Name: "g", Annotations: map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: annotation},
		}, Status: operatorsv1.OperatorGroupStatus{Namespaces: []string{fmt.Sprint("ns", i%4)}}})
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
	require.Len(t, want.OtherGroups.Items, 1, "ns2 watches itself alone, ns4 watches ns0")
	require.Len(t, want.ClusterRoleBindings.Items, 5)
	indexed := keeping(snapshot)
	for range 2 {
		got, err := csv.Gather(t.Context(), indexed, types.NamespacedName{Namespace: "ns0", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	}
	require.NotEmpty(t, indexed.kept)
}

// TestGatherReadsTheSameOfRandomNamespacesWithAnIndex checks upgrade chains, versions that share objects, and versions
// that existing objects name.
func TestGatherReadsTheSameOfRandomNamespacesWithAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawShared(t)
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		indexed := keeping(snapshot)
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

// drawShared draws two namespaces with CSVs that share objects.
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

// outcomeIn returns the Outcome of Reconcile for a CSV in a world of objects.
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

// TestAffectedReturnsCSVsWhoseResultChanges deletes the objects of a world, one after the other. If the result of a CSV
// changes, Affected must have returned the CSV for the object.
func TestAffectedReturnsCSVsWhoseResultChanges(t *testing.T) {
	steps := map[string]struct {
		do   func(c *fake.Cluster, d *fake.Driver)
		want int // how many objects matter to any CSV
	}{
		"installed": {func(*fake.Cluster, *fake.Driver) {}, 5},
		"during an upgrade": {func(c *fake.Cluster, d *fake.Driver) {
			more := fromFiles("rbac-v2.yaml", "v2.yaml")
			require.NoError(t, c.Create(more...))
			for range 3 {
				_, err := d.Round(context.Background())
				require.NoError(t, err)
			}
		}, 3},
		"during a cleanup": {func(c *fake.Cluster, d *fake.Driver) {
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
					if slices.ContainsFunc(csv.Affected(o), func(k types.NamespacedName) bool { return k.Name == "" }) {
						isConcerned, _ := csv.Concerned(nil, o)
						require.True(t, isConcerned(fake.Find[*v1alpha1.ClusterServiceVersion](cluster, key.Namespace, key.Name)), "%s", olmcore.KeyOf(o))
					}
				}
			}
			require.GreaterOrEqual(t, len(mattered), step.want, "%v", mattered)
		})
	}
}

// TestTerminatingDeploymentIsNotInstalled checks that an up-to-date Deployment that is being deleted does not count as
// installed. A new one is created after it is deleted.
func TestTerminatingDeploymentIsNotInstalled(t *testing.T) {
	in := input(installReady, "AllRequirementsMet", "all requirements found, attempting install")
	deploy(t, &in)
	in.Deployments.Items[0].DeletionTimestamp = ago(time.Second)
	check(t, in, requeue(olmcore.Result{}, 4*time.Second))
	in.Deployments.Items[0].DeletionTimestamp = nil
	check(t, in, moves(in, installing, "InstallSucceeded", "waiting for install components to report healthy"))
}

// TestAPILabelsOfProvidedAndRequiredAPIs checks owned and required CRDs and APIServices. An API that is both is
// labelled as required.
func TestAPILabelsOfProvidedAndRequiredAPIs(t *testing.T) {
	label := func(kind, version, group string) string {
		h := fnv.New64a()
		h.Write([]byte(kind + "." + version + "." + group))
		return fmt.Sprintf("olm.api.%x", h.Sum64())
	}
	in := input(none, "", "")
	c := in.ClusterServiceVersion
	c.Finalizers = nil
	c.Labels = map[string]string{"mine": "x", label("Old", "v1", "example.com"): "provided"}
	c.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "hots.example.com", Version: "v1", Kind: "Hot"}}
	c.Spec.APIServiceDefinitions = v1alpha1.APIServiceDefinitions{
		Owned:    []v1alpha1.APIServiceDescription{{Kind: "Ice", Version: "v2", Group: "api.example.com"}, {Kind: "Hot", Version: "v1", Group: "example.com"}},
		Required: []v1alpha1.APIServiceDescription{{Kind: "Fire", Version: "v3", Group: "api.example.com"}},
	}
	want := map[string]string{
		"mine": "x", label("Cool", "v1", "example.com"): "provided", label("Hot", "v1", "example.com"): "required",
		label("Ice", "v2", "api.example.com"): "provided", label("Fire", "v3", "api.example.com"): "required",
	}
	out := reconciled(t, in)
	after, ok := metadataOf(firstOf(out.Actions))
	require.True(t, ok)
	require.Equal(t, want, after.Labels)
	in.ClusterServiceVersion = after
	out = reconciled(t, in)
	_, again := metadataOf(firstOf(out.Actions))
	require.False(t, again, "they are as they should be")
}

// TestCleanupKeepsBindingsOfSharedDeployment checks that the install strategies are compared, because the live
// Deployment has been deleted by then.
func TestCleanupKeepsBindingsOfSharedDeployment(t *testing.T) {
	c := operator("cool.v1", 1)
	c.DeletionTimestamp = ago(time.Minute)
	other := operator("other.v1", 1)
	other.Spec.CustomResourceDefinitions.Owned = nil
	for name, want := range map[string]int{"cool": 1, "warm": 0} {
		other := other.DeepCopy()
		other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = name
		in := gathered(t, c, other, csvtest.Delegator(), namespace("ns", nil), group())
		require.Len(t, in.Neighbours.Items, want)
		require.Len(t, in.Deletion.WellKnown.Items, 1)
		out := reconciled(t, in)
		require.Len(t, deletions(out.Actions), 1-want, name)
	}
}

func TestGatherReturnsEveryReadError(t *testing.T) {
	leaver := operator("cool.v1", 1)
	leaver.DeletionTimestamp, leaver.Spec.Cleanup.Enabled = ago(time.Minute), true
	g := group()
	g.Spec.ServiceAccountName = "installer"
	objects := []olmcore.Object{leaver, g, namespace("ns", nil), establishedCRD(), cool("one"), &rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	ctx := context.Background()
	for name, read := range map[string]func(r olmcore.Reader) error{
		"a cleanup": func(r olmcore.Reader) error {
			_, err := csv.Gather(ctx, r, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
			return err
		},
		"a group": func(r olmcore.Reader) error {
			_, err := operatorgroup.Gather(ctx, r, types.NamespacedName{Namespace: "ns", Name: "group"})
			return err
		},
		"a sweep": func(r olmcore.Reader) error {
			_, err := sweep.Gather(ctx, r, cleanup.Config{}, nil)
			return err
		},
	} {
		count := &failing{Reader: snapshot, after: 1000}
		require.NoError(t, read(count), name)
		reads := 1000 - count.after
		require.Greater(t, reads, 6, name)
		for n := range reads {
			require.ErrorIs(t, read(&failing{Reader: snapshot, after: n}), errRead, "%s, read %d of %d", name, n, reads)
		}
	}
}

// TestGatherReadsCopiesOfDeletedCSV checks that Gather reads the copies of a CSV that is being deleted, and that
// Affected returns the CSV if a copy changes.
func TestGatherReadsCopiesOfDeletedCSV(t *testing.T) {
	c := operator("cool.v1", 1)
	c.DeletionTimestamp = ago(time.Minute)
	another := copied("b")
	another.Labels["olm.copiedFrom"] = "x"
	requirer := operator("requirer.v1", 1)
	requirer.Namespace, requirer.UID, requirer.Annotations = "elsewhere", "requirer", nil
	d := &requirer.Spec.CustomResourceDefinitions
	d.Owned, d.Required = nil, d.Owned
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c, copied("a"), another, requirer}, olmcore.Everything)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "ns", Name: "cool.v1"}
	in, err := csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.NoError(t, err)
	require.Equal(t, olmcore.Found(copied("a")), in.Deletion.Copies)
	require.Equal(t, olmcore.Found(requirer), in.Deletion.Peers, "it is not its own peer, nor are its copies")
	require.Contains(t, csv.Affected(copied("a")), key)
	require.Equal(t, []types.NamespacedName{{Namespace: "x", Name: "cool.v1"}}, csv.Affected(another))
	another.Finalizers = []string{cleanup.Finalizer}
	require.Equal(t, []types.NamespacedName{{Namespace: "b", Name: "cool.v1"}, {Namespace: "x", Name: "cool.v1"}}, csv.Affected(another))
}

// TestUnneededListsMayBeUnread checks that a CSV without CRDs, APIServices and permissions is at rest whether those
// lists were read or not.
func TestUnneededListsMayBeUnread(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	spec := &in.ClusterServiceVersion.Spec
	spec.CustomResourceDefinitions, spec.InstallStrategy.StrategySpec.Permissions = v1alpha1.CustomResourceDefinitions{}, nil
	in.ClusterServiceVersion.Labels = nil
	deploy(t, &in)
	for _, list := range []func(){
		func() { unread(&in.CustomResourceDefinitions) }, func() { unread(&in.APIServices) }, func() { unread(&in.ServiceAccounts) },
		func() { unread(&in.Roles) }, func() { unread(&in.RoleBindings) }, func() { unread(&in.ClusterRoles) },
		func() { unread(&in.ClusterRoleBindings) }, func() { unread(&in.OtherGroups) }, func() { unread(&in.OtherProviders) },
	} {
		list()
		check(t, in, olmcore.Result{})
	}
	in = input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	unread(&in.OtherProviders)
	unread(&in.APIServices)
	check(t, in, olmcore.Result{}) // no other group lists its APIs
}

// TestDeploymentOwnerIsANeighbour checks that Gather reads the owner of a Deployment even if its strategy no longer
// names the Deployment.
func TestDeploymentOwnerIsANeighbour(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "")
	deploy(t, &in)
	d := in.Deployments.Items[0]
	other := operator("other.v1", 1)
	other.Spec.CustomResourceDefinitions.Owned, other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil, nil
	for owner, want := range map[string]int{"other.v1": 1, "third.v1": 0} {
		d := d.DeepCopy()
		d.Labels["olm.owner"] = owner
		got := gathered(t, in.ClusterServiceVersion, other, d)
		require.Len(t, got.Neighbours.Items, want, owner)
	}
}

// TestUnmetReportOfSucceededCSVIsRefreshed checks that the report is written without a new entry in the history.
func TestUnmetReportOfSucceededCSVIsRefreshed(t *testing.T) {
	in := healthy(t)
	in.ClusterServiceVersion.Status.RequirementStatus = metReport()
	check(t, in, olmcore.Result{})
	in.ClusterServiceVersion.Status.RequirementStatus[0].Status = "NotPresent"
	out := reconciled(t, in)
	require.Len(t, out.Actions, 1)
	require.Empty(t, out.Transitions)
	want := in.ClusterServiceVersion.Status.DeepCopy()
	want.RequirementStatus, want.LastUpdateTime = metReport(), ago(0)
	after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
	require.True(t, ok)
	require.Equal(t, *want, after.Status)
}

// TestDeploymentIsUpdatedIfAnySourceChanges checks that a Deployment is written again if anything changes that it was
// computed from.
func TestDeploymentIsUpdatedIfAnySourceChanges(t *testing.T) {
	for name, change := range map[string]func(in *csv.Input){
		"the spec of the CSV": func(in *csv.Input) {
			in.ClusterServiceVersion.Generation++
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = new(int32(3))
		},
		"an annotation of the CSV went": func(in *csv.Input) { delete(in.ClusterServiceVersion.Annotations, "mine") },
		"an annotation is excluded now": func(in *csv.Input) { in.Config.ExcludedAnnotations = []string{"mine"} },
		"the proxy":                     func(in *csv.Input) { in.Config.ProxyEnv[0].Value = "q" },
		"the config of the Subscription": func(in *csv.Input) {
			in.Subscriptions.Items[0].Generation++
			in.Subscriptions.Items[0].Spec.Config.NodeSelector["x"] = "z"
		},
		"no Subscription": func(in *csv.Input) { in.Subscriptions.Items = nil },
	} {
		t.Run(name, func(t *testing.T) {
			in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			in.ClusterServiceVersion.Annotations["mine"] = "x"
			in.Config.ProxyEnv = []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "p"}}
			in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s", Generation: 1},
				Spec:       &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"x": "y"}}},
				Status:     v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
			})
			deploy(t, &in)
			check(t, in, olmcore.Result{})
			change(&in)
			a := assess(t, in)
			require.Equal(t, installReady, a.Phase, a.Message)
			require.Contains(t, a.Message, "deployment changed old hash=")
		})
	}
}

// TestMiddleVersionWaitsForItsPredecessor checks that a version is kept until its predecessor is deleted, even if its
// successor is already being deleted and a later version is Succeeded.
func TestMiddleVersionWaitsForItsPredecessor(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	predecessorOf(&in, replacing)
	next := successorOf(&in, replacing)
	next.DeletionTimestamp = ago(time.Second)
	last := operator("cool.v3", 3)
	last.Spec.Replaces = next.Name
	hold(last, succeeded, "InstallSucceeded", "", time.Minute)
	in.Neighbours.Items = append(in.Neighbours.Items, last)
	require.Equal(t, "WaitingForOlderVersions", assess(t, in).Rule)
	in.ClusterServiceVersion.Spec.Replaces = ""
	require.Equal(t, deleting, assess(t, in).Phase, "it is the oldest now")
}
