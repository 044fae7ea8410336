// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func created(t testing.TB, c *fake.Cluster, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	require.NoError(t, c.Create(cm))
	return stored(t, c, cm)
}

func TestBackgroundDeletionCollectsDependants(t *testing.T) {
	c := newCluster(t)
	owner := created(t, c, configMap("owner"))
	child := created(t, c, configMap("child", owner))
	created(t, c, configMap("grandchild", child))
	settle(t, c)
	require.NoError(t, c.Delete(refTo(owner)))
	require.False(t, exists(c, owner), "the owner goes at once")
	require.True(t, exists(c, child), "its dependants when the collector runs")
	settle(t, c)
	require.False(t, exists(c, child))
	require.False(t, exists(c, configMap("grandchild")))
}

func TestForegroundDeletionWaitsForBlockers(t *testing.T) {
	for _, blocks := range []bool{true, false} {
		c := newCluster(t)
		owner := created(t, c, configMap("owner"))
		child := configMap("child", owner)
		child.OwnerReferences[0].BlockOwnerDeletion = &blocks
		child.Finalizers = []string{"example.com/hold"}
		created(t, c, child)
		require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationForeground)))
		require.Equal(t, []string{metav1.FinalizerDeleteDependents}, stored(t, c, owner).Finalizers)
		settle(t, c)
		require.NotNil(t, stored(t, c, child).DeletionTimestamp)
		require.Equal(t, blocks, exists(c, owner), "it waits only for those that block")
		require.NoError(t, fake.Edit(c, "ns", "child", func(o *corev1.ConfigMap) { o.Finalizers = nil }))
		settle(t, c)
		require.False(t, exists(c, child))
		require.False(t, exists(c, owner))
	}
}

func TestForegroundDeletionGoesDownTheTree(t *testing.T) {
	c := newCluster(t)
	owner := created(t, c, configMap("a"))
	block := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.OwnerReferences[0].BlockOwnerDeletion = new(true)
		return cm
	}
	middle := created(t, c, block(configMap("b", owner)))
	leaf := block(configMap("c", middle))
	leaf.Finalizers = []string{"example.com/hold"}
	created(t, c, leaf)
	require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationForeground)))
	settle(t, c)
	require.Equal(t, []string{metav1.FinalizerDeleteDependents}, stored(t, c, middle).Finalizers)
	require.True(t, exists(c, owner))
	require.NoError(t, fake.Edit(c, "ns", "c", func(o *corev1.ConfigMap) { o.Finalizers = nil }))
	settle(t, c)
	require.False(t, exists(c, owner))
}

func TestACycleInForegroundDeletionEnds(t *testing.T) {
	c := newCluster(t)
	a := created(t, c, configMap("a"))
	b := configMap("b", a)
	b.OwnerReferences[0].BlockOwnerDeletion = new(true)
	b = created(t, c, b)
	require.NoError(t, fake.Edit(c, "ns", "a", func(o *corev1.ConfigMap) {
		o.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(b)}
		o.OwnerReferences[0].BlockOwnerDeletion = new(true)
	}))
	require.NoError(t, c.Delete(refTo(a), options(metav1.DeletePropagationForeground)))
	settle(t, c)
	require.False(t, exists(c, a))
	require.False(t, exists(c, b))
}

func TestOrphanDeletionLeavesDependants(t *testing.T) {
	c := newCluster(t)
	owner := created(t, c, configMap("owner"))
	one, two := created(t, c, configMap("one", owner)), created(t, c, configMap("two", owner))
	require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationOrphan)))
	require.True(t, exists(c, owner), "it stays until the references are gone")
	settle(t, c)
	require.False(t, exists(c, owner))
	require.Empty(t, stored(t, c, one).OwnerReferences)
	require.Empty(t, stored(t, c, two).OwnerReferences)
}

