// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake"
)

// TestAnUpgradeThatReusesACertificateSaysWhenItIsReplaced: the new version has the same certsRotateAt as the old one.
func TestAnUpgradeThatReusesACertificateSaysWhenItIsReplaced(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }))
	w.heads["delta"] = 1
	require.NoError(t, w.subscribe("delta", v1alpha1.ApprovalAutomatic))
	w.run(t, 10*time.Minute)
	rotates := func(version int) string {
		c := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("delta", version))
		require.NotNil(t, c)
		require.Equal(t, v1alpha1.CSVPhaseSucceeded, c.Status.Phase, c.Status.Message)
		require.NotNil(t, c.Status.CertsRotateAt)
		return c.Status.CertsRotateAt.UTC().Format(time.RFC3339)
	}
	before := rotates(1)
	w.heads["delta"] = 2
	w.olm.CatalogsChanged()
	require.NoError(t, fake.Edit(w.cluster, namespace, "delta", func(s *v1alpha1.Subscription) { s.Labels["poke"] = "1" }))
	w.run(t, 30*time.Minute)
	require.Equal(t, before, rotates(2))
}
