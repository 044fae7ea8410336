// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// asOLM is an object as OLM makes it: without what this library adds for its cleanup and for certificates that follow each
// other, and with the names that the API server completes.
func asOLM(o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, "olm.owner.uid")
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "olmcore/") })
	switch kind := olmcore.KeyOf(o).Kind; {
	case strings.HasSuffix(kind, "WebhookConfiguration"):
		o.SetName(labels["olm.webhook-description-generate-name"] + "-x7k2p")
	case kind == "RoleBinding" && o.GetNamespace() == "kube-system":
		labels = map[string]string{"olm.managed": "true"}
	case strings.HasPrefix(kind, "ClusterRole"):
		delete(labels, "olm.copiedFrom")
	case kind == "Secret":
		secret := o.(*corev1.Secret)
		maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool {
			return !slices.Contains([]string{"tls.crt", "tls.key", "olmCAKey"}, key)
		})
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

// calledByAll is an operator with webhooks, an API of its own and a CRD, as an InstallPlan leaves it.
func calledByAll(t *testing.T, w *world, targets []string) {
	c := csvtest.Operator("cool.v1", 1)
	c.UID, c.ResourceVersion, c.Annotations, c.Labels, c.Finalizers = "", "", nil, nil, nil
	c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		csvtest.Webhook("validate.example.com", v1alpha1.ValidatingAdmissionWebhook), csvtest.Webhook("mutate.example.com", v1alpha1.MutatingAdmissionWebhook),
	}
	if targets == nil {
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, csvtest.Webhook("convert.example.com", v1alpha1.ConversionWebhook))
	} else {
		c.Spec.InstallModes = append(c.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: true})
	}
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "hots", Group: "hot.example.com", Version: "v1", Kind: "Hot", DeploymentName: "cool", ContainerPort: 443}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "cools.example.com", Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v1"},
	}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "cools", Singular: "cool", Kind: "Cool", ListKind: "CoolList"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets}}
	require.NoError(t, w.cluster.Create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, crd, group, c,
	))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v1")
	planned, err := olmcore.PermissionObjects(live)
	require.NoError(t, err)
	for _, o := range planned {
		o.SetNamespace("ns")
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(live)})
	}
	require.NoError(t, w.cluster.Create(planned...))
}

// TestWhatOLMInstalledIsTakenOverWithoutAWrite: no controller writes anything, and no version leaves Succeeded, which would
// be copied into every namespace. The cleanup knows what OLM made all the same.
func TestWhatOLMInstalledIsTakenOverWithoutAWrite(t *testing.T) {
	for name, targets := range map[string][]string{"all namespaces": nil, "two namespaces": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			calledByAll(t, w, targets)
			require.NoError(t, w.driver.Settle(w.ctx))
			live := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v1")
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, live.Status.Phase, live.Status.Message)
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "a", "cool.v1"))

			adopting := newWorld(t)
			var objects []olmcore.Object
			for _, o := range w.cluster.Objects() {
				objects = append(objects, asOLM(o))
			}
			require.NoError(t, adopting.cluster.Load(objects...))
			require.NoError(t, adopting.driver.Settle(w.ctx))
			for _, e := range adopting.driver.Events {
				require.NotContains(t, e.String(), "cool", "a write, or another phase")
			}
			require.NoError(t, adopting.cluster.Delete(olmcore.RefOf(live).Unversioned()))
			require.NoError(t, adopting.driver.Settle(w.ctx))
			for _, o := range adopting.cluster.Objects() {
				name := o.GetName()
				goes := strings.HasPrefix(name, "cool") && !strings.HasPrefix(name, "cools.") || strings.Contains(name, "example.com-x7k2p") || strings.HasSuffix(name, "hot.example.com")
				require.False(t, goes, "%s is left behind; only the CRD stays, and the ClusterRoles for it", olmcore.KeyOf(o))
			}
		})
	}
}
