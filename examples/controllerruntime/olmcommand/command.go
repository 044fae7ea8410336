// SPDX-License-Identifier: Apache-2.0

// Package olmcommand is the command olm, to which programs add controllers of their own: its flags, the checks before
// it starts, the content of catalogs from their registries, metrics, probes and the election of one of several.
package olmcommand

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/examples/internal/command"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
)

// Main runs the command with the arguments of the process until it is told to end, and exits: with 0, or with 1 and
// what is wrong on stderr. Each add is called with the manager before that starts.
func Main(add ...func(*olmruntime.Manager) error) {
	command.Main(func(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
		return Run(ctx, args, out, add...)
	})
}

// Run is Main without the process: it returns when ctx ends, nil then, or with what is wrong. The answers to --help and
// --version are written to out; the error after these says no more than that it is done.
func Run(ctx context.Context, args []string, out io.Writer, add ...func(*olmruntime.Manager) error) error {
	var m ctrl.Options
	var logging zap.Options
	flags := command.New()
	config.RegisterFlags(flags.FlagSet)
	logging.BindFlags(flags.FlagSet)
	registries := registry.BindFlags(flags.FlagSet, true)
	validation := flags.FieldValidation()
	flags.IntVar(&m.Controller.MaxConcurrentReconciles, "workers", 4, "how many keys each controller reconciles at a time")
	flags.BoolVar(&m.LeaderElection, "leader-elect", false, "let one of several managers of the same namespaces and controllers work")
	flags.StringVar(&m.LeaderElectionNamespace, "leader-election-namespace", "olm", "`NAMESPACE` of the Lease")
	flags.StringVar(&m.Metrics.BindAddress, "metrics-bind-address", "0", "address of the metrics, such as :8080; 0 serves none")
	flags.StringVar(&m.HealthProbeBindAddress, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0 serves none")
	if err := flags.Parse(args, out); err != nil {
		return err
	}
	clients, err := registries.Serve(&flags.Catalogs, &flags.Options, command.Stderr)
	if err != nil {
		return err
	}
	defer clients.Close()
	m.LeaderElectionID = "olm-" + olmcore.NameSuffix(10, slices.Concat(flags.Options.Namespaces, flags.Only)...)
	m.LeaderElectionReleaseOnCancel = true
	m.GracefulShutdownTimeout = new(10 * time.Second)

	config, err := ctrl.GetConfig()
	if err != nil {
		return flags.NoCluster(err)
	}
	// Set the logger after GetConfig, which would otherwise log its error too, with a stack trace.
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging), zap.WriteTo(command.Stderr)))
	config.QPS, config.Burst = 100, 200
	cluster, err := olmdynamic.New(config)
	if err != nil {
		return err
	}
	flags.Options.KubernetesVersion = cluster.Version
	if err := flags.Check(ctx, cluster, cluster.Allowed, command.Stderr); err != nil {
		return err
	}
	exported := metrics.New(&flags.Options, flags.Only...)
	exported.Catalogs = &flags.Catalogs
	config.WarningHandlerWithContext = warnings{rest.WarningLogger{}, exported}
	o := olmruntime.Options{Options: flags.Options, SkipJudge: !flags.Judge, FieldValidation: *validation, OnReport: exported.OnReport}
	mgr, err := olmruntime.New(config, m, o, flags.Only...)
	if err != nil {
		return err
	}
	if err := errors.Join(export(mgr, exported), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", mgr.Ready)); err != nil {
		return err
	}
	for _, add := range add {
		if err := add(mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}
