// SPDX-License-Identifier: Apache-2.0

// Command olm reconciles everything once, or every so often, on the cluster that
// --kubeconfig names, or in which it runs as a Pod.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmcore/olm/controllers"
	olmdynamic "github.com/olmcore/olm/examples/dynamic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("olm", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "`FILE` that names the cluster; empty inside of one")
	only := flags.String("only", "", "`CONTROLLERS` to run, such as catalog,csv; all when empty")
	every := flags.Duration("every", 0, "run again after this time; 0 runs once")
	var o controllers.Options
	var catalogs controllers.Catalogs
	flags.Var(&catalogs, "catalog", "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	flags.BoolVar(&o.Sweeps, "sweeps", false, "keep old InstallPlans in order, and look for what versions left behind")
	flags.BoolVar(&o.Operators, "operators", false, "keep the Operator objects")
	if err := flags.Parse(args); err != nil {
		return err
	}
	catalogs.Serve(&o)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	cluster, err := olmdynamic.New(config)
	if err != nil {
		return err
	}
	o.KubernetesVersion = cluster.Version
	runners := controllers.New(&o).Runners(cluster, cluster)
	if *only != "" {
		names := strings.Split(*only, ",")
		runners = slices.DeleteFunc(runners, func(r *controllers.Runner) bool { return !slices.Contains(names, r.Name) })
	}
	for _, r := range runners {
		r.Told = func(report controllers.Report) { fmt.Fprint(out, report) }
	}
	for {
		err := controllers.Pass(ctx, runners, time.Now)
		if *every == 0 || ctx.Err() != nil {
			return err
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(*every):
		}
	}
}
