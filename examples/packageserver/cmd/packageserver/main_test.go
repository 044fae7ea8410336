// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/packageserver"
	"github.com/olmcore/olm/subscription/resolution"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(broken, []byte("\x1f\x8bno gzip"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a flag that is none":       {[]string{"--nothing"}, "unknown flag: --nothing"},
		"an argument":               {[]string{"serve"}, `"serve" is no flag`},
		"a port that is none":       {[]string{"--secure-port=99999"}, "--secure-port 99999 must be between 1 and 65535"},
		"a catalog without a name":  {[]string{"--catalog=olm=/x"}, `--catalog: "olm=/x" is not NAMESPACE/NAME=PATH`},
		"a catalog that is nowhere": {[]string{"--catalog=olm/c=" + dir + "/none"}, "--catalog: stat " + dir + "/none: no such file or directory"},
		"a catalog that is broken":  {[]string{"--catalog=olm/c=" + broken}, "--catalog: " + broken + ": unexpected EOF"},
		"a kubeconfig that is none": {[]string{"--kubeconfig=" + dir + "/none", "--cert-dir=" + dir}, "stat " + dir + "/none: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), c.args), c.want)
		})
	}
}

// The manifests are what the API takes, nothing is misspelt, and the Pods' flags are known.
func TestTheManifests(t *testing.T) {
	folder := filepath.Join("..", "..", "config")
	text, err := os.ReadFile(filepath.Join(folder, "clusterserviceversion.yaml"))
	require.NoError(t, err)
	csv := &v1alpha1.ClusterServiceVersion{}
	require.NoError(t, yaml.UnmarshalStrict(text, csv))
	strategy := csv.Spec.InstallStrategy.StrategySpec
	require.Len(t, strategy.DeploymentSpecs, 1)
	for _, c := range strategy.DeploymentSpecs[0].Spec.Template.Spec.Containers {
		o, err := parse(c.Args)
		require.NoError(t, err)
		require.EqualValues(t, csv.Spec.APIServiceDefinitions.Owned[0].ContainerPort, o.serving.BindPort)
		// Where the library mounts the certificate.
		require.Equal(t, "apiserver.local.config/certificates", o.serving.ServerCert.CertDirectory)
		require.Equal(t, "apiserver", o.serving.ServerCert.PairName)
	}
	var kustomization struct{ Resources []string }
	text, err = os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &kustomization))
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(kustomization.Resources)+1, "each file is in the kustomization")
}

func TestTheImageHoldsTheProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	require.NoError(t, err)
	gomod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	for line := range strings.Lines(string(gomod)) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "go 1"); ok {
			require.Contains(t, string(text), fmt.Sprintf("FROM golang:1%s AS build\n", version))
		}
	}
	require.Contains(t, string(text), "-o /packageserver ./cmd/packageserver\n")
	require.Contains(t, string(text), "WORKDIR /\n", "certificates are looked for below it")
}

// oneBundle is a registry that sends one bundle, and its ClusterServiceVersion to who asks for it.
type oneBundle struct {
	api.UnimplementedRegistryServer
}

func (oneBundle) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	return stream.Send(&api.Bundle{CsvName: "etcd.v1", PackageName: "etcd", ChannelName: "stable", BundlePath: "i", Version: "1.0.0"})
}

func (oneBundle) GetPackage(context.Context, *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: "etcd", DefaultChannelName: "stable"}, nil
}

func (oneBundle) GetBundle(_ context.Context, r *api.GetBundleRequest) (*api.Bundle, error) {
	return &api.Bundle{CsvJson: `{"kind":"ClusterServiceVersion","spec":{"displayName":"` + r.GetPkgName() + " of " + r.GetChannelName() + `"}}`}, nil
}

// The registry of each CatalogSource is asked but of those that have a file, until it is gone.
func TestRegistriesAreAsked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, oneBundle{})
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	content := &packageserver.Content{GlobalNamespace: "olm"}
	file := types.NamespacedName{Namespace: "olm", Name: "file"}
	clients, err := ask(content, map[types.NamespacedName]*resolution.Catalog{file: {}})
	require.NoError(t, err)
	defer clients.Close()
	for _, name := range []string{"community", "file"} {
		source := &v1alpha1.CatalogSource{Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: l.Addr().String()}}
		source.Namespace, source.Name, source.UID = "olm", name, "u"
		content.Know(source)
		content.Changed(source)
	}
	require.NoError(t, clients.Wait(t.Context()))
	all := content.Packages("")
	require.Len(t, all, 1)
	require.Equal(t, "community", all[0].Status.CatalogSource)
	require.Equal(t, "etcd of stable", all[0].Head().CurrentCSVDesc.DisplayName)

	gone := &v1alpha1.CatalogSource{}
	gone.Namespace, gone.Name = "olm", "community"
	content.Changed(gone)
	require.Empty(t, content.Packages(""), "its content is dropped, whatever is known of the CatalogSource")
}
