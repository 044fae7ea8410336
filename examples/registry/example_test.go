// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/registry"
)

// The content of catalogs comes from their registries. Whatever runs the controllers of these options resolves with it.
func ExampleNew() {
	var options controllers.Options
	catalogs := controllers.Catalogs{GlobalNamespace: "olm"}
	clients, err := registry.New(registry.Options{Catalogs: &catalogs})
	if err != nil {
		panic(err)
	}
	defer clients.Close()
	clients.Serve(&options)
	fmt.Println("resolves:", options.Resolve != nil, "connects:", options.Connection != nil)
	// Output:
	// resolves: true connects: true
}

// Of a message an administrator can make use of.
func ExampleProblem() {
	fmt.Println(registry.Problem(status.Error(codes.Unimplemented, "unknown service api.Registry")))
	// Output:
	// the registry answers Unimplemented: unknown service api.Registry false
}
