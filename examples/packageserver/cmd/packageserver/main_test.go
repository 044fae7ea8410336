// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
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
		"a room that is none":       {[]string{"--shown-max-bytes=0"}, "--shown-max-bytes must be more than 0"},
		"a limit that is none":      {[]string{"--registry-max-bytes=-1"}, "has a negative limit"},
		"a catalog without a name":  {[]string{"--catalog=olm=/x"}, `--catalog: "olm=/x" is not NAMESPACE/NAME=PATH`},
		"a catalog that is nowhere": {[]string{"--catalog=olm/c=" + dir + "/none"}, "--catalog: stat " + dir + "/none: no such file or directory"},
		"a catalog that is broken":  {[]string{"--catalog=olm/c=" + broken}, "--catalog: " + broken + ": unexpected EOF"},
		"a kubeconfig that is none": {[]string{"--kubeconfig=" + dir + "/none", "--cert-dir=" + dir}, "stat " + dir + "/none: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), c.args, io.Discard), c.want)
		})
	}
}

// Help is an answer, and no error.
func TestHelpListsTheFlags(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"--help"}, &out))
	for _, flag := range []string{"--kubeconfig", "--secure-port", "--registries", "--registry-max-bytes", "--registry-max-namespace-bytes", "--registry-max-bundles", "--registry-timeout", "--shown-max-bytes"} {
		require.Contains(t, out.String(), flag)
	}
	require.NotContains(t, out.String(), "help requested")
}

// The limits that problems name are flags, and count.
func TestTheLimitsOfRegistriesAreFlags(t *testing.T) {
	o, err := parse([]string{"--registry-max-bytes=10"}, io.Discard)
	require.NoError(t, err)
	asked, err := ask(o, &packageserver.Content{}, nil)
	require.NoError(t, err)
	defer asked.Close()
	asked.Know(sourceAt("olm", "a", registryOf(t, oneBundle{})))
	require.Equal(t, []string{"olm/a: the catalog is larger than 10 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less"}, asked.Wait(t.Context()))
	o, err = parse([]string{"--registries=false"}, io.Discard)
	require.NoError(t, err)
	asked, err = ask(o, &packageserver.Content{}, nil)
	require.NoError(t, err)
	require.Nil(t, asked)
	require.Empty(t, asked.Wait(t.Context()))
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
		o, err := parse(c.Args, io.Discard)
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

// registryOf serves a registry, and returns its address.
func registryOf(t testing.TB, r api.RegistryServer) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func sourceAt(namespace, name, address string) *v1alpha1.CatalogSource {
	source := &v1alpha1.CatalogSource{Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: address}}
	source.Namespace, source.Name, source.UID = namespace, name, "u"
	return source
}

// The registry of each CatalogSource is asked but of those that have a file, until it is gone.
func TestRegistriesAreAsked(t *testing.T) {
	address := registryOf(t, oneBundle{})
	content := &packageserver.Content{GlobalNamespace: "olm"}
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	asked, err := ask(o, content, map[types.NamespacedName]bool{{Namespace: "olm", Name: "file"}: true})
	require.NoError(t, err)
	defer asked.Close()
	for _, name := range []string{"community", "file"} {
		source := sourceAt("olm", name, address)
		content.Know(source)
		content.Changed(source)
	}
	require.Empty(t, asked.Wait(t.Context()))
	all := content.Packages("")
	require.Len(t, all, 1)
	require.Equal(t, "community", all[0].Status.CatalogSource)
	require.Equal(t, "etcd of stable", all[0].Head().CurrentCSVDesc.DisplayName)

	gone := &v1alpha1.CatalogSource{}
	gone.Namespace, gone.Name = "olm", "community"
	content.Changed(gone)
	require.Empty(t, content.Packages(""), "its content is dropped, whatever is known of the CatalogSource")
}
