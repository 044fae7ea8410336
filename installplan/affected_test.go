// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

func TestAffected(t *testing.T) {
	inNamespace, everywhere := []types.NamespacedName{{Namespace: ns}}, []types.NamespacedName{{}}
	named := metav1.ObjectMeta{Namespace: ns, Name: "x"}
	thing := func(kind, namespace string) olmcore.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
		u.SetNamespace(namespace)
		u.SetName("x")
		return u
	}
	owning := csv("x", versioned("1.0.0"))
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"a plan":                            {plan(complete, nil), []types.NamespacedName{key}},
		"a namespace":                       {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, inNamespace},
		"a Subscription":                    {subscription("x"), inNamespace},
		"a group":                           {group(), inNamespace},
		"a version":                         {csv("x"), inNamespace},
		"a version that owns definitions":   {owning, everywhere},
		"an account":                        {&corev1.ServiceAccount{ObjectMeta: named}, inNamespace},
		"a role":                            {&rbacv1.Role{ObjectMeta: named}, inNamespace},
		"a role of the cluster":             {&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, everywhere},
		"a definition":                      {crdObject("v1"), everywhere},
		"registry credentials":              {&corev1.Secret{ObjectMeta: named, Type: corev1.SecretTypeDockerConfigJson}, everywhere},
		"a catalog that lists pull Secrets": {pullCatalog("pull"), everywhere},
		"a catalog without":                 {pullCatalog(), nil},
		"a token":                           {&corev1.Secret{ObjectMeta: named, Type: corev1.SecretTypeServiceAccountToken}, inNamespace},
		"something of a namespace":          {thing("ServiceMonitor", ns), inNamespace},
		"something of the cluster":          {thing("ConsoleLink", ""), everywhere},
		"a Pod":                             {&corev1.Pod{ObjectMeta: named}, nil},
		"nothing":                           {nil, nil},
		"a nil plan in an interface value":  {(*v1alpha1.InstallPlan)(nil), nil},
	} {
		t.Run(name, func(t *testing.T) { same(t, c.want, installplan.Affected(c.object)) })
	}
}

// TestWhateverChangesADecisionIsAffected: taking any object away changes the result only of plans that Affected names.
func TestWhateverChangesADecisionIsAffected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		want, err := reconcileResult(in)
		require.NoError(t, err)
		differs := func(less installplan.Input, o olmcore.Object) {
			got, err := reconcileResult(less)
			require.NoError(t, err)
			if fmt.Sprint(describe(want), reasons(want), statusOf(in, want)) == fmt.Sprint(describe(got), reasons(got), statusOf(in, got)) {
				return
			}
			known := []types.NamespacedName{key}
			require.Contains(t, olmcore.ExpandKeys(installplan.Affected(o), known), key, "%s", olmcore.KeyOf(o))
		}
		for i := range in.Objects.Items {
			less := in
			less.Objects = without(in.Objects, i)
			differs(less, in.Objects.Items[i])
		}
		for i := range in.Subscriptions.Items {
			less := in
			less.Subscriptions = without(in.Subscriptions, i)
			differs(less, in.Subscriptions.Items[i])
		}
		for i := range in.ClusterServiceVersions.Items {
			less := in
			less.ClusterServiceVersions = without(in.ClusterServiceVersions, i)
			differs(less, in.ClusterServiceVersions.Items[i])
		}
		for _, crd := range in.CustomResourceDefinitions.Items {
			less := in
			less.CustomResourceDefinitions = olmcore.Found[*apiextensionsv1.CustomResourceDefinition]()
			differs(less, crd)
		}
		for _, g := range in.OperatorGroups.Items {
			less := in
			less.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
			differs(less, g)
		}
	})
}
