// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// An API server fills in defaults before it compares: to leave out what it filled in is no change of the spec.
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
			p.Spec.Volumes = []corev1.Volume{{Name: "own"}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		}, mounts: 1},
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
			before := pod.DeepCopy()
			require.NoError(t, c.Create(pod))
			got := fake.Find[*corev1.Pod](c, "ns", "p")
			require.Len(t, got.Spec.Volumes, test.mounts)
			for i, v := range got.Spec.Volumes {
				require.Equal(t, v.Name, got.Spec.Containers[0].VolumeMounts[i].Name)
			}
			require.Equal(t, []any{true, int32(0), corev1.PreemptLowerPriority, ""},
				[]any{*got.Spec.EnableServiceLinks, *got.Spec.Priority, *got.Spec.PreemptionPolicy, *got.Spec.Containers[0].ReadinessProbe.GRPC.Service})
			require.Equal(t, before, pod, "the object that was given is left alone")
		})
	}
}

func TestDeploymentsShowTheRevisionOfTheirTemplate(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Node("a").Create(nil))
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

// What a real API server fills in is compared with it in internal/controlplane; here is what that rests on.
func TestOtherKindsGetTheirDefaults(t *testing.T) {
	c := newCluster(t)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}}
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{{}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}, {Kind: "ServiceAccount", Name: "s", Namespace: "ns"}}}
	hooks := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	hooks.Webhooks = []admissionregistrationv1.MutatingWebhook{{Name: "h.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "s"}}}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"null": nil}, StringData: map[string]string{"a": "b"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}}
	require.NoError(t, c.Create(policy, binding, hooks, job, secret, pod))

	spec := fake.Find[*networkingv1.NetworkPolicy](c, "ns", "n").Spec
	require.Equal(t, []networkingv1.PolicyType{"Ingress", "Egress"}, spec.PolicyTypes)
	require.Equal(t, corev1.ProtocolTCP, *spec.Egress[0].Ports[0].Protocol)
	bound := fake.Find[*rbacv1.RoleBinding](c, "ns", "b")
	require.Equal(t, []string{rbacv1.GroupName, rbacv1.GroupName, ""}, []string{bound.RoleRef.APIGroup, bound.Subjects[0].APIGroup, bound.Subjects[1].APIGroup})
	hook := fake.Find[*admissionregistrationv1.MutatingWebhookConfiguration](c, "", "h").Webhooks[0]
	require.Equal(t, []any{int32(443), int32(10), admissionregistrationv1.Fail, admissionregistrationv1.Equivalent, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.AllScopes},
		[]any{*hook.ClientConfig.Service.Port, *hook.TimeoutSeconds, *hook.FailurePolicy, *hook.MatchPolicy, *hook.ReinvocationPolicy, *hook.Rules[0].Scope})
	stored := fake.Find[*batchv1.Job](c, "ns", "j")
	require.Equal(t, stored.Spec.Template.Labels, stored.Labels)
	require.Equal(t, map[string]string{"batch.kubernetes.io/controller-uid": string(stored.UID)}, stored.Spec.Selector.MatchLabels)
	require.Equal(t, map[string][]byte{"a": []byte("b"), "null": {}}, fake.Find[*corev1.Secret](c, "ns", "s").Data)
	require.Nil(t, fake.Find[*corev1.Secret](c, "ns", "s").StringData)
	requests := fake.Find[*corev1.Pod](c, "ns", "p").Spec.Containers[0].Resources.Requests
	require.Equal(t, []string{"100m", "1Gi"}, []string{requests.Cpu().String(), requests.Memory().String()})
}

// The kinds of Kubernetes want finalizers with a domain, custom ones do not care.
func TestFinalizersWithoutADomain(t *testing.T) {
	c := newCluster(t)
	finalizers := []string{"mine"}
	require.True(t, apierrors.IsInvalid(c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Finalizers: finalizers}})))
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", Finalizers: finalizers}}))
}

func TestWhatCannotBeChanged(t *testing.T) {
	c := newCluster(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	require.NoError(t, c.Create(secret, service, job))
	for name, err := range map[string]error{
		"the type of a Secret":     fake.Edit(c, "ns", "s", func(s *corev1.Secret) { s.Type = "other" }),
		"an address":               fake.Edit(c, "ns", "s", func(s *corev1.Service) { s.Spec.ClusterIP = "10.0.0.1" }),
		"the template of a Job":    fake.Edit(c, "ns", "j", func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "other" }),
		"the completions of a Job": fake.Edit(c, "ns", "j", func(j *batchv1.Job) { j.Spec.Completions = new(int32(2)) }),
		"the selector of a Job":    fake.Edit(c, "ns", "j", func(j *batchv1.Job) { j.Spec.Selector = nil }),
	} {
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
	}
	require.NoError(t, fake.Edit(c, "ns", "j", func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(2)) }))
	before := fake.Find[*corev1.Service](c, "ns", "s").Spec.ClusterIP
	require.NoError(t, fake.Edit(c, "ns", "s", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil }))
	require.Equal(t, before, fake.Find[*corev1.Service](c, "ns", "s").Spec.ClusterIP, "an address that is left out stays")
}

func TestATolerationThatIsThereIsKept(t *testing.T) {
	gone := func(key string, seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(seconds)}
	}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, tt := range map[string]struct{ have, want []corev1.Toleration }{
		"none":             {nil, []corev1.Toleration{gone(corev1.TaintNodeNotReady, 300), gone(corev1.TaintNodeUnreachable, 300)}},
		"one of the two":   {[]corev1.Toleration{gone(corev1.TaintNodeUnreachable, 10)}, []corev1.Toleration{gone(corev1.TaintNodeUnreachable, 10), gone(corev1.TaintNodeNotReady, 300)}},
		"one for all keys": {[]corev1.Toleration{all}, []corev1.Toleration{all}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			pod := newPod("p")
			pod.Spec.Tolerations = tt.have
			require.NoError(t, c.Create(pod))
			require.Empty(t, cmp.Diff(tt.want, stored(t, c, pod).Spec.Tolerations))
		})
	}
}