func TestALaterPolicyWins(t *testing.T) {
	c := newCluster(t)
	owner := configMap("owner")
	owner.Finalizers = []string{"example.com/hold"}
	owner = created(t, c, owner)
	require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationForeground)))
	require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationOrphan)))
	require.Equal(t, []string{"example.com/hold", metav1.FinalizerOrphanDependents}, stored(t, c, owner).Finalizers)
	require.NoError(t, c.Delete(refTo(owner), options(metav1.DeletePropagationBackground)))
	require.Equal(t, []string{"example.com/hold"}, stored(t, c, owner).Finalizers)
}

func TestWhichOwnersCount(t *testing.T) {
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: "other"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role"}}
	here := configMap("here")
	cases := map[string]struct {
		owner  func(t *testing.T, c *fake.Cluster) metav1.OwnerReference
		child  olmcore.Object
		remain bool
	}{
		"one in the same namespace": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			return olmcore.OwnerReferenceTo(stored(t, c, here))
		}, configMap("child"), true},
		"a cluster-scoped one": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			return olmcore.OwnerReferenceTo(stored(t, c, role))
		}, configMap("child"), true},
		"not one in another namespace": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			return olmcore.OwnerReferenceTo(stored(t, c, elsewhere))
		}, configMap("child"), false},
		"not a UID that does not exist": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			ref := olmcore.OwnerReferenceTo(stored(t, c, here))
			ref.UID = "made-up"
			return ref
		}, configMap("child"), false},
		"nor one under another name": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			ref := olmcore.OwnerReferenceTo(stored(t, c, here))
			ref.Name = "renamed"
			return ref
		}, configMap("child"), false},
		"one that cannot be looked up, because its kind is not served": {func(*testing.T, *fake.Cluster) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "w"}
		}, configMap("child"), true},
		"one that cannot be looked up, because a cluster-scoped object names no namespace": {func(t *testing.T, c *fake.Cluster) metav1.OwnerReference {
			return olmcore.OwnerReferenceTo(stored(t, c, here))
		}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "child"}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			require.NoError(t, c.Create(elsewhere, role, here))
			child := tc.child.DeepCopyObject().(olmcore.Object)
			child.SetOwnerReferences([]metav1.OwnerReference{tc.owner(t, c)})
			require.NoError(t, c.Create(child))
			settle(t, c)
			require.Equal(t, tc.remain, exists(c, child))
		})
	}
}

func TestSeveralOwners(t *testing.T) {
	c := newCluster(t)
	a, b := created(t, c, configMap("a")), created(t, c, configMap("b"))
	child := created(t, c, configMap("child", a, b))
	require.NoError(t, c.Delete(refTo(a)))
	settle(t, c)
	refs := stored(t, c, child).OwnerReferences
	require.Len(t, refs, 1, "the dangling reference is pruned")
	require.Equal(t, b.UID, refs[0].UID)
	require.NoError(t, c.Delete(refTo(b)))
	settle(t, c)
	require.False(t, exists(c, child))
}

func TestAnOwnerCreatedAnewIsAnother(t *testing.T) {
	c := newCluster(t)
	owner := created(t, c, configMap("owner"))
	child := created(t, c, configMap("child", owner))
	require.NoError(t, c.Delete(refTo(owner)))
	created(t, c, configMap("owner"))
	settle(t, c)
	require.False(t, exists(c, child))
}

func TestNamespaceDeletionEmptiesIt(t *testing.T) {
	c := newCluster(t)
	held := configMap("held")
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, c.Create(configMap("a"), held, newPod("p")))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	require.Equal(t, corev1.NamespaceActive, stored(t, c, namespace).Status.Phase)
	require.Equal(t, "ns", stored(t, c, namespace).Labels[corev1.LabelMetadataName])
	require.NoError(t, c.Delete(refTo(namespace)))
	require.Equal(t, corev1.NamespaceTerminating, stored(t, c, namespace).Status.Phase)
	settle(t, c)
	require.False(t, exists(c, configMap("a")))
	require.False(t, exists(c, newPod("p")))
	require.True(t, exists(c, namespace), "it waits for what a finalizer holds")
	require.NoError(t, fake.Edit(c, "ns", "held", func(o *corev1.ConfigMap) { o.Finalizers = nil }))
	settle(t, c)
	require.False(t, exists(c, namespace))
	require.NoError(t, c.Create(configMap("a")), "the name is free again")
}
