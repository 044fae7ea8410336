// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// served is a server on loopback.
type served struct {
	*grpc.Server
	address string
	// reads counts the streams of bundles that were begun.
	reads atomic.Int32
}

// listen serves a registry until the test ends or it is stopped.
func listen(t testing.TB, registry api.RegistryServer) *served {
	s := &served{}
	s.Server = grpc.NewServer(grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		s.reads.Add(1)
		return next(srv, stream)
	}))
	if registry != nil {
		api.RegisterRegistryServer(s.Server, registry)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = l.Addr().String()
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return s
}

// real is operator-registry's server and cache over a file-based catalog.
func real(t testing.TB, packages []resolution.Package) api.RegistryServer {
	var text bytes.Buffer
	require.NoError(t, fbc.Write(&text, packages))
	registry, err := realOf(t, text.Bytes())
	require.NoError(t, err)
	return registry
}

// realOf is real; the error is of a catalog that operator-registry refuses.
func realOf(t testing.TB, text []byte) (api.RegistryServer, error) {
	store, err := cache.New(t.TempDir(), cache.WithFormat(cache.FormatJSON))
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	if err := cache.LoadOrRebuild(context.Background(), store, fstest.MapFS{"catalog.json": {Data: text}}); err != nil {
		return nil, err
	}
	return server.NewRegistryServer(store), nil
}

func property(kind string, value any) olmcore.Property {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return olmcore.Property{Type: kind, Value: bytes.TrimSpace(text.Bytes())}
}

func versionOf(pkg, version string) olmcore.Property {
	return property(resolution.PropertyPackage, map[string]string{"packageName": pkg, "version": version})
}

func bundle(pkg, version string, more ...olmcore.Property) resolution.Bundle {
	return resolution.Bundle{Name: pkg + ".v" + version, Bundle: olmcore.Bundle{
		Image: "example.com/" + pkg + ":" + version, Properties: append([]olmcore.Property{versionOf(pkg, version)}, more...),
	}}
}

// offering is a catalog with a chain of versions of one package.
func offering(pkg string, versions ...string) []resolution.Package {
	p := resolution.Package{Name: pkg, DefaultChannel: "stable", Channels: []resolution.Channel{{Name: "stable"}}}
	before := ""
	for _, version := range versions {
		b := bundle(pkg, version)
		p.Bundles = append(p.Bundles, b)
		p.Channels[0].Entries = append(p.Channels[0].Entries, resolution.ChannelEntry{Name: b.Name, Replaces: before})
		before = b.Name
	}
	return []resolution.Package{p}
}

// script is a registry that says what a test wants.
type script struct {
	api.UnimplementedRegistryServer
	bundles func(send func(*api.Bundle) error, ctx context.Context) error
	pkg     func(name string) (*api.Package, error)
}

func (s *script) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	return s.bundles(stream.Send, stream.Context())
}

func (s *script) GetPackage(_ context.Context, request *api.GetPackageRequest) (*api.Package, error) {
	if s.pkg == nil {
		return &api.Package{Name: request.GetName(), DefaultChannelName: "stable"}, nil
	}
	return s.pkg(request.GetName())
}

// sends is a registry that sends bundles, and then ends.
func sends(bundles ...*api.Bundle) *script {
	return &script{bundles: func(send func(*api.Bundle) error, _ context.Context) error {
		for _, b := range bundles {
			if err := send(b); err != nil {
				return err
			}
		}
		return nil
	}}
}

// etcd is the i-th version of a package as a server sends it.
func etcd(i int) *api.Bundle {
	version := fmt.Sprintf("%d.0.0", i)
	return &api.Bundle{
		CsvName: "etcd.v" + version, PackageName: "etcd", ChannelName: "stable", BundlePath: "example.com/etcd:" + version, Version: version,
		Properties: []*api.Property{{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":"etcd","version":%q}`, version)}},
	}
}
