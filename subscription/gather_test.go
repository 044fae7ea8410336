// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"errors"
	"slices"
	"testing"

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

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// gatherObjects is a namespace with an operator, and things around it.
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

func TestGatherReadsWhatANamespaceNeeds(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(gatherObjects())
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{ReinstallMissingCSV: true})
	require.NoError(t, err)
	require.Equal(t, ns, in.Namespace)
	require.True(t, in.Config.ReinstallMissingCSV)
	require.True(t, in.Now.IsZero())
	require.Equal(t, []string{"a", "b", "c"}, names(in.Subscriptions))
	require.Equal(t, []string{"p", "q"}, names(in.InstallPlans))
	require.Equal(t, []string{"etcd.v1", "lib.v1"}, names(in.ClusterServiceVersions))
	require.Equal(t, []string{"group"}, names(in.OperatorGroups))
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

// failing is a Reader whose n-th read fails.
type failing struct {
	olmcore.Reader
	left *int
}

var errRead = errors.New("connection refused")

func (f failing) fails() bool { *f.left--; return *f.left < 0 }

func (f failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if f.fails() {
		return nil, errRead
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if f.fails() {
		return nil, errRead
	}
	return f.Reader.List(ctx, gvk, namespace, selector)
}

func TestAFailedReadIsAnErrorNeverAnEmptyList(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(gatherObjects())
	require.NoError(t, err)
	for n := range 100 {
		left := n
		_, err := subscription.Gather(context.Background(), failing{snapshot, &left}, ns, subscription.Config{})
		if left >= 0 {
			require.NoError(t, err)
			require.Greater(t, n, 15, "fewer reads than expected")
			return
		}
		require.ErrorIs(t, err, errRead, "read %d", n)
	}
}

func TestAffected(t *testing.T) {
	here := []types.NamespacedName{{Namespace: ns}}
	all := []types.NamespacedName{{}}
	objects := gatherObjects()
	for _, o := range objects {
		want := here
		switch {
		case o.GetNamespace() == "elsewhere":
			want = []types.NamespacedName{{Namespace: "elsewhere"}}
		case o.GetName() == "default":
			want = nil
		case olmcore.KeyOf(o).Kind == "CustomResourceDefinition":
			want = all
		}
		require.Equal(t, want, subscription.Affected(o), olmcore.KeyOf(o))
	}
	require.Nil(t, subscription.Affected(nil))
	require.Nil(t, subscription.Affected((*v1alpha1.Subscription)(nil)))
	require.Nil(t, subscription.Affected(&corev1.Node{}))
}

// TestWhateverMattersIsAffected: an object whose absence changes the result of a
// namespace names it.
func TestWhateverMattersIsAffected(t *testing.T) {
	objects := gatherObjects()
	full := resultOf(t, objects)
	for i, o := range objects {
		without := resultOf(t, slices.Delete(slices.Clone(objects), i, i+1))
		if len(full.Actions) == len(without.Actions) && len(full.Diagnostics) == len(without.Diagnostics) {
			continue
		}
		keys := olmcore.ExpandKeys(subscription.Affected(o), []types.NamespacedName{{Namespace: ns}})
		require.Contains(t, keys, types.NamespacedName{Namespace: ns}, olmcore.KeyOf(o))
	}
}

func resultOf(t *testing.T, objects []olmcore.Object) olmcore.Result {
	snapshot, err := olmcore.NewSnapshot(objects)
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
	require.NoError(t, err)
	in.Now = now
	return reconcile(t, in).Result
}
