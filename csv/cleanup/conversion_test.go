// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// TestConversionIsTakenOutUnlessClaimed: our service goes out of a CRD in every mode but the orphaning one, unless a
// live version has a webhook for it.
func TestConversionIsTakenOutUnlessClaimed(t *testing.T) {
	reset := []string{"update CustomResourceDefinition cools.example.com"}
	claim := func(v *v1alpha1.ClusterServiceVersion) {
		v.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"cools.example.com"}}}
	}
	for name, c := range map[string]struct {
		change func(in *cleanup.Input)
		want   []string
	}{
		"uninstalled":                      {func(*cleanup.Input) {}, reset},
		"replaced, and no other claims it": {func(in *cleanup.Input) { successorOf(in, succeeded) }, reset},
		"replaced, the successor does":     {func(in *cleanup.Input) { claim(successorOf(in, succeeded)) }, release},
		"replaced by one that is leaving":  {func(in *cleanup.Input) { s := successorOf(in, succeeded); claim(s); s.DeletionTimestamp = ago(0) }, reset},
		"a version of another namespace says so": {func(in *cleanup.Input) {
			s := successorOf(in, succeeded)
			claim(s)
			s.Namespace, s.Spec.Replaces = "evil", ""
		}, reset},
		"a version of another namespace that it came with, too": {func(in *cleanup.Input) {
			s := successorOf(in, succeeded)
			claim(s)
			s.Namespace, s.Spec.Replaces = "there", ""
			crd := in.CustomResourceDefinitions.Items[0]
			crd.Annotations, _ = olmcore.MergeLabels(crd.Annotations, map[string]string{"operatorframework.io/installed-alongside-there": "there/" + s.Name})
		}, reset},
		"without group annotations": {func(in *cleanup.Input) { in.ClusterServiceVersion.Annotations = nil }, reset},
		"the CRD is leaving too":    {func(in *cleanup.Input) { in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0) }, release},
		"the CRD is not ours":       {func(in *cleanup.Input) { in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned = nil }, release},
		"it is another operator's service": {func(in *cleanup.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Conversion.Webhook.ClientConfig.Service.Name = "hot-service"
		}, release},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
			in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
}

// TestConversionsThatLackPartsStay: whatever an API server can leave out is taken for missing.
func TestConversionsThatLackPartsStay(t *testing.T) {
	conversions := map[string]*apiextensionsv1.CustomResourceConversion{
		"no conversion": nil, "no webhook": {Strategy: apiextensionsv1.WebhookConverter},
		"no client": {Webhook: &apiextensionsv1.WebhookConversion{}}, "no service": {Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}},
		"another's service": {Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "other", Name: "cool-service"}}}},
	}
	for name, conversion := range conversions {
		in := leaving()
		in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
		in.CustomResourceDefinitions.Items[0].Spec.Conversion = conversion
		require.Equal(t, release, does(t, in), name)
	}
}
