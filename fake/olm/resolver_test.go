// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// catalogOf is a catalog with the packages of the world at version 1.
func catalogOf(t require.TestingT, packages ...string) *controllers.Catalogs {
	var all []resolution.Package
	for _, name := range packages {
		b := resolution.Bundle{Name: csvName(name, 1)}
		b.Properties = []olmcore.Property{{
			Type: resolution.PropertyPackage, Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":"1.0.0"}`, name)),
		}}
		for _, o := range bundle(name, 1) {
			data, err := json.Marshal(o)
			require.NoError(t, err)
			inline, err := json.Marshal(map[string][]byte{"data": data})
			require.NoError(t, err)
			b.Properties = append(b.Properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: inline})
		}
		all = append(all, resolution.Package{
			Name: name, DefaultChannel: "stable", Bundles: []resolution.Bundle{b},
			Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: b.Name}}}},
		})
	}
	content, problems := resolution.Build(all)
	require.Empty(t, problems)
	return &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{
		{Namespace: "olm", Name: "community"}: content,
	}}
}

// TestTheResolversAnswerMayBeLost: two Subscriptions are resolved together, and
// whatever write of that is lost, they end with the one plan that they would have
// had.
func TestTheResolversAnswerMayBeLost(t *testing.T) {
	require.NoError(t, invariant.Resumable(invariant.World{
		New: func() (*fake.Cluster, error) {
			w := newWorld(t)
			if err := w.subscribe("alpha", v1alpha1.ApprovalAutomatic); err != nil {
				return nil, err
			}
			return w.cluster, w.subscribe("beta", v1alpha1.ApprovalAutomatic)
		},
		Controllers: func(*fake.Cluster) []fake.Controller {
			options := controllers.Options{KubernetesVersion: "v1.36.2"}
			catalogOf(t, "alpha", "beta").Serve(&options)
			return (&olm.OLM{Options: options}).Controllers()
		},
		Rounds:   rounds,
		Patience: time.Minute,
		Ignore:   ignore,
	}))
}
