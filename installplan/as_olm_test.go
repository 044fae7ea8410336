// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// TestOwnersOfAManifestKeepTheirFlags: only the UID is filled in.
func TestOwnersOfAManifestKeepTheirFlags(t *testing.T) {
	const start = `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"a.v1","uid":"old"`
	for name, c := range map[string]struct {
		flags             string
		controller, block *bool
	}{
		"none":           {},
		"controller":     {`,"controller":true`, new(true), nil},
		"no controller":  {`,"controller":false`, new(false), nil},
		"blocks":         {`,"blockOwnerDeletion":true`, nil, new(true)},
		"both":           {`,"controller":true,"blockOwnerDeletion":false`, new(true), new(false)},
		"null":           {`,"controller":null,"blockOwnerDeletion":null`, nil, nil},
		"of other types": {`,"controller":"true","blockOwnerDeletion":1`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", start+c.flags+`}]}}`)}, started(time.Second)), with(csv("a.v1")))
			made := reconcile(t, in).Actions[1].(olmcore.Create).Object
			want := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "a.v1", UID: "uid-a.v1",
				Controller: c.controller, BlockOwnerDeletion: c.block}
			same(t, []metav1.OwnerReference{want}, made.GetOwnerReferences())
		})
	}
}

// TestAManifestWithoutGroupIsOfItsStepsKind, as OLM goes by the step's.
func TestAManifestWithoutGroupIsOfItsStepsKind(t *testing.T) {
	crd := crdStep("", "v1")
	object := crdObject("v1")
	object.APIVersion = "v1"
	crd.Resource = step("", "", "v1", "CustomResourceDefinition", object.Name, object).Resource
	made := reconcile(t, input(plan(installing, []*v1alpha1.Step{crd}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "apiextensions.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, object.Spec, made.Object.(*apiextensionsv1.CustomResourceDefinition).Spec)

	role := step("", "", "v1", "Role", "r", `{"apiVersion":"v1","kind":"Role","metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	made = reconcile(t, input(plan(installing, []*v1alpha1.Step{role}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "rbac.authorization.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, rules(), made.Object.(*rbacv1.Role).Rules)

	version := csvStep("a.v1")
	version.Resource.Manifest = `{"apiVersion":"v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"displayName":"Cool"}}`
	made = reconcile(t, input(plan(installing, []*v1alpha1.Step{version}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "operators.coreos.com/v1alpha1", made.Target.APIVersion)
	require.Equal(t, "Cool", made.Object.(*v1alpha1.ClusterServiceVersion).Spec.DisplayName)

	elsewhere := step("", "", "v1", "Role", "r", `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"r"}}`)
	in := input(plan(installing, []*v1alpha1.Step{elsewhere}, started(time.Second)))
	require.Equal(t, "error parsing step manifest: r: kind is Role.example.com", statusOf(in, reconcile(t, in)).Message)
}

// TestAnUnmanagedAccountGetsThePullSecretsOfItsBundle beside its own, and keeps all
// that it has.
func TestAnUnmanagedAccountGetsThePullSecretsOfItsBundle(t *testing.T) {
	have := &corev1.ServiceAccount{ObjectMeta: meta("s"), Secrets: []corev1.ObjectReference{{Name: "token"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "mine"}, {Name: "both"}}}
	s := step("a.v1", "", "v1", "ServiceAccount", "s", `{"metadata":{"name":"s"},"imagePullSecrets":[{"name":"both"},{"name":"theirs"}]}`)
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), have))
	after := reconcile(t, in).Actions[0].(olmcore.Update).After.DeepCopyObject().(*corev1.ServiceAccount)
	want := have.DeepCopy()
	want.ImagePullSecrets = append(want.ImagePullSecrets, corev1.LocalObjectReference{Name: "theirs"})
	want.Annotations = map[string]string{stepHash: after.Annotations[stepHash]}
	after.TypeMeta = metav1.TypeMeta{}
	same(t, want, after)
}

// TestAPullSecretWithoutItsSource: what was copied before is enough, also when what
// it was copied from is gone.
func TestAPullSecretWithoutItsSource(t *testing.T) {
	s := step("", "", "v1", "Secret", "pull", "")
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(&corev1.Secret{ObjectMeta: meta("pull")}))
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase)
}
