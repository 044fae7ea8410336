// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// An API server fills in defaults before it compares: to leave out what it
// filled in is no change of the spec.
func TestLeavingOutADefaultIsNoChange(t *testing.T) {
	c := newCluster(t)
	crd := widgetCRD()
	require.NoError(t, c.Create(crd.DeepCopy()))
	require.NoError(t, c.Settle())
	before := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", crd.Name)
	require.NotNil(t, before.Spec.Conversion, "the default is there")
	after := before.DeepCopy()
	after.Spec = crd.Spec
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{Reason: "Test"})))
	require.Equal(t, before, fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", crd.Name))
}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"}
	size := apiextensionsv1.JSONSchemaProps{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}}
	parts := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
		Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": size}}}}
	byName := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: parts.Items.Schema}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": size, "parts": parts, "byName": byName}},
		}}}}}
	return crd
}

func TestCustomResourcesGetTheDefaultsOfTheirSchema(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(widgetCRD()))
	require.NoError(t, c.Settle())
	widget := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": "ns", "name": name}, "spec": spec}}
	}
	for name, spec := range map[string][2]map[string]any{
		"a value":                {{}, {"size": int64(3)}},
		"a value of its own":     {{"size": int64(7)}, {"size": int64(7)}},
		"null":                   {{"size": nil}, {"size": int64(3)}},
		"in a list":              {{"size": int64(1), "parts": []any{map[string]any{}}}, {"size": int64(1), "parts": []any{map[string]any{"size": int64(3)}}}},
		"in a map":               {{"size": int64(1), "byName": map[string]any{"x": map[string]any{}}}, {"size": int64(1), "byName": map[string]any{"x": map[string]any{"size": int64(3)}}}},
		"not in what is missing": {{"size": int64(1)}, {"size": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := widget("w", runtime.DeepCopyJSON(spec[0]))
			require.NoError(t, c.Create(o))
			stored, err := c.Get(t.Context(), o.GroupVersionKind(), "ns", "w")
			require.NoError(t, err)
			require.Equal(t, spec[1], stored.(*unstructured.Unstructured).Object["spec"])
			require.NoError(t, c.Delete(olmcore.RefOf(stored)))
		})
	}
	unspecific := widget("none", nil)
	delete(unspecific.Object, "spec")
	require.NoError(t, c.Create(unspecific))
	stored, err := c.Get(t.Context(), unspecific.GroupVersionKind(), "ns", "none")
	require.NoError(t, err)
	require.NotContains(t, stored.(*unstructured.Unstructured).Object, "spec", "the object itself has no default")
}

func TestKindsOfOLMGetTheDefaultsOfTheirSchema(t *testing.T) {
	c := newCluster(t)
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}}
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1"}}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "cool"}}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "operator", Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
	}}
	require.NoError(t, c.Create(group, csv))
	require.Equal(t, operatorsv1.UpgradeStrategyDefault, fake.Find[*operatorsv1.OperatorGroup](c, "ns", "group").Spec.UpgradeStrategy)
	stored := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1")
	port := stored.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Ports[0]
	require.Equal(t, corev1.ProtocolTCP, port.Protocol)
	after := stored.DeepCopy()
	after.Spec = csv.Spec
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(stored, after, olmcore.Cause{Reason: "Test"})))
	require.Equal(t, stored, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1"))
}

func TestPodsGetTheTokenOfTheirAccount(t *testing.T) {
	for name, test := range map[string]struct {
		pod     func(*corev1.Pod)
		account *corev1.ServiceAccount
		mounts  int
	}{
		"by default":           {mounts: 1},
		"the Pod opts out":     {pod: func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(false) }},
		"the account opts out": {account: &corev1.ServiceAccount{AutomountServiceAccountToken: new(false)}},
		"the Pod overrules":    {pod: func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }, account: &corev1.ServiceAccount{AutomountServiceAccountToken: new(false)}, mounts: 1},
		"it mounts something else there": {pod: func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}}}}}
			if test.account != nil {
				test.account.Namespace, test.account.Name, pod.Spec.ServiceAccountName = "ns", "account", "account"
				require.NoError(t, c.Create(test.account))
			}
			if test.pod != nil {
				test.pod(pod)
			}
			require.NoError(t, c.Create(pod))
			got := fake.Find[*corev1.Pod](c, "ns", "p")
			require.Len(t, got.Spec.Volumes, test.mounts)
			for i, v := range got.Spec.Volumes {
				require.Equal(t, v.Name, got.Spec.Containers[0].VolumeMounts[i].Name)
			}
			require.Equal(t, []any{true, int32(0), corev1.PreemptLowerPriority, ""},
				[]any{*got.Spec.EnableServiceLinks, *got.Spec.Priority, *got.Spec.PreemptionPolicy, *got.Spec.Containers[0].ReadinessProbe.GRPC.Service})
			require.Empty(t, pod.Spec.Volumes, "the object that was given is left alone")
		})
	}
}

func TestDeploymentsShowTheRevisionOfTheirTemplate(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.AddNode("a", nil))
	require.NoError(t, c.Create(deployment("d")))
	shown := func() string {
		require.NoError(t, c.Settle())
		d := fake.Find[*appsv1.Deployment](c, "ns", "d")
		require.NotNil(t, d.Status.TerminatingReplicas)
		return d.Annotations["deployment.kubernetes.io/revision"]
	}
	require.Equal(t, "1", shown())
	require.NoError(t, fake.Edit(c, "ns", "d", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }))
	require.Equal(t, "1", shown(), "the template is the same")
	require.NoError(t, fake.Edit(c, "ns", "d", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }))
	require.Equal(t, "2", shown())
	loaded := fake.Find[*appsv1.Deployment](c, "ns", "d").DeepCopy()
	other := newCluster(t)
	require.NoError(t, other.Load(loaded))
	require.NoError(t, other.Settle())
	require.Equal(t, "2", fake.Find[*appsv1.Deployment](other, "ns", "d").Annotations["deployment.kubernetes.io/revision"])
}
