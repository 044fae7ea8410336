// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func TestBrokenContractsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *csv.Input){
		"ClusterServiceVersion":                    func(in *csv.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.name":      func(in *csv.Input) { in.ClusterServiceVersion.Name = "" },
		"ClusterServiceVersion.metadata.namespace": func(in *csv.Input) { in.ClusterServiceVersion.Namespace = "" },
		"ClusterServiceVersion.metadata.uid":       func(in *csv.Input) { in.ClusterServiceVersion.UID = "" },
		"Now":                                      func(in *csv.Input) { in.Now = time.Time{} },
		"Neighbours[0]":                            func(in *csv.Input) { in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Deployments[1]":                           func(in *csv.Input) { in.Deployments = olmcore.Found(installed(), nil) },
		"Config.InstallTimeout":                    func(in *csv.Input) { in.Config.InstallTimeout = -1 },
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

func TestGatherKeepsWhatMatters(t *testing.T) {
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

func TestAffected(t *testing.T) {
	all, ns := []types.NamespacedName{{}}, []types.NamespacedName{{Namespace: "ns"}}
	one := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}}
	fromX := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}, {Namespace: "x", Name: "cool.v1"}}
	copied := operator("cool.v1", 1)
	copied.Labels["olm.copiedFrom"] = "x"
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
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
		"a namespace":          {namespace("ns", nil), ns},
		"a Subscription":       {&v1alpha1.Subscription{ObjectMeta: meta, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1", CurrentCSV: "cool.v1"}}, one},
		"a binding by account": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns"}}}, ns},
		"a binding by user":    {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "system:serviceaccount:ns:a"}}}, ns},
		"a binding by group":   {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}, all},
		"a binding by the accounts of a namespace": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:ns"}}}, ns},
		"what we own":      {&corev1.Secret{ObjectMeta: ours("s")}, one},
		"what nobody owns": {&corev1.Secret{ObjectMeta: meta}, nil},
	} {
		require.Equal(t, c.want, csv.Affected(c.object), name)
	}
}

// TestNothingIsConcludedFromWhatWasNotRead: a healthy CSV of a Snapshot that lacks any one kind stays as it is, and
// what is missing is named; with all of them read it is at rest.
func TestNothingIsConcludedFromWhatWasNotRead(t *testing.T) {
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

// snapshotWithout is a Snapshot of objects in which all kinds that the library knows, and more, were read but one.
func snapshotWithout(t *testing.T, without string, objects []olmcore.Object, more ...schema.GroupKind) *olmcore.Snapshot {
	t.Helper()
	for _, kind := range []string{"ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample"} {
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

// TestWhatCannotBeDoneWithoutIsAnError of Gather, which says what is unknown.
func TestWhatCannotBeDoneWithoutIsAnError(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "ns", Name: "x"}
	_, err = csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "everything about a ClusterServiceVersion")
}

// TestAPredecessorsConditionThatWasNotRead holds the upgrade.
func TestAPredecessorsConditionThatWasNotRead(t *testing.T) {
	in := input(pending, "RequirementsUnknown", "requirements not yet checked")
	predecessorOf(&in, replacing)
	unread(&in.OperatorConditions)
	out, err := outcome(in)
	require.NoError(t, err)
	require.Empty(t, out.Actions)
	require.Equal(t, "the list of OperatorConditions was not read, so nothing is decided", out.Diagnostics[0].Message)
}

// TestACleanUpWaitsForWhatWasNotRead: of a kind that it looks for, and of the custom resources themselves.
func TestACleanUpWaitsForWhatWasNotRead(t *testing.T) {
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
