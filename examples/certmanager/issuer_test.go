// SPDX-License-Identifier: Apache-2.0

package certmanager_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/examples/certmanager"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	kind  = certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind)
)

// manager plays cert-manager: it keeps a certificate in the Secret of each Certificate, and renews it after two thirds
// of its life.
type manager struct {
	// failing is what it says of Certificates; empty: it makes them.
	failing string
	// noAuthority: its issuer leaves ca.crt out.
	noAuthority bool
}

func (m *manager) controller() controller.Controller {
	return controller.Controller{Name: "cert-manager", Kinds: []schema.GroupVersionKind{kind}, Reconcile: m.reconcile}
}

func (m *manager) reconcile(
	ctx context.Context,
	r olmcore.Reader,
	key types.NamespacedName,
	now time.Time,
	_ olmcore.LastResults,
) (olmcore.Result, error) {
	o, err := r.Get(ctx, kind, key.Namespace, key.Name)
	if err != nil {
		return olmcore.Result{}, err
	}
	var c certmanagerv1.Certificate
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, &c); err != nil {
		return olmcore.Result{}, err
	}
	if m.failing != "" {
		return status(o, certmanagerv1.CertificateConditionIssuing, cmmeta.ConditionFalse, "Failed", m.failing, c.Generation), nil
	}
	secret, err := olmcore.Get[*corev1.Secret](ctx, r, key.Namespace, c.Spec.SecretName)
	if err != nil {
		return olmcore.Result{}, err
	}
	if secret != nil {
		made := serving.Certificate{CAPEM: secret.Data["ca.crt"], CertPEM: secret.Data["tls.crt"], KeyPEM: secret.Data["tls.key"]}
		h := serving.Inspect(made, c.Spec.DNSNames, now.Add(c.Spec.Duration.Duration/3))
		if m.noAuthority || h.Problem == "" {
			return status(o, certmanagerv1.CertificateConditionReady, cmmeta.ConditionTrue, "Ready", "", c.Generation), nil
		}
	}
	issued, _, err := olm.Issuer{Seed: "cert-manager"}.Issue(ctx, r, []serving.Request{{
		Deployment: c.Name, Namespace: c.Namespace, Hosts: c.Spec.DNSNames, NotBefore: now, NotAfter: now.Add(c.Spec.Duration.Duration),
	}}, now)
	if err != nil {
		return olmcore.Result{}, err
	}
	data := map[string][]byte{"ca.crt": issued[0].CAPEM, "tls.crt": issued[0].CertPEM, "tls.key": issued[0].KeyPEM}
	if m.noAuthority {
		delete(data, "ca.crt")
	}
	cause := olmcore.Cause{Reason: "Issue"}
	if secret == nil {
		return olmcore.Result{Actions: []olmcore.Action{olmcore.CreateOf(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: c.Spec.SecretName, Namespace: c.Namespace}, Type: corev1.SecretTypeTLS, Data: data,
		}, cause)}}, nil
	}
	after := secret.DeepCopy()
	after.Data = data
	return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(secret, after, cause)}}, nil
}

// status writes a condition that a Certificate does not have.
func status(
	o olmcore.Object,
	condition certmanagerv1.CertificateConditionType,
	is cmmeta.ConditionStatus,
	reason, message string,
	generation int64,
) olmcore.Result {
	before := o.(*unstructured.Unstructured)
	after := before.DeepCopy()
	conditions := []any{
		map[string]any{"type": string(condition), "status": string(is), "reason": reason, "message": message, "observedGeneration": generation},
	}
	if err := unstructured.SetNestedSlice(after.Object, conditions, "status", "conditions"); err != nil ||
		len(mustJSON(before)) == len(mustJSON(after)) {
		return olmcore.Result{}
	}
	return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: "Status"})}}
}

func mustJSON(u *unstructured.Unstructured) []byte {
	data, _ := u.MarshalJSON()
	return data
}

// world is a cluster with cert-manager and a version that serves a webhook.
func world(t *testing.T) *fake.Cluster {
	t.Helper()
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Node("a").Create(nil))
	for kind, plural := range map[string]string{"Certificate": "certificates", "Issuer": "issuers"} {
		require.NoError(t, c.Create(&apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".cert-manager.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Kind:     kind,
					Plural:   plural,
					ListKind: kind + "List",
					Singular: plural[:len(plural)-1],
				},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
					},
				}},
			},
		}))
	}
	require.NoError(t, c.Settle())
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "all"}}))
	v := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "cool.v1"}}
	v.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	v.Spec.InstallStrategy.StrategyName = "deployment"
	app := map[string]string{"app": "cool"}
	v.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "cool", Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: app},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}}
	v.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{
		GenerateName: "hook.cool.io", Type: v1alpha1.ValidatingAdmissionWebhook, DeploymentName: "cool", ContainerPort: 443,
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}}
	require.NoError(t, c.Create(v))
	return c
}

// play runs the library and cert-manager.
func play(t *testing.T, c *fake.Cluster, m *manager, i certmanager.Issuer, d time.Duration) *fake.Driver {
	t.Helper()
	o := &olm.OLM{Options: controllers.Options{Issuer: i}}
	driver := &fake.Driver{Cluster: c, Controllers: append(o.Controllers(), m.controller())}
	require.NoError(t, driver.RunFor(t.Context(), d))
	return driver
}

