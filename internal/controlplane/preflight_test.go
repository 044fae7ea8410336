// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/internal/controlplane"
)

// requirePreflight: with the rights of the manifests the checks before a start find nothing, also for a shard; with
// fewer they name what is missing, and a server that is not trusted is said.
func requirePreflight(t *testing.T, plane *controlplane.ControlPlane) {
	preflight := func(config *rest.Config, o controllers.Options) error {
		cluster, err := olmdynamic.New(config)
		require.NoError(t, err)
		o.KubernetesVersion = cluster.Version
		return controllers.Preflight{Reader: cluster, Options: o, Allowed: cluster.Allowed}.Run(t.Context())
	}
	manager, err := plane.AsManager(t.Context(), "preflight-manager")
	require.NoError(t, err)
	o := controllers.Options{Sweeps: true, Operators: true}
	o.InstallPlan.OPMImage, o.InstallPlan.UtilImage = "opm", "util"
	require.NoError(t, preflight(manager, o))
	o.Namespaces = []string{"runtime"}
	require.NoError(t, preflight(manager, o))

	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "preflight-reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	}}
	lesser, err := plane.AsBoundTo(t.Context(), "preflight-reader", reader)
	require.NoError(t, err)
	require.ErrorContains(t, preflight(lesser, controllers.Options{}), "may not create, patch, delete configmaps; ")
	nobody, err := plane.AsBoundTo(t.Context(), "preflight-nobody")
	require.NoError(t, err)
	require.ErrorContains(t, preflight(nobody, controllers.Options{}), "may not get, list, watch, create, patch")

	untrusted := rest.CopyConfig(plane.Config)
	untrusted.CAData, untrusted.CAFile = nil, ""
	_, err = olmdynamic.New(untrusted)
	require.ErrorContains(t, err, "was issued by an authority that is not trusted")
	anonymous := rest.AnonymousClientConfig(plane.Config)
	anonymous.BearerToken = "none"
	_, err = olmdynamic.New(anonymous)
	require.ErrorContains(t, err, "the server does not accept the credentials of the kubeconfig")
}
