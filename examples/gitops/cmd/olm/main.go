// SPDX-License-Identifier: Apache-2.0

// Command olm reads objects of a cluster from files or standard input, and writes
// what the library would create or change into a folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/gitops/olmgitops"
	"github.com/olmcore/olm/examples/internal/command"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

func main() { command.Main(run) }

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := command.New()
	flags.Files = true
	registries := registry.BindFlags(flags.FlagSet, false)
	folder := flags.String("out", "plan", "`FOLDER` to write to")
	complete := flags.Bool("complete", false, "the input is all there is: kinds that it has no objects of have none (else nothing is concluded from such kinds)")
	allResources := flags.Bool("all-resources", false, "the input has all custom resources: definitions that it has none of have none (else a plan that changes the schemas of one is refused)")
	ignoreAccounts := flags.Bool("ignore-accounts", false, "plan what must run as a ServiceAccount, too: it gets the rights of who applies the folder")
	o := &flags.Options
	flags.StringVar(&o.KubernetesVersion, "kubernetes-version", "v1.999.0", "`VERSION` of the cluster's API server")
	if err := flags.Parse(args, out); err != nil {
		return err
	}
	o.Live, o.Issuer = true, controllers.NoIssuer{} // no keys into a folder
	if flags.Judge {
		o.Judge = judge
	}
	objects, err := read(flags.Args(), in)
	if err != nil {
		return err
	}
	scopes := decode.Scopes(objects, *complete)
	if *allResources {
		scopes = append(scopes, scopesOf(objects)...)
	}
	observed, err := olmcore.NewSnapshot(objects, scopes...)
	if err != nil {
		return err
	}
	if err := flags.Check(ctx, observed, nil, command.Stderr); err != nil {
		return err
	}
	if err := readCatalogs(ctx, observed, flags, registries); err != nil {
		return err
	}
	plan := olmgitops.New(observed)
	plan.IgnoreAccounts = *ignoreAccounts
	set := controllers.New(o)
	if err := set.Only(flags.Only...); err != nil {
		return err
	}
	runners := set.Runners(observed, plan)
	for _, r := range runners {
		r.OnReport = func(report controller.Report) { fmt.Fprint(out, report) }
	}
	return errors.Join(controller.Pass(ctx, runners, time.Now), plan.Write(*folder))
}

// readCatalogs reads the content of all catalogs once. That there was a connection is no part of the plan.
func readCatalogs(ctx context.Context, observed *olmcore.Snapshot, flags *command.Flags, registries *registry.Flags) error {
	o := flags.Options
	clients, err := registries.Serve(&flags.Catalogs, &o, command.Stderr)
	if err != nil || clients == nil {
		return err
	}
	defer clients.Close()
	set := controllers.New(&o)
	if err := set.Only(controllers.Catalog); err != nil {
		return err
	}
	if err := controller.Pass(ctx, set.Runners(observed, olmgitops.New(observed)), time.Now); err != nil {
		return err
	}
	flags.Catalogs.Serve(&flags.Options)
	return clients.Wait(ctx)
}

func read(files []string, stdin io.Reader) ([]olmcore.Object, error) {
	if len(files) == 0 {
		found, err := decode.Read("stdin", stdin)
		if err != nil {
			return nil, err
		}
		return decode.Distinct(found)
	}
	var all []decode.Object
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		found, err := decode.Read(name, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return decode.Distinct(all)
}
