// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestWhichOwnersAPlanMayNotLose: Subscriptions of its namespace that exist. Another
// owner, as a tenant may name one, is the garbage collector's to take away.
func TestWhichOwnersAPlanMayNotLose(t *testing.T) {
	subscribed := func(namespace string) olmcore.Object {
		return &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Spec: &v1alpha1.SubscriptionSpec{}}
	}
	service := func(namespace string) olmcore.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	}
	for name, c := range map[string]struct {
		owner olmcore.Object
		gone  bool
		want  string
	}{
		"a Subscription":                      {owner: subscribed("evil"), want: "InstallPlan evil/plan lost its owner Subscription x"},
		"a Subscription that is gone":         {owner: subscribed("evil"), gone: true},
		"a Subscription of another namespace": {owner: subscribed("victim")},
		"a Service of another namespace":      {owner: service("victim")},
		"a Service of the namespace":          {owner: service("evil")},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewCluster(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			cluster.AutoCreateNamespaces = true
			require.NoError(t, cluster.Create(c.owner))
			plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "plan"}}
			found, err := cluster.Snapshot()
			require.NoError(t, err)
			o, err := found.Get(t.Context(), olmcore.GVKOf(c.owner), c.owner.GetNamespace(), c.owner.GetName())
			require.NoError(t, err)
			plan.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(o)}
			require.NoError(t, cluster.Create(plan))
			safety := &invariant.Safety{Cluster: cluster}
			require.NoError(t, safety.Check())
			if c.gone {
				require.NoError(t, cluster.Delete(olmcore.RefOf(o)))
			}
			require.NoError(t, fake.Edit(cluster, "evil", "plan", func(p *v1alpha1.InstallPlan) { p.OwnerReferences = nil }))
			err = safety.Check()
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
		})
	}
}

// TestWhatACSVMayNotLeaveBehind checks that a deleted version leaves none of its older objects behind. Objects that
// another manager with a stale cache creates around the deletion are left to the sweep.
func TestWhatACSVMayNotLeaveBehind(t *testing.T) {
	for name, c := range map[string]struct {
		late bool
		age  time.Duration
		want string
	}{
		"a ClusterRole of its own":         {age: time.Minute, want: "ClusterServiceVersion ns/a is gone and left ClusterRole a behind"},
		"one created just before deletion": {age: time.Minute - time.Second},
		"one created after the deletion":   {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewCluster(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			cluster.AutoCreateNamespaces = true
			csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a", Finalizers: []string{"operators.coreos.com/csv-cleanup"},
			}}
			require.NoError(t, cluster.Create(csv))
			live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "a")
			owner := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "ns", Name: "a", UID: live.UID}
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: owner.Labels()}}
			safety := &invariant.Safety{Cluster: cluster}
			if !c.late {
				require.NoError(t, cluster.Create(role))
			}
			cluster.Advance(c.age)
			require.NoError(t, safety.Check())
			require.NoError(t, cluster.Delete(olmcore.RefOf(live).Unversioned()))
			require.NoError(t, safety.Check())
			if c.late {
				require.NoError(t, cluster.Create(role))
			}
			require.NoError(t, safety.Check())
			require.NoError(t, fake.Edit(cluster, "ns", "a", func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "a"))
			if err := safety.Check(); c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
		})
	}
}
