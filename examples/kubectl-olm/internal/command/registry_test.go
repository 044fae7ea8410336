// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"net"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// registryServer serves two versions of package backup.
type registryServer struct {
	api.UnimplementedRegistryServer
}

func (registryServer) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	for _, b := range []*api.Bundle{
		{CsvName: "backup.v1.0.0", PackageName: "backup", ChannelName: "stable", Version: "1.0.0", BundlePath: "registry.example.com/backup:1"},
		{CsvName: "backup.v5.0.0", PackageName: "backup", ChannelName: "stable", Version: "5.0.0", BundlePath: "registry.example.com/backup:5", Replaces: "backup.v1.0.0"},
	} {
		b.Properties = []*api.Property{{Type: "olm.package", Value: `{"packageName":"backup","version":"` + b.Version + `"}`}}
		if err := stream.Send(b); err != nil {
			return err
		}
	}
	return nil
}

func (registryServer) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	if r.Name != "backup" {
		return nil, status.Error(codes.NotFound, "there is no such package")
	}
	return &api.Package{Name: "backup", DefaultChannelName: "stable", Channels: []*api.Channel{{Name: "stable", CsvName: "backup.v5.0.0"}}}, nil
}

// serveRegistry returns the address of a registry.
func serveRegistry(t *testing.T) string {
	s := grpc.NewServer()
	api.RegisterRegistryServer(s, registryServer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// TestContentComesFromARegistry, as kubectl port-forward shows it.
func TestContentComesFromARegistry(t *testing.T) {
	address := "olm/community=" + serveRegistry(t)
	code, out, errs := run(t, "", "catalog", "--registry", address)
	require.Zero(t, code, errs)
	require.Equal(t, "CATALOG         PACKAGE   DEFAULT-CHANNEL   HEAD            VERSION   CHANNELS   DEPRECATED\n"+
		"olm/community   backup    stable            backup.v5.0.0   5.0.0     stable     -\n", out)
	code, out, errs = run(t, "", "catalog", "backup", "--registry", address, "-o", "mermaid")
	require.Zero(t, code, errs)
	require.Contains(t, out, "g0n1 --> g0n0")

	_, flags := live(t, objectsOf(t, worldFile)...)
	code, out, errs = run(t, "", append([]string{"path", "backup", "-n", "tools", "--registry", address}, flags...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "1. backup.v5.0.0 from channel stable of catalog olm/community replacing backup.v1.0.0 for backup\n")
	code, out, errs = run(t, "", append([]string{"next", "-n", "tools", "-o", "json", "--registry", address}, flags...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, `"target": "backup.v5.0.0"`)
	require.NotContains(t, out, `"notRead"`, "of the namespace all was read")
}

// TestAnAddressOfACatalogSourceIsDialledWithinTheClusterAlone: from outside of it, who writes a CatalogSource would
// choose what an administrator connects to.
func TestAnAddressOfACatalogSourceIsDialledWithinTheClusterAlone(t *testing.T) {
	objects := objectsOf(t, worldFile)
	address := serveRegistry(t)
	s, flags := live(t, objects...)
	s.Stored = func(o map[string]any) {
		if o["kind"] == "CatalogSource" {
			o["status"].(map[string]any)["connectionState"].(map[string]any)["address"] = address
		}
	}
	args := append([]string{"path", "backup", "-n", "tools"}, flags...)
	code, _, errs := run(t, "", args...)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "error: the content of no catalog is known")

	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	code, out, errs := run(t, "", args...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "backup.v5.0.0")
}
