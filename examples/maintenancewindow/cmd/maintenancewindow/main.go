// SPDX-License-Identifier: Apache-2.0

// Command maintenancewindow runs OLM's controllers and that of MaintenanceWindows, on the cluster of KUBECONFIG or its Pod's.
package main

import (
	"context"
	"log"
	_ "time/tzdata" // time zones, also in an image without them

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/maintenancewindow"
)

func main() {
	m := ctrl.Options{LeaderElection: true, LeaderElectionID: "maintenancewindow", LeaderElectionNamespace: "olm"}
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), m); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config, m ctrl.Options) error {
	mgr, err := olmruntime.New(config, m, olmruntime.Options{Options: controllers.Options{Sweeps: true, Operators: true}})
	if err == nil {
		err = mgr.AddController(maintenancewindow.Controller(), maintenancewindow.Watched...)
	}
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
