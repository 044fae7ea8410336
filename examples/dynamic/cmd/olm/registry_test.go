// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
)

const csv = `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "alpha.v1.0.0"}, "spec": {
  "version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}], "install": {"strategy": "deployment"}}}`

// onePackage is a registry with one package.
type onePackage struct {
	api.UnimplementedRegistryServer
}

func (onePackage) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	return stream.Send(&api.Bundle{CsvName: "alpha.v1.0.0", PackageName: "alpha", ChannelName: "stable", CsvJson: csv, Object: []string{csv}, Version: "1.0.0"})
}

func (onePackage) GetPackage(context.Context, *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: "alpha", DefaultChannelName: "stable"}, nil
}

// subscribed serves a cluster with a Subscription, whose catalog is in a registry that answers at an address.
func subscribed(t *testing.T) (s *apiserver.Server, kubeconfig string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, onePackage{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return serve(t, func(c *fake.Cluster) error {
		return c.Create(
			&v1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
				Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: listener.Addr().String()},
			},
			&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "alpha"}, Spec: &v1alpha1.SubscriptionSpec{
				Package: "alpha", Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm",
			}})
	})
}

// plans are the InstallPlans of the cluster.
func plans(t *testing.T, s *apiserver.Server) (found []*v1alpha1.InstallPlan) {
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		for _, o := range c.Objects() {
			if plan, ok := o.(*v1alpha1.InstallPlan); ok {
				found = append(found, plan)
			}
		}
		return nil
	}))
	return found
}

// TestASubscriptionResolvesFromARegistry in the one run that there is, and from nothing when registries are not read.
func TestASubscriptionResolvesFromARegistry(t *testing.T) {
	s, kubeconfig := subscribed(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--registries=false"}, nil, &out))
	require.Empty(t, plans(t, s), out.String())
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--registries"}, nil, &out))
	found := plans(t, s)
	require.Len(t, found, 1, out.String())
	require.Equal(t, "ops", found[0].Namespace)
	require.Equal(t, []string{"alpha.v1.0.0"}, found[0].Spec.ClusterServiceVersionNames)
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		state := fake.Find[*v1alpha1.CatalogSource](c, "olm", "community").Status.GRPCConnectionState
		require.Equal(t, "READY", state.LastObservedState)
		return nil
	}))
}
