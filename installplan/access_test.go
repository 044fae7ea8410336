// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan"
)

func TestRequiredAccess(t *testing.T) {
	p := plan(installing, []*v1alpha1.Step{
		csvStep("a.v1"), crdStep("a.v1", "v1"), nil, roleStep("a.v1", "r"), roleStep("a.v1", "r"),
		step("a.v1", "networking.k8s.io", "v1", "NetworkPolicy", "n", "{}"),
		step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "c", "{}"),
		step("a.v1", "example.com", "v1", "Thing", "t", "{}"),
		step("a.v1", "", "v1", "BundleSecret", "s", "{}"),
		step("a.v1", "other.com", "v1", "Gizmo", "g", "{}"),
	})
	odd := installed(crdObject("v1"), true)
	odd.Spec.Names.Plural = "thingies"
	var got []string
	for _, a := range installplan.RequiredAccess(p, []*apiextensionsv1.CustomResourceDefinition{odd}) {
		if a.Verb == "create" || a.Verb == "patch" {
			got = append(got, a.String())
		}
	}
	same(t, []string{
		"create secrets in ops", "patch secrets ops/s",
		"create thingies.example.com in ops", "patch thingies.example.com ops/t",
		"create networkpolicies.networking.k8s.io in ops", "patch networkpolicies.networking.k8s.io ops/n",
		"create clusterserviceversions.operators.coreos.com in ops", "patch clusterserviceversions.operators.coreos.com ops/a.v1",
		"create gizmos.other.com in ops", "patch gizmos.other.com ops/g",
		"create clusterroles.rbac.authorization.k8s.io", "patch clusterroles.rbac.authorization.k8s.io c",
		"create roles.rbac.authorization.k8s.io in ops", "patch roles.rbac.authorization.k8s.io ops/r",
	}, got)
	require.Empty(t, installplan.RequiredAccess(nil, nil))
}

func TestMissingPermissions(t *testing.T) {
	p := plan(installing, nil, func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: ns, Name: "scoped"}
	})
	_, missing := installplan.MissingPermissions(p, nil)
	require.False(t, missing)
	d, missing := installplan.MissingPermissions(p, []installplan.Access{{Verb: "create", Resource: "services", Namespace: ns}, {Verb: "get", Resource: "pods"}})
	require.True(t, missing)
	require.Equal(t, "ServiceAccount ops/scoped may not create services in ops, get pods", d.Message)
	require.Equal(t, installplan.ReasonMissingPermissions, d.Reason)
}

// TestWarningsOfTheAPIServer has cases of OLM.
//
// OLM's case: warnings of the API server are told, with step and operator.
func TestWarningsOfTheAPIServer(t *testing.T) {
	p := plan(installing, []*v1alpha1.Step{csvStep("a.v1"), roleStep("", "r")})
	d, ok := installplan.WarningDiagnostic(p, 0, []string{"old", "older"})
	require.True(t, ok)
	require.Equal(t, `2 warning(s) generated during installation of operator "a.v1" (ClusterServiceVersion "a.v1"): old, older`, d.Message)
	require.Equal(t, "status.plan[0]", d.Path)
	require.Equal(t, "AppliedWithWarnings", d.Reason)
	d, _ = installplan.WarningDiagnostic(p, 1, []string{"old"})
	require.Equal(t, `1 warning(s) generated during operator installation (Role "r"): old`, d.Message)
	for _, i := range []int{-1, 2} {
		_, ok = installplan.WarningDiagnostic(p, i, []string{"old"})
		require.False(t, ok)
	}
	_, ok = installplan.WarningDiagnostic(p, 0, nil)
	require.False(t, ok)
}
