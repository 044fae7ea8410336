// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"testing"

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

// described returns what Described gets of a registry, and what is known of the connection then.
func described(t testing.TB, r api.RegistryServer) ([]resolution.Package, *catalog.Connection) {
	var list []resolution.Package
	catalogs := &controllers.Catalogs{}
	clients, err := registry.New(registry.Options{Catalogs: catalogs, Described: func(key types.NamespacedName, read []resolution.Package) {
		require.Equal(t, types.NamespacedName{Namespace: "olm", Name: "community"}, key)
		list = read
	}})
	require.NoError(t, err)
	defer clients.Close()
	source := &v1alpha1.CatalogSource{}
	source.Namespace, source.Name, source.UID = "olm", "community", "u"
	address := listen(t, r).address
	clients.Connection(catalog.Input{CatalogSource: source}, address)
	require.NoError(t, clients.Wait(t.Context()))
	return list, clients.Connection(catalog.Input{CatalogSource: source}, address)
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
	read, _ := described(t, real(t, list))
	want, _ := packages.Describe(nil, list)
	got, _ := packages.Describe(nil, read)
	require.Len(t, got.Packages, 1)
	require.Equal(t, "etcd.v2.0.0", got.Packages[0].Head().CurrentCSVDesc.DisplayName)
	require.Equal(t, want, got)
}

// answers is a registry that answers a question for a head with an error.
type answers struct {
	*script
	code codes.Code
}

func (a *answers) GetBundle(context.Context, *api.GetBundleRequest) (*api.Bundle, error) {
	return nil, status.Error(a.code, "no")
}

// A head that the registry does not know is not described; one that it cannot send just now is asked for again.
func TestHeadsThatAreNotSent(t *testing.T) {
	for code, state := range map[codes.Code]string{
		codes.Unimplemented: "READY", codes.Unknown: "READY", codes.NotFound: "READY", codes.Internal: "TRANSIENT_FAILURE", codes.ResourceExhausted: "TRANSIENT_FAILURE",
	} {
		read, connection := described(t, &answers{sends(etcd(1)), code})
		require.Equal(t, state, connection.State, code)
		require.Equal(t, state == "READY", len(read) == 1, code)
	}
}
