// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// helmsCRD returns the CRD of an operator as Helm installs it, without a record of its operator.
func helmsCRD(c *v1alpha1.ClusterServiceVersion) *apiextensionsv1.CustomResourceDefinition {
	crd := definitionsFor(c)[0]
	serve(crd, "v2")
	crd.Annotations = map[string]string{"meta.helm.sh/release-name": "cool"}
	crd.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	return crd
}

func liveCRD(cluster *fake.Cluster) *apiextensionsv1.CustomResourceDefinition {
	return fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "cools.example.com")
}

// TestConversionOfHelmCRDIsRefused simulates an attack of an operator that lists the CRD of a Helm release as owned.
// The command in the message allows the conversion, also for the next version.
func TestConversionOfHelmCRDIsRefused(t *testing.T) {
	ctx := t.Context()
	cluster, driver := newWorld(csv.Config{})
	first := called("cool.v1", 1)
	require.NoError(t, cluster.Create(helmsCRD(first)))
	require.NoError(t, cluster.Create(needs(first)...))
	require.NoError(t, cluster.Create(groupFor(first), first))
	require.NoError(t, driver.RunFor(ctx, time.Hour))
	at, why, message := statusOf(cluster)
	require.Equal(t, failed, at)
	require.Equal(t, reason("InstallComponentFailed"), why)
	require.Contains(t, message, "kubectl annotate crd cools.example.com olmcore/converted-by=ns/cool.v1 --overwrite")
	require.NotEqual(t, apiextensionsv1.WebhookConverter, strategyOf(liveCRD(cluster)))

	require.NoError(t, fake.Edit(cluster, "", "cools.example.com", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations["olmcore/converted-by"] = "ns/cool.v1"
	}))
	require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
	at, _, message = statusOf(cluster)
	require.Equal(t, succeeded, at, message)
	require.Equal(t, "cool-service", liveCRD(cluster).Spec.Conversion.Webhook.ClientConfig.Service.Name)

	next := renamed()
	require.NoError(t, cluster.Create(next))
	for _, o := range needs(next) {
		require.NoError(t, ignoreExisting(cluster.Create(o)))
	}
	require.NoError(t, driver.RunFor(ctx, time.Hour))
	require.Equal(t, succeeded, phaseIn(cluster, "cool.v2"))
	require.Equal(t, phaseName("gone"), phaseIn(cluster, "cool.v1"))
	require.Equal(t, "cool-next-service", liveCRD(cluster).Spec.Conversion.Webhook.ClientConfig.Service.Name)
	require.Equal(t, "ns/cool.v2", liveCRD(cluster).Annotations["olmcore/converted-by"])

	require.NoError(t, cluster.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v2"))))
	require.NoError(t, driver.RunFor(ctx, time.Hour))
	require.NotEqual(t, apiextensionsv1.WebhookConverter, strategyOf(liveCRD(cluster)))
	require.NotContains(t, liveCRD(cluster).Annotations, "olmcore/converted-by", "the next operator needs a new permission")
}

func strategyOf(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.ConversionStrategyType {
	if crd.Spec.Conversion == nil {
		return apiextensionsv1.NoneConverter
	}
	return crd.Spec.Conversion.Strategy
}

// TestConversionSetByOLMIsKept checks a CRD of a Helm release that OLM made call an operator for conversions. It keeps
// calling the operator, only its caBundle is updated, and a Diagnostic reports this.
func TestConversionSetByOLMIsKept(t *testing.T) {
	made, _ := install(t, called("cool.v1", 1))
	cluster, driver := newWorld(csv.Config{})
	cluster.Advance(made.Now().Sub(cluster.Now()))
	for _, o := range made.Objects() {
		if olmcore.KeyOf(o).Kind != "Node" {
			require.NoError(t, cluster.Load(csvtest.AsOLM(o)))
		}
	}
	before := liveCRD(cluster)
	require.Empty(t, before.Annotations)
	require.NoError(t, driver.Settle(t.Context()))
	for _, e := range driver.Events {
		require.True(t, e.Action == nil && e.Transition == nil, e.String())
	}
	in := calledIn(t, cluster)
	reported := assess(t, in).Diagnostics
	require.Len(t, reported, 1)
	require.Equal(t, csv.ReasonConversionKept, reported[0].Reason)

	cluster.Advance(serving.Validity - time.Hour)
	require.NoError(t, driver.RunFor(t.Context(), time.Hour))
	at, _, message := statusOf(cluster)
	require.Equal(t, succeeded, at, message)
	require.NoError(t, cluster.Serving().Check())
	after := liveCRD(cluster)
	require.NotEqual(t, before.Spec.Conversion.Webhook.ClientConfig.CABundle, after.Spec.Conversion.Webhook.ClientConfig.CABundle)
	after = after.DeepCopy()
	after.Spec.Conversion.Webhook.ClientConfig.CABundle = before.Spec.Conversion.Webhook.ClientConfig.CABundle
	require.Equal(t, before.Spec, after.Spec)
	require.Equal(t, before.Annotations, after.Annotations)
}