func phaseOf(c *fake.Cluster) v1alpha1.ClusterServiceVersionPhase {
	return fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cool.v1").Status.Phase
}

// requireServing demands that the operator serves with what cert-manager made, and that its webhook trusts that alone.
func requireServing(t *testing.T, c *fake.Cluster) {
	t.Helper()
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, phaseOf(c))
	made, mounted := fake.Find[*corev1.Secret](c, "ops", "cool-service-cert-manager"), fake.Find[*corev1.Secret](c, "ops", "cool-service-cert")
	require.Equal(t, string(made.Data["tls.crt"]), string(mounted.Data["tls.crt"]))
	require.Equal(t, string(made.Data["ca.crt"]), string(mounted.Data["olmCAKey"]))
	configurations, err := olmcore.List[*admissionregistrationv1.ValidatingWebhookConfiguration](t.Context(), c, "", nil)
	require.NoError(t, err)
	require.Len(t, configurations, 1)
	require.True(t, bytes.Equal(made.Data["ca.crt"], configurations[0].Webhooks[0].ClientConfig.CABundle))
}

func TestOperatorsServeWithCertificatesOfCertManager(t *testing.T) {
	c := world(t)
	play(t, c, &manager{}, certmanager.Issuer{}, 2*time.Minute)
	requireServing(t, c)
	first := fake.Find[*corev1.Secret](c, "ops", "cool-service-cert").Data["tls.crt"]
	o, err := c.Get(t.Context(), kind, "ops", "cool-service-cert-manager")
	require.NoError(t, err)
	require.Equal(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cool.v1").UID, o.GetOwnerReferences()[0].UID)
	_, err = c.Get(t.Context(), certmanagerv1.SchemeGroupVersion.WithKind("Issuer"), "ops", certmanager.SelfSigned)
	require.NoError(t, err)

	c.Advance(serving.Validity - serving.RenewBefore)
	play(t, c, &manager{}, certmanager.Issuer{}, 2*time.Minute)
	requireServing(t, c)
	require.NotEqual(t, first, fake.Find[*corev1.Secret](c, "ops", "cool-service-cert").Data["tls.crt"])
}

func TestANamedIssuer(t *testing.T) {
	c := world(t)
	play(t, c, &manager{}, certmanager.Issuer{Ref: cmmeta.IssuerReference{Name: "corp", Kind: "ClusterIssuer"}}, 2*time.Minute)
	requireServing(t, c)
	o, err := c.Get(t.Context(), kind, "ops", "cool-service-cert-manager")
	require.NoError(t, err)
	ref, _, err := unstructured.NestedStringMap(o.(*unstructured.Unstructured).Object, "spec", "issuerRef")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"name": "corp", "kind": "ClusterIssuer", "group": "cert-manager.io"}, ref)
	_, err = c.Get(t.Context(), certmanagerv1.SchemeGroupVersion.WithKind("Issuer"), "ops", certmanager.SelfSigned)
	require.Equal(t, olmcore.Gone, olmcore.Classify(err))
}

// TestWhatIsNotIssuedIsSaid: nothing is installed without a certificate, and the reason is told.
func TestWhatIsNotIssuedIsSaid(t *testing.T) {
	for name, m := range map[string]struct {
		manager *manager
		prepare func(*testing.T, *fake.Cluster)
		says    string
	}{
		"cert-manager cannot make it": {manager: &manager{failing: "no such issuer"}, says: "no certificate was issued: cert-manager cannot make certificate ops/cool-service-cert-manager: no such issuer"},
		"there is no authority":       {manager: &manager{noAuthority: true}, says: "no certificate was issued: Issuer olm-selfsigned gives no authority in ca.crt, which clients could trust"},
		"a Certificate of a user": {manager: &manager{}, says: "no certificate was issued: certificate ops/cool-service-cert-manager exists and is not managed by an operator", prepare: func(t *testing.T, c *fake.Cluster) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": map[string]any{
				"secretName": "mine", "dnsNames": []any{"example.org"}, "duration": "24h0m0s", "issuerRef": map[string]any{"name": "mine"},
			}}}
			u.SetNamespace("ops")
			u.SetName("cool-service-cert-manager")
			require.NoError(t, c.Create(u))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := world(t)
			if m.prepare != nil {
				m.prepare(t, c)
			}
			driver := play(t, c, m.manager, certmanager.Issuer{}, time.Minute)
			require.Equal(t, v1alpha1.CSVPhaseInstallReady, phaseOf(c))
			require.Nil(t, fake.Find[*appsv1.Deployment](c, "ops", "cool"))
			var said []string
			for _, e := range driver.Events {
				if e.Diagnostic != nil && e.Diagnostic.Reason == controllers.ReasonCertificateNotIssued {
					said = append(said, e.Diagnostic.Message)
				}
			}
			require.Contains(t, said, m.says)
		})
	}
}

func TestWithoutCertManager(t *testing.T) {
	c := fake.NewCluster(start)
	_, _, err := certmanager.Issuer{}.Issue(
		t.Context(),
		c,
		[]serving.Request{{Deployment: "cool", Namespace: "ops", Service: "cool-service", Hosts: []string{"cool-service.ops"}}},
		start,
	)
	require.ErrorContains(t, err, "cert-manager is not installed")
}
