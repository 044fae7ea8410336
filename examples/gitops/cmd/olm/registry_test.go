// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
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

const subscribed = `
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: community, namespace: olm, uid: "1", resourceVersion: "1", creationTimestamp: "2026-01-02T12:00:00Z"}
spec: {sourceType: grpc, address: "ADDRESS"}
status: {connectionState: {address: "ADDRESS", lastObservedState: READY}}
---
apiVersion: v1
kind: Namespace
metadata: {name: ops, uid: "2", resourceVersion: "2", creationTimestamp: "2026-01-02T12:00:00Z"}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: ops, uid: "3", resourceVersion: "3", creationTimestamp: "2026-01-02T12:00:00Z"}
spec: {}
status: {namespaces: [""], lastUpdated: "2026-01-02T12:00:00Z"}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: alpha, namespace: ops, uid: "4", resourceVersion: "4", creationTimestamp: "2026-01-02T12:00:00Z", labels: {operators.coreos.com/alpha.ops: ""}}
spec: {name: alpha, channel: stable, source: community, sourceNamespace: olm}
`

// TestASubscriptionResolvesFromARegistry when registries are read, and from nothing without the flag.
func TestASubscriptionResolvesFromARegistry(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, onePackage{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	objects := strings.ReplaceAll(subscribed, "ADDRESS", listener.Addr().String())
	for flag, want := range map[string]int{"--registries=false": 0, "--registries": 1} {
		dir := t.TempDir()
		log, err := plan(t, dir, objects, "--complete", "--ignore-checks", "crds", flag)
		require.NoError(t, err)
		found, err := filepath.Glob(filepath.Join(dir, "apply", "ops", "installplan.operators.coreos.com_*.yaml"))
		require.NoError(t, err)
		require.Len(t, found, want, "%s: %s", flag, log)
		for _, file := range found {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), "  clusterServiceVersionNames:\n  - alpha.v1.0.0\n")
		}
	}
}
