// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
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

// packages is a registry with a version of each package that it names.
type packages struct {
	api.UnimplementedRegistryServer
	names func() []string
}

func (p packages) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	for _, name := range p.names() {
		manifest := strings.ReplaceAll(csv, "alpha.v1.0.0", name+".v1.0.0")
		if err := stream.Send(&api.Bundle{CsvName: name + ".v1.0.0", PackageName: name, ChannelName: "stable", CsvJson: manifest, Object: []string{manifest}, Version: "1.0.0"}); err != nil {
			return err
		}
	}
	return nil
}

func (packages) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: r.Name, DefaultChannelName: "stable"}, nil
}

// listen serves a registry at an address, and returns that. stop ends all connections.
func listen(t *testing.T, address string, names func() []string) (at string, stop func()) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, packages{names: names})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), server.Stop
}

// subscribed serves a cluster with Subscriptions to packages, each in a namespace, whose catalog is in a registry that
// answers at an address.
func subscribed(t *testing.T, address string, namespaces map[string]string) (s *apiserver.Server, kubeconfig string) {
	return serve(t, func(c *fake.Cluster) error {
		err := c.Create(&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: address},
		})
		for namespace, name := range namespaces {
			err = errors.Join(err, c.Create(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: &v1alpha1.SubscriptionSpec{
				Package: name, Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm",
			}}))
			if namespace != "ops" {
				err = errors.Join(err, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}))
			}
		}
		return err
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
	address, _ := listen(t, "127.0.0.1:0", func() []string { return []string{"alpha"} })
	s, kubeconfig := subscribed(t, address, map[string]string{"ops": "alpha"})
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

// TestContentThatChangesWakesTheProgram long before the time to run again: when it was read after the first run, and
// when the registry serves something else.
func TestContentThatChangesWakesTheProgram(t *testing.T) {
	read := make(chan struct{})
	address, stop := listen(t, "127.0.0.1:0", func() []string { <-read; return []string{"alpha"} })
	s, kubeconfig := subscribed(t, address, map[string]string{"ops": "alpha", "other": "beta"})
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--kubeconfig", kubeconfig, "--every", "24h"}, nil, &out) }()
	until := func(what string, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
			select {
			case err := <-ended:
				require.Failf(t, "it ended", "%v\n%s", err, out.String())
			default:
			}
			require.True(t, time.Now().Before(deadline), what)
		}
	}
	planned := func(want ...string) func() bool {
		return func() bool {
			var have []string
			for _, plan := range plans(t, s) {
				have = append(have, plan.Namespace+" "+strings.Join(plan.Spec.ClusterServiceVersionNames, " "))
			}
			slices.Sort(have)
			return slices.Equal(have, want)
		}
	}
	until("the first run is past the Subscriptions", func() (done bool) {
		require.NoError(t, s.With(func(c *fake.Cluster) error {
			done = !fake.Find[*operatorsv1.OperatorGroup](c, "ops", "group").Status.LastUpdated.IsZero()
			return nil
		}))
		return done
	})
	require.Empty(t, plans(t, s))
	close(read)
	until("what was read resolves", planned("ops alpha.v1.0.0"))
	stop()
	listen(t, address, func() []string { return []string{"alpha", "beta"} })
	until("what is served now resolves", planned("ops alpha.v1.0.0", "other beta.v1.0.0"))
	cancel()
	<-ended // a read may be cut short
}
