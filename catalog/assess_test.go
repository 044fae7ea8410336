// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/catalog"
)

// TestHealthyAndUpstreamHealthy compares Healthy, which follows from the Pods that serve, with UpstreamHealthy,
// which follows from the objects.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
func TestHealthyAndUpstreamHealthy(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	configMap := mappedInput(t, catalog.Config{})
	for name, test := range map[string]struct {
		base          catalog.Input
		change        func(*catalog.Input)
		upstream, our bool
	}{
		"all is there":         {base, func(*catalog.Input) {}, true, true},
		"no Pod":               {base, func(in *catalog.Input) { in.Pods.Items = nil }, false, false},
		"no policy":            {base, func(in *catalog.Input) { in.NetworkPolicies.Items = in.NetworkPolicies.Items[:1] }, false, true},
		"a damaged policy":     {base, func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.PolicyTypes = nil }, false, true},
		"no service":           {base, func(in *catalog.Input) { in.Services.Items = nil }, false, true},
		"no account":           {base, func(in *catalog.Input) { in.ServiceAccounts.Items = nil }, false, true},
		"an old image":         {base, edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image = "new" }), false, true},
		"a Pod without label":  {base, func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.catalogSource") }, false, false},
		"an evicted Pod":       {base, func(in *catalog.Input) { terminating(in, 0); disrupted(in) }, false, false},
		"a Pod not ready":      {base, func(in *catalog.Input) { unready(in.Pods.Items[0]) }, true, false},
		"a terminating Pod":    {base, func(in *catalog.Input) { terminating(in, 0) }, true, false},
		"a config map":         {configMap, func(*catalog.Input) {}, true, true},
		"an older config map":  {configMap, func(in *catalog.Input) { in.ConfigMap.ResourceVersion = "x" }, false, true},
		"no role":              {configMap, func(in *catalog.Input) { in.Roles.Items = nil }, false, true},
		"no config map":        {configMap, func(in *catalog.Input) { in.ConfigMap = nil }, false, true},
		"an evicted map Pod":   {configMap, func(in *catalog.Input) { terminating(in, 0); disrupted(in) }, false, false},
		"the spec is nonsense": {base, edited(func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "" }), false, true},
		"an address": {base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "foo:1" })
			in.Connection.Address = "foo:1"
		}, true, true},
	} {
		var a catalog.Assessment
		reconcile(t, test.base, func(in *catalog.Input) {
			test.change(in)
			a = catalog.Assess(*in)
		})
		require.Equal(t, test.upstream, a.UpstreamHealthy, name)
		require.Equal(t, test.our, a.Healthy, name)
	}
	starting := catalog.Assess(newWorld(t, catalog.Config{}, cool()).input(t))
	require.True(t, starting.Healthy, "the first Pods are given their time")
	require.Equal(t, catalog.ReasonInitialRollout, starting.WaitingFor)
}
