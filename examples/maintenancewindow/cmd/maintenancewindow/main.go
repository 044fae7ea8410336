// SPDX-License-Identifier: Apache-2.0

// Command maintenancewindow is the command olm, with all its flags, and the controller of MaintenanceWindows beside
// OLM's.
package main

import (
	_ "time/tzdata" // time zones, also in an image without them

	"github.com/olmcore/olm/examples/controllerruntime/olmcommand"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/maintenancewindow"
)

func main() { olmcommand.Main(add) }

func add(m *olmruntime.Manager) error {
	return m.AddController(maintenancewindow.Controller(), maintenancewindow.Watched...)
}
