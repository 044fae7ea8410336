// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// issuer answers as its function does.
type issuer func(requests []serving.Request) ([]serving.Issued, olmcore.Result, error)

func (i issuer) Issue(
	_ context.Context,
	_ olmcore.Reader,
	requests []serving.Request,
	_ time.Time,
) ([]serving.Issued, olmcore.Result, error) {
	return i(requests)
}

// withWebhook is a namespace with an OperatorGroup of all namespaces and a version that serves a webhook.
func withWebhook(t *testing.T) *fake.Cluster {
	t.Helper()
	c := fake.NewCluster(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Node("a").Create(nil))
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

func run(t *testing.T, c *fake.Cluster, o *olm.OLM, d time.Duration) *fake.Driver {
	t.Helper()
	driver := &fake.Driver{Cluster: c, Controllers: o.Controllers()}
	require.NoError(t, driver.RunFor(t.Context(), d))
	return driver
}

func phaseOf(c *fake.Cluster) v1alpha1.ClusterServiceVersionPhase {
	return fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cool.v1").Status.Phase
}

func TestCertificatesAreIssued(t *testing.T) {
	for name, issuer := range map[string]controllers.Issuer{"as OLM does": nil, "by another": olm.Issuer{Seed: "x"}} {
		t.Run(name, func(t *testing.T) {
			c := withWebhook(t)
			var asked []serving.Request
			set := controllers.New(&controllers.Options{Issuer: issuer, Asked: func(controller string, _ types.NamespacedName, request any) {
				if r, ok := request.(serving.Request); ok && controller == controllers.CSV {
					asked = append(asked, r)
				}
			}})
			for range 30 {
				require.NoError(t, controller.Pass(t.Context(), set.Runners(c, c), c.Now))
				require.NoError(t, c.Settle())
				c.Advance(time.Second)
			}
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, phaseOf(c))
			require.Len(t, asked, 1, "one certificate is enough")
			secret := fake.Find[*corev1.Secret](c, "ops", "cool-service-cert")
			require.Empty(t, serving.Inspect(serving.FromData(secret.Data), asked[0].Hosts, c.Now()).Problem)
		})
	}
}

func TestAnIssuerThatFailsIsAskedAgain(t *testing.T) {
	c := withWebhook(t)
	failures := 3
	o := &olm.OLM{Options: controllers.Options{Issuer: issuer(func(requests []serving.Request) ([]serving.Issued, olmcore.Result, error) {
		if failures > 0 {
			failures--
			return nil, olmcore.Result{}, errors.New("no entropy")
		}
		return olm.Issuer{}.Issue(t.Context(), nil, requests, c.Now())
	})}}
	driver := run(t, c, o, 20*time.Second)
	require.Equal(t, v1alpha1.CSVPhaseInstallReady, phaseOf(c))
	said := false
	for _, e := range driver.Events {
		said = said ||
			e.Diagnostic != nil && e.Diagnostic.Reason == controllers.ReasonCertificateNotIssued &&
				e.Diagnostic.Message == "no certificate was issued: no entropy"
	}
	require.True(t, said)
	run(t, c, o, 2*time.Minute)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, phaseOf(c))
}

// TestAnIssuerMayWorkThroughObjects: what it asks for is written, and it is asked again when it says so.
func TestAnIssuerMayWorkThroughObjects(t *testing.T) {
	c := withWebhook(t)
	o := &olm.OLM{Options: controllers.Options{Issuer: issuer(func(requests []serving.Request) ([]serving.Issued, olmcore.Result, error) {
		if fake.Find[*corev1.ConfigMap](c, "ops", "order") == nil {
			order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "order"}}
			return nil, olmcore.Result{
				Actions:      []olmcore.Action{olmcore.CreateOf(order, olmcore.Cause{Reason: "Order"})},
				RequeueAfter: time.Second,
			}, nil
		}
		return olm.Issuer{}.Issue(t.Context(), nil, requests, c.Now())
	})}}
	run(t, c, o, time.Minute)
	require.NotNil(t, fake.Find[*corev1.ConfigMap](c, "ops", "order"))
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, phaseOf(c))
}

func TestWithoutAnIssuerNothingIsInstalled(t *testing.T) {
	c := withWebhook(t)
	run(t, c, &olm.OLM{Options: controllers.Options{Issuer: controllers.NoIssuer{}}}, time.Minute)
	require.Equal(t, v1alpha1.CSVPhaseInstallReady, phaseOf(c))
	require.Nil(t, fake.Find[*appsv1.Deployment](c, "ops", "cool"))
	require.Nil(t, fake.Find[*corev1.Secret](c, "ops", "cool-service-cert"))
}
