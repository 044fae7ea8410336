// SPDX-License-Identifier: Apache-2.0

package olmcommand_test

import (
	"context"
	"fmt"
	"os"

	"github.com/olmcore/olm/examples/controllerruntime/olmcommand"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/olmcore/controller"
)

// The command with a controller of yours in it, its flags, checks and metrics included.
func ExampleMain() {
	_ = func(yours controller.Controller) { // func main()
		olmcommand.Main(func(m *olmruntime.Manager) error { return m.AddController(yours) })
	}
}

// What is wrong with the arguments is said before anything is connected to.
func ExampleRun() {
	err := olmcommand.Run(context.Background(), []string{"--only", "catalogs"}, os.Stdout)
	fmt.Println(err)
	// Output:
	// --only: "catalogs" is no controller: did you mean "catalog"? There are catalog, subscription, installplan, group, csv, condition, copies, olmconfig, permissions, sweep, csvsweep, operator
}
