// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/sample"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
)

// gatherObjects returns the objects of a namespace with an operator, and unrelated objects.
func gatherObjects() []olmcore.Object {
	owned := func(o olmcore.Object) olmcore.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(newCSV("etcd.v1"))})
		return o
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "etcd", UID: "r", ResourceVersion: "1"}}
	role.Labels = olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: ns, Name: "etcd.v1"}.Labels()
	otherRole := role.DeepCopy()
	otherRole.Name, otherRole.UID, otherRole.Labels[olmcore.LabelOwner] = "other", "o", "other.v1"
	elsewhere := newSub("a")
	elsewhere.Namespace = "elsewhere"
	return []olmcore.Object{
		newSub("a", follows("p", "etcd.v1"), installed), newSub("b", follows("p", "vault.v1")), elsewhere,
		newSub("c", func(s *v1alpha1.Subscription) {
			s.Annotations = map[string]string{"olm.generated-by": "p"}
			s.Spec.StartingCSV = "lib.v1"
		}),
		newPlan("p", "Complete"), newPlan("q", "Failed"),
		newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "etcds.example.com"}, {Name: "gone.example.com"}}
		}),
		newCSV("lib.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = nil }), newCSV("unnamed.v1"),
		&operatorsv1.OperatorGroup{ObjectMeta: meta("group")},
		owned(&corev1.ServiceAccount{ObjectMeta: meta("etcd")}), &corev1.ServiceAccount{ObjectMeta: meta("default")},
		owned(&appsv1.Deployment{ObjectMeta: meta("etcd")}), role, otherRole,
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "etcds.example.com", UID: "c", ResourceVersion: "1"}},
	}
}

func TestGatherReadsTheObjectsOfANamespace(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(gatherObjects(), olmcore.Everything)
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{ReinstallMissingCSV: true})
	require.NoError(t, err)
	require.Equal(t, ns, in.Namespace)
	require.True(t, in.Config.ReinstallMissingCSV)
	require.True(t, in.Now.IsZero())
	require.Equal(t, []string{"a", "b", "c"}, names(in.Subscriptions.Items))
	require.Equal(t, []string{"p", "q"}, names(in.InstallPlans.Items))
	require.Equal(t, []string{"etcd.v1", "lib.v1"}, names(in.ClusterServiceVersions.Items))
	require.Equal(t, []string{"group"}, names(in.OperatorGroups.Items))
	var components []string
	for _, o := range in.Components {
		components = append(components, olmcore.KeyOf(o).String())
	}
	require.Equal(t, []string{"ServiceAccount ops/etcd", "Deployment ops/etcd", "ClusterRole etcd", "CustomResourceDefinition etcds.example.com"}, components)

	in, err = subscription.Gather(context.Background(), snapshot, ns, subscription.Config{SkipComponents: true})
	require.NoError(t, err)
	require.Empty(t, in.Components)

	in, err = subscription.Gather(context.Background(), snapshot, "empty", subscription.Config{})
	require.NoError(t, err)
	in.Now = now
	out := reconcile(t, in)
	require.True(t, out.Empty())
}

func names[T metav1.Object](list []T) []string {
	var all []string
	for _, o := range list {
		all = append(all, o.GetName())
	}
	return all
}

func TestGatherReturnsTheErrorOfAFailedRead(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(gatherObjects(), olmcore.Everything)
	require.NoError(t, err)
	for n := range 100 {
		left := n
		_, err := subscription.Gather(context.Background(), sample.Failing{Reader: snapshot, Left: &left}, ns, subscription.Config{})
		if left >= 0 {
			require.NoError(t, err)
			require.Greater(t, n, 15, "fewer reads than expected")
			return
		}
		require.ErrorIs(t, err, sample.ErrRead, "read %d", n)
	}
}

// listing counts the lists of ClusterServiceVersions.
type listing struct {
	olmcore.Reader
	lists *int
}

func (l listing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if gvk.Kind == v1alpha1.ClusterServiceVersionKind {
		*l.lists++
	}
	return l.Reader.List(ctx, gvk, namespace, selector)
}

func TestGatherListsCSVsOnlyIfOneIsMissing(t *testing.T) {
	done, waits, v1 := newPlan("p", "Complete"), newPlan("q", "RequiresApproval", manual(1)), newCSV("etcd.v1")
	older := newPlan("o", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"etcd.v0"} })
	pending := newSub("a", follows("p", "etcd.v1"), installed, follows("q", "etcd.v2"))
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    int
	}{
		"at rest":                          {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed), done, older, v1}, 0},
		"installed, and refers to no plan": {[]olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "etcd.v1" }), done, older, v1}, 0},
		"an upgrade to be approved":        {[]olmcore.Object{pending, done, waits, v1}, 0},
		"an upgrade after another one":     {[]olmcore.Object{pending, done, waits, v1, older}, 1},
		"a version that is gone":           {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed), done}, 1},
		"a Subscription without a version": {[]olmcore.Object{newSub("a"), done, v1}, 1},
	} {
		snapshot, err := olmcore.NewSnapshot(tc.objects, olmcore.Everything)
		require.NoError(t, err)
		lists := 0
		_, err = subscription.Gather(context.Background(), listing{snapshot, &lists}, ns, subscription.Config{})
		require.NoError(t, err)
		require.Equal(t, tc.want, lists, name)
	}
}

