// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/fake"
)

// TestAStaticGroupKeepsAnAPIFromATenant checks that a ClusterServiceVersion of a tenant, which claims an API first,
// does not stop the operator of an OperatorGroup whose static APIs contain the API.
func TestAStaticGroupKeepsAnAPIFromATenant(t *testing.T) {
	c, d := tenantWorld(t)
	gems := []v1alpha1.CRDDescription{{Name: "gems.example.org", Version: "v1", Kind: "Gem"}}
	claiming := versionOf("evil")
	claiming.Name, claiming.Spec.CustomResourceDefinitions.Owned, claiming.Spec.Cleanup.Enabled = "claim.v1", gems, false
	require.NoError(t, c.Create(claiming))
	require.NoError(t, d.RunFor(t.Context(), 30*time.Minute))

	group := &operatorsv1.OperatorGroup{}
	group.Namespace, group.Name, group.Spec.StaticProvidedAPIs = "global", "group", true
	group.Annotations = map[string]string{"olm.providedAPIs": "Gem.v1.example.org"}
	require.NoError(t, c.Create(group))
	crd := precious()
	crd.Name, crd.Spec.Group = "gems.example.org", "example.org"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gem", Plural: "gems", ListKind: "GemList", Singular: "gem"}
	operator := versionOf("global")
	operator.Name, operator.Spec.CustomResourceDefinitions.Owned, operator.Spec.Cleanup.Enabled = "gem.v1", gems, false
	definition := tenantStep("gem.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, manifestOf(t, crd))
	version := tenantStep("gem.v1", v1alpha1.GroupName, "v1alpha1", "ClusterServiceVersion", "gem.v1", manifestOf(t, operator))
	tenantsPlan(t, c, "global", "gems", version, definition)
	require.NoError(t, d.RunFor(t.Context(), 30*time.Minute))

	status := fake.Find[*v1alpha1.ClusterServiceVersion](c, "global", "gem.v1").Status
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, status.Phase, status.Message)
	status = fake.Find[*v1alpha1.ClusterServiceVersion](c, "evil", "claim.v1").Status
	require.Equal(t, v1alpha1.CSVPhaseFailed, status.Phase, status.Message)
	require.Equal(t, v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, status.Reason)
}
