// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

// TestObjectsAreMadeWithTheirComponentLabels: each object has one writer while an
// operator is installed and upgraded, so no write conflicts with another one.
func TestObjectsAreMadeWithTheirComponentLabels(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	w.heads["alpha"] = 2
	w.poke(t)
	w.run(t, 2*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())

	for _, e := range w.driver.Events {
		if e.Action == nil || e.Controller != controllers.Subscription {
			continue
		}
		verb, target, cause := e.Action.Describe()
		if cause.Reason == component.ReasonLabelMissing {
			require.Equal(t, "Subscription", target.Kind, "%s %s", verb, target)
		}
	}
	key, err := olmcore.ComponentLabelKey("alpha", namespace)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, o := range w.cluster.Objects() {
		if kind := olmcore.KeyOf(o).Kind; kind != "" {
			_, labelled := o.GetLabels()[key]
			found[kind] = found[kind] || labelled
		}
	}
	for _, kind := range []string{"ClusterServiceVersion", "Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "InstallPlan", "Subscription"} {
		require.True(t, found[kind], kind)
	}
}