func TestAffectedNamespaces(t *testing.T) {
	here := []types.NamespacedName{{Namespace: ns}}
	all := []types.NamespacedName{{}}
	for _, o := range append(gatherObjects(), newCatalog(ns, "cool", true)) {
		want := here
		switch {
		case o.GetNamespace() == "elsewhere":
			want = []types.NamespacedName{{Namespace: "elsewhere"}}
		case o.GetName() == "default":
			want = nil
		case olmcore.KeyOf(o).Kind == "CustomResourceDefinition", olmcore.KeyOf(o).Kind == "CatalogSource":
			want = all
		}
		require.Equal(t, want, subscription.Affected(o), olmcore.KeyOf(o))
	}
	require.Equal(t, here, subscription.Affected(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	require.Nil(t, subscription.Affected(nil))
	require.Nil(t, subscription.Affected((*v1alpha1.Subscription)(nil)))
	require.Nil(t, subscription.Affected(&corev1.Node{}))
}

// TestEveryObjectThatChangesTheResultIsAffected checks that Affected names the namespace for every object that
// changes its result when it is created, changed or deleted. The old or the new version of the object must name it.
func TestEveryObjectThatChangesTheResultIsAffected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := gatherObjects()
		for _, namespace := range []string{"olm", ns, "elsewhere"} {
			for _, name := range []string{"cool", "other"} {
				objects = append(objects, newCatalog(namespace, name, rapid.Bool().Draw(t, "healthy")))
			}
		}
		i := rapid.IntRange(0, len(objects)-1).Draw(t, "object")
		before, after := objects[i], spoiled(t, objects[i])
		with := slices.Clone(objects)
		if with[i] = after; after == nil {
			with = slices.Delete(with, i, i+1)
		}
		if rapid.Bool().Draw(t, "added instead") {
			objects, with, before, after = with, objects, after, before
		}
		if cmp.Equal(resultOf(t, objects), resultOf(t, with)) {
			return
		}
		var keys []types.NamespacedName
		for _, o := range []olmcore.Object{before, after} {
			keys = append(keys, subscription.Affected(o)...)
		}
		require.Contains(t, olmcore.ExpandKeys(keys, []types.NamespacedName{{Namespace: ns}}), types.NamespacedName{Namespace: ns}, olmcore.KeyOf(objects[min(i, len(objects)-1)]))
	})
}

// spoiled returns a changed version of an object, or nil if it was deleted.
func spoiled(t *rapid.T, o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	switch change := rapid.IntRange(0, 4).Draw(t, "change"); o := o.(type) {
	case *v1alpha1.CatalogSource:
		if change > 2 {
			o.Status.GRPCConnectionState.LastObservedState = "TRANSIENT_FAILURE"
			return o
		}
	case *v1alpha1.InstallPlan:
		if change > 2 {
			o.Status.Phase = "Installing"
			return o
		}
	case *v1alpha1.ClusterServiceVersion:
		if change > 2 {
			o.Status.Phase, o.Status.Reason = "Failed", v1alpha1.CSVReasonCopied
			return o
		}
	case *v1alpha1.Subscription:
		if change > 2 {
			o.Spec.Package = "vault"
			return o
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "metadata") {
	case 0:
		return nil
	case 1:
		o.SetLabels(nil)
	case 2:
		o.SetOwnerReferences(nil)
	case 3:
		o.SetUID("another")
	}
	return o
}

func resultOf(t require.TestingT, objects []olmcore.Object) olmcore.Result {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
	require.NoError(t, err)
	in.Catalogs, err = subscription.GatherCatalogs(context.Background(), snapshot, ns, "olm")
	require.NoError(t, err)
	in.Now = now
	out := reconcile(t, in)
	return out.Result
}

// TestUnreadKindsAreNotConsideredMissing checks Snapshots that lack a kind. If the kind is needed for decisions,
// the error names the kind and the consequence. Component kinds may be missing.
func TestUnreadKindsAreNotConsideredMissing(t *testing.T) {
	objects := gatherObjects()
	for kind, unknown := range map[string]string{
		"Subscription":          "which operators are wanted",
		"InstallPlan":           "what the Subscriptions wait for",
		"ClusterServiceVersion": "what is installed",
		"OperatorGroup":         "whether the namespace can be resolved",
	} {
		rest := slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool { return olmcore.KeyOf(o).Kind == kind })
		snapshot, err := olmcore.NewSnapshot(rest)
		require.NoError(t, err)
		_, err = subscription.Gather(t.Context(), snapshot, ns, subscription.Config{})
		require.ErrorIs(t, err, olmcore.ErrNotRead, kind)
		require.ErrorContains(t, err, kind)
		require.ErrorContains(t, err, unknown)
	}
	decisive := slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool {
		group := olmcore.KeyOf(o).Group
		return group != v1alpha1.GroupName
	})
	snapshot, err := olmcore.NewSnapshot(decisive)
	require.NoError(t, err)
	in, err := subscription.Gather(t.Context(), snapshot, ns, subscription.Config{})
	require.NoError(t, err)
	require.Empty(t, in.Components)
	_, err = subscription.GatherCatalogs(t.Context(), snapshot, ns, "olm")
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "what can be installed")
	_, err = component.Gather(t.Context(), snapshot, "etcd.ops")
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	_, err = subscription.Gather(t.Context(), nil, ns, subscription.Config{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestLiveReadsNeedNoVerification checks that an InstallPlan that a live read does not contain is considered
// deleted at once.
func TestLiveReadsNeedNoVerification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		in.Live = true
		require.Empty(t, reconcile(t, in).Verify)
		for _, s := range assess(t, in).Decisions {
			require.NotEqual(t, subscription.StageUnverified, s.Plan.Stage)
		}
	})
}
