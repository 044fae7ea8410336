// SPDX-License-Identifier: Apache-2.0

// Command olm runs the library on the cluster that KUBECONFIG or --kubeconfig names, or in which it runs as a Pod.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/olmcore/olm/controllers"
	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/olmcore"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o controllers.Options
	var m ctrl.Options
	var catalogs controllers.Catalogs
	var namespaces, validation string
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.StringVar(&namespaces, "namespaces", "", "`NAMESPACES` to take care of, separated by commas; all when empty")
	flag.Var(&catalogs, "catalog", "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	flag.StringVar(&o.GlobalNamespace, "global-catalog-namespace", controllers.DefaultGlobalNamespace, "`NAMESPACE` whose CatalogSources all namespaces see")
	flag.DurationVar(&o.Catalog.NodeUnreachableGrace, "node-unreachable-grace", 0, "how long a node may be silent before its registry Pods are replaced (default 30s)")
	flag.DurationVar(&o.Catalog.NodeNotReadyGrace, "node-not-ready-grace", 0, "how long a node may be not ready before its registry Pods are replaced (default 1m)")
	flag.IntVar(&o.Catalog.Replicas, "catalog-replicas", 1, "registry Pods of each CatalogSource, 1 to 5")
	flag.StringVar(&o.InstallPlan.OPMImage, "opm-image", "", "`IMAGE` of opm, to unpack bundle images with; without it none is unpacked")
	flag.StringVar(&o.InstallPlan.UtilImage, "util-image", "", "`IMAGE` with the copy program that unpacking needs")
	flag.BoolVar(&o.Sweeps, "sweeps", true, "keep old InstallPlans in order, and look for what versions left behind")
	flag.BoolVar(&o.Operators, "operators", true, "keep the Operator objects")
	flag.StringVar(&validation, "field-validation", "", "Ignore, Warn or Strict, for what is written")
	flag.BoolVar(&m.LeaderElection, "leader-elect", false, "let one of several managers of the same namespaces work")
	flag.StringVar(&m.LeaderElectionNamespace, "leader-election-namespace", "olm", "`NAMESPACE` of the Lease")
	flag.StringVar(&m.Metrics.BindAddress, "metrics-bind-address", "0", "address of the metrics, such as :8080; 0 serves none")
	flag.StringVar(&m.HealthProbeBindAddress, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0 serves none")
	if err := flag.CommandLine.Parse(args); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if namespaces != "" {
		o.Namespaces = strings.Split(namespaces, ",")
	}
	catalogs.Serve(&o)
	m.LeaderElectionID = "olm-" + olmcore.NameSuffix(10, o.Namespaces...)
	m.LeaderElectionReleaseOnCancel = true
	m.GracefulShutdownTimeout = new(10 * time.Second)

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	mgr, err := olmruntime.New(config, m, o, nil)
	if err != nil {
		return err
	}
	mgr.FieldValidation = validation
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
