// SPDX-License-Identifier: Apache-2.0

package registries_test

import (
	"context"
	"fmt"

	"github.com/olmcore/olm/examples/packageserver"
	"github.com/olmcore/olm/examples/packageserver/registries"
	"github.com/olmcore/olm/examples/registry"
)

// A packageserver that reads the registries of the CatalogSources it knows of.
func ExampleNew() {
	connector, err := registry.NewConnector(registry.Options{})
	if err != nil {
		panic(err)
	}
	content := &packageserver.Content{GlobalNamespace: "olm"}
	r, err := registries.New(registries.Options{
		Connector: connector, Put: content.PutCatalog, Drop: content.Drop, GlobalNamespace: "olm",
	})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	content.Changed = r.Know
	fmt.Println("unread:", r.Wait(context.Background()))
	// Output:
	// unread: []
}
