// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// described returns what Described gets of a registry, and what is known of the connection when it is READY, or failed for
// the first time where it is not to become READY.
func described(t testing.TB, r api.RegistryServer, ready bool) ([]resolution.Package, *catalog.Connection) {
	got := make(chan []resolution.Package, 1)
	catalogs := &controllers.Catalogs{}
	clients, err := registry.New(registry.WithoutGrace(registry.Options{Catalogs: catalogs, Described: func(key types.NamespacedName, read []resolution.Package) {
		require.Equal(t, types.NamespacedName{Namespace: "olm", Name: "community"}, key)
		got <- read
	}}))
	require.NoError(t, err)
	defer within(t, clients.Close)
	source := &v1alpha1.CatalogSource{}
	source.Namespace, source.Name, source.UID = "olm", "community", "u"
	address := listen(t, r).address
	connection := func() *catalog.Connection { return clients.Connection(catalog.Input{CatalogSource: source}, address) }
	connection()
	if !ready {
		require.Eventually(t, func() bool { return connection().State == "TRANSIENT_FAILURE" }, testDeadline, time.Millisecond)
		return nil, connection()
	}
	require.Eventually(t, func() bool { return connection().State == "READY" }, testDeadline, time.Millisecond)
	return <-got, connection()
}

// What people are shown of the real server is what its catalog says of the heads, with the icon of the package.
func TestHeadsAreDescribed(t *testing.T) {
	list := offering("etcd", "1.0.0", "2.0.0")
	list[0].Description = "A store."
	list[0].Icon = v1alpha1.Icon{Data: "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=", MediaType: "image/svg+xml"}
	for i := range list[0].Bundles {
		b := &list[0].Bundles[i]
		b.Properties = append(b.Properties, property(resolution.PropertyCSVMetadata, map[string]any{
			"displayName": b.Name, "installModes": []map[string]any{{"type": "OwnNamespace", "supported": true}}, "annotations": map[string]string{"a": "b"}}))
	}
	read, _ := described(t, real(t, list), true)
	want, _ := packages.Describe(nil, list)
	got, _ := packages.Describe(nil, read)
	require.Len(t, got.Packages, 1)
	require.Equal(t, "etcd.v2.0.0", got.Packages[0].Head().CurrentCSVDesc.DisplayName)
	require.Equal(t, want, got)
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

// A head that the registry says twice not to have is not described, neither any where it has no such question; one that it
// cannot send just now is asked for again.
func TestHeadsThatAreNotSent(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		ready bool
		times int32
	}{
		"no such question":             {status.Error(codes.Unimplemented, "no"), true, 1},
		"not there":                    {status.Error(codes.NotFound, "no"), true, 2},
		"not there, in its words":      {fmt.Errorf(`package "etcd", channel "stable", bundle "etcd.v1.0.0" not found`), true, 2},
		"not there, in an older one's": {fmt.Errorf("no entry found for etcd stable etcd.v1.0.0"), true, 2},
		"no files are left":            {fmt.Errorf("too many open files"), false, 1},
		"another one is not there":     {fmt.Errorf(`package "other" not found`), false, 1},
		"broken":                       {status.Error(codes.Internal, "no"), false, 1},
		"busy":                         {status.Error(codes.ResourceExhausted, "no"), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{script: sends(etcd(1)), err: test.err}
			read, _ := described(t, a, test.ready)
			require.Equal(t, test.ready, len(read) == 1)
			require.GreaterOrEqual(t, a.times.Load(), test.times)
		})
	}
}
