// SPDX-License-Identifier: Apache-2.0

// Command olm reconciles everything once, or every so often, on the cluster that
// --kubeconfig names, or in which it runs as a Pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/examples/internal/command"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore/controller"
)

func main() { command.Main(run) }

func run(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	flags := command.New()
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "`FILE` that names the cluster; empty inside of one")
	registries := registry.BindFlags(flags.FlagSet, true)
	validation := flags.FieldValidation()
	var every time.Duration
	flags.Func("every", "`DURATION` after which it runs again, such as 30s; without it once", func(value string) (err error) {
		if every, err = time.ParseDuration(value); err != nil || every < 0 {
			return errors.New("it must be a time, such as 30s")
		}
		return nil
	})
	if err := flags.Parse(args, out); err != nil {
		return err
	}
	clients, err := registries.Serve(&flags.Catalogs, &flags.Options, command.Stderr)
	if err != nil {
		return err
	}
	defer clients.Close()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return flags.NoCluster(err)
	}
	config.QPS, config.Burst = 100, 200
	cluster, err := olmdynamic.New(config)
	if err != nil {
		return err
	}
	cluster.FieldValidation, flags.Options.KubernetesVersion = *validation, cluster.Version
	if err := flags.Check(ctx, cluster, cluster.Allowed, command.Stderr); err != nil {
		return err
	}
	if flags.Judge {
		flags.Options.Judge = crvalidation.Live(cluster)
	}
	set := controllers.New(&flags.Options)
	if err := set.Only(flags.Only...); err != nil {
		return err
	}
	runners := set.Runners(cluster, cluster)
	for _, r := range runners {
		r.OnReport = func(report controller.Report) { fmt.Fprint(out, report) }
	}
	wake := make(chan struct{}, 1)
	if clients != nil {
		go clients.Watch(ctx, func(controller.Change) {
			select {
			case wake <- struct{}{}:
			default: // it is going to be looked at
			}
		})
	}
	return passes(ctx, runners, every, clients, wake)
}

// passes runs everything once, or every so often and when it is woken.
func passes(ctx context.Context, runners []*controller.Runner, every time.Duration, clients *registry.Clients, wake <-chan struct{}) error {
	for {
		err := controller.Pass(ctx, runners, time.Now)
		if every == 0 && clients != nil && err == nil {
			// Those that the pass connected to are read now.
			err = errors.Join(clients.Wait(ctx), controller.Pass(ctx, runners, time.Now))
		}
		if every == 0 || ctx.Err() != nil {
			return err
		}
		if err != nil {
			command.PrintError(command.Stderr, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(every):
		}
	}
}
