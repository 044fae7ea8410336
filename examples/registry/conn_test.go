// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// readOver reads what a registry has to show, a head at a time.
func readOver(t testing.TB, r api.RegistryServer, o registry.Options) (shown packages.Catalog, said []olmcore.Diagnostic, err error) {
	connector, err := registry.NewConnector(o)
	require.NoError(t, err)
	conn, err := connector.Connect(listen(t, r).address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Ready(t.Context(), func(string) {}))
	require.Equal(t, 1, conn.Made())
	return shownOver(t, conn)
}

func connect(t testing.TB, r api.RegistryServer) *registry.Conn {
	connector, err := registry.NewConnector(registry.Options{})
	require.NoError(t, err)
	conn, err := connector.Connect(listen(t, r).address)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, conn.Ready(t.Context(), func(string) {}))
	return conn
}

func shownOver(t testing.TB, conn *registry.Conn) (shown packages.Catalog, said []olmcore.Diagnostic, err error) {
	var d packages.Describer
	problems, err := conn.Read(t.Context(), func(p registry.Package) error {
		pending := d.Begin(p.Package)
		for _, head := range pending.Heads() {
			b, err := p.Head(head.Channel, head.Name)
			if err != nil {
				return err
			}
			pending.Describe(b)
		}
		m, more := pending.End()
		shown.Packages, said = append(shown.Packages, *m), append(said, more...)
		return nil
	})
	return shown, append(problems, said...), err
}

// What is read of the real server head by head is what its catalog says.
func TestACatalogIsReadHeadByHead(t *testing.T) {
	list := append(offering("etcd", "1.0.0", "2.0.0"), offering("grafana", "3.0.0")...)
	for i := range list {
		list[i].Description = "A store."
		list[i].Icon = v1alpha1.Icon{Data: "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=", MediaType: "image/svg+xml"}
		for j := range list[i].Bundles {
			b := &list[i].Bundles[j]
			b.Properties = append(b.Properties, property(resolution.PropertyCSVMetadata, map[string]any{
				"displayName": b.Name, "installModes": []map[string]any{{"type": "OwnNamespace", "supported": true}}, "annotations": map[string]string{"a": "b"}}))
		}
	}
	list[0].Channels = append(list[0].Channels, resolution.Channel{Name: "old", Entries: list[0].Channels[0].Entries[:1]})
	list[0].Deprecations = []resolution.Deprecation{{Channel: "old", Message: "too old"}, {Bundle: "etcd.v1.0.0", Message: "broken"}}
	want, _ := packages.Describe(nil, list)
	got, said, err := readOver(t, real(t, list), registry.Options{})
	require.NoError(t, err)
	require.Empty(t, said)
	require.Equal(t, want, got.WithSource(nil))
}

// answers is a registry that answers a question for a head with an error.
type answers struct {
	*script
	err   error
	times atomic.Int32
}

func (a *answers) GetBundle(context.Context, *api.GetBundleRequest) (*api.Bundle, error) {
	a.times.Add(1)
	return nil, a.err
}

// A head that the registry says twice not to have is shown without a description, as each is where it has no such
// question; one that it cannot send just now ends reading.
func TestHeadsThatAreNotSentNow(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		times int // how often it is read until it is shown, 0: never
	}{
		"no such question":             {status.Error(codes.Unimplemented, "no"), 1},
		"not there":                    {status.Error(codes.NotFound, "no"), 2},
		"not there, in its words":      {fmt.Errorf(`package "etcd", channel "stable", bundle "etcd.v1.0.0" not found`), 2},
		"not there, in an older one's": {fmt.Errorf("no entry found for etcd stable etcd.v1.0.0"), 2},
		"no files are left":            {fmt.Errorf("too many open files"), 0},
		"another one is not there":     {fmt.Errorf(`package "other" not found`), 0},
		"broken":                       {status.Error(codes.Internal, "no"), 0},
		"busy":                         {status.Error(codes.ResourceExhausted, "no"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, &answers{script: sends(etcd(1)), err: test.err})
			for time := range 3 {
				shown, _, err := shownOver(t, conn)
				if test.times == 0 || time+1 < test.times {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, "1.0.0", shown.Packages[0].Head().CurrentCSVDesc.Version)
			}
		})
	}
}

// Limits are those of Options, and their errors stay; what the caller's function says ends reading.
func TestLimitsOfReadingHeadByHead(t *testing.T) {
	for want, o := range map[string]registry.Options{"larger than 10 bytes": {MaxBytes: 10}, "more than 1 bundles": {MaxBundles: 1}} {
		_, _, err := readOver(t, sends(etcd(1), etcd(2)), o)
		text, final := registry.Problem(err)
		require.Contains(t, text, want)
		require.True(t, final)
	}
	connector, err := registry.NewConnector(registry.Options{})
	require.NoError(t, err)
	conn, err := connector.Connect(listen(t, sends(etcd(1))).address)
	require.NoError(t, err)
	defer conn.Close()
	mine := errors.New("mine")
	_, err = conn.Read(t.Context(), func(registry.Package) error { return mine })
	require.ErrorIs(t, err, mine)
	_, final := registry.Problem(mine)
	require.False(t, final)
}

// A connection that ends is told, and one that cannot be made.
func TestLosingAConnection(t *testing.T) {
	server := listen(t, sends(etcd(1)))
	connector, err := registry.NewConnector(registry.Options{})
	require.NoError(t, err)
	conn, err := connector.Connect(server.address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Ready(t.Context(), func(string) {}))
	server.Stop()
	require.NoError(t, conn.Lost(t.Context(), 1))
	ctx, cancel := context.WithCancel(t.Context())
	var problem string
	require.ErrorIs(t, conn.Ready(ctx, func(text string) {
		problem = text
		cancel()
	}), context.Canceled)
	require.Contains(t, problem, "connection refused")
	require.ErrorIs(t, conn.Lost(ctx, conn.Made()), context.Canceled)
}

// The flags of commands are those of a Connector, too.
func TestAConnectorOfFlags(t *testing.T) {
	for args, isThere := range map[string]bool{"": true, "--registries=false": false} {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		f := registry.BindFlags(set, true)
		require.NoError(t, set.Parse(strings.Fields(args)))
		connector, err := f.Connector()
		require.NoError(t, err)
		require.Equal(t, isThere, connector != nil)
	}
	_, err := registry.NewConnector(registry.Options{MaxBytes: -1})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}
