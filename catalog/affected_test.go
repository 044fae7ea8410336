// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryObjectThatChangesTheResultIsAffected checks that Affected names the CatalogSource for every object whose
// deletion changes the result.
func TestEveryObjectThatChangesTheResultIsAffected(t *testing.T) {
	several := mapped()
	several.Annotations = map[string]string{"olmcore/replicas": "2"}
	w := newWorld(t, catalog.Config{}, several)
	require.NoError(t, w.Cluster.Create(content()))
	w.run(t, 0)
	requireAffected(t, w, 13, "Namespace, ConfigMap, both Pods and nodes, Service, ServiceAccount, Role, RoleBinding, budget, both policies matter")
	w = newWorld(t, catalog.Config{}, cool())
	w.run(t, 0)
	requireAffected(t, w, 7, "Namespace, Pod, node, Service, ServiceAccount and both policies matter")
}

func requireAffected(t *testing.T, w *world, matter int, which string) {
	all := w.Cluster.Objects()
	want := at(t, all, w)
	changed := 0
	for i, o := range all {
		if _, self := o.(*v1alpha1.CatalogSource); self {
			continue
		}
		if got := at(t, slices.Delete(slices.Clone(all), i, i+1), w); len(got.Actions) == len(want.Actions) {
			continue
		}
		changed++
		require.Contains(t, olmcore.ExpandKeys(catalog.Affected(o), []types.NamespacedName{coolKey, {Namespace: "other", Name: "x"}}), coolKey, "%s", olmcore.KeyOf(o))
	}
	require.Equal(t, matter, changed, which)
}

func at(t *testing.T, objects []olmcore.Object, w *world) catalog.Outcome {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := catalog.Gather(context.Background(), snapshot, coolKey, catalog.Config{})
	require.NoError(t, err)
	in.Now = w.Cluster.Now().Add(1 << 40)
	out := answer(t, in)
	return out
}

func TestAffectedCatalogSources(t *testing.T) {
	owned := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "olm", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "cool"}, {APIVersion: "example.com/v1", Kind: "CatalogSource", Name: "no"}}}
	}
	labelled := metav1.ObjectMeta{Namespace: "olm", Labels: map[string]string{"olm.catalogSource": "", "catalogsource.operators.coreos.com/update": "cool"}}
	key := func(names ...string) (keys []types.NamespacedName) {
		for _, name := range names {
			keys = append(keys, types.NamespacedName{Namespace: "olm", Name: name})
		}
		return keys
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "olm", Name: name} }
	for name, test := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"a config map server's ServiceAccount": {&corev1.ServiceAccount{ObjectMeta: named("cool-configmap-server")}, key("cool", "cool-configmap-server")},
		"a Role":                               {&rbacv1.Role{ObjectMeta: named("cool-configmap-reader")}, key("cool")},
		"any other Role":                       {&rbacv1.Role{ObjectMeta: named("cool")}, nil},
		"a RoleBinding":                        {&rbacv1.RoleBinding{ObjectMeta: named("cool-server-configmap-reader")}, key("cool")},
		"a budget":                             {&policyv1.PodDisruptionBudget{ObjectMeta: named("cool")}, key("cool")},
		"a budget with dash":                   {&policyv1.PodDisruptionBudget{ObjectMeta: named("c-l")}, key("")},
		"a ConfigMap":                          {&corev1.ConfigMap{ObjectMeta: named("any")}, key("")},
		"a Subscription":                       {&v1alpha1.Subscription{Spec: &v1alpha1.SubscriptionSpec{CatalogSource: "cool", CatalogSourceNamespace: "olm"}}, key("cool")},
		"a Subscription to nothing":            {&v1alpha1.Subscription{}, nil},
		"a nil Role":                           {(*rbacv1.Role)(nil), nil},
		"itself":                               {cool(), key("cool")},
		"an owned Pod":                         {&corev1.Pod{ObjectMeta: owned("x")}, key("cool")},
		"owned by a Subscription": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "x", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: "cool"}}}}, nil},
		"a candidate":         {&corev1.Pod{ObjectMeta: labelled}, key("cool")},
		"any other Pod":       {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, nil},
		"a Node":              {&corev1.Node{}, []types.NamespacedName{{}}},
		"a Namespace":         {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}, key("")},
		"a Service":           {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, key("cool")},
		"a Service with dash": {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "c-l"}}, key("")},
		"a ServiceAccount":    {&corev1.ServiceAccount{ObjectMeta: owned("other")}, key("cool", "other")},
		"a server policy":     {&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool-grpc-server"}}, key("cool")},
		"an unpack policy":    {&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool-unpack-bundles"}}, key("cool")},
		"any other policy":    {&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, nil},
		"a Secret":            {&corev1.Secret{}, nil},
		"nothing":             {nil, nil},
		"a nil Pod":           {(*corev1.Pod)(nil), nil},
	} {
		require.Equal(t, test.want, catalog.Affected(test.object), name)
	}
}
