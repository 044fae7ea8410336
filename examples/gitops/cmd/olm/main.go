// SPDX-License-Identifier: Apache-2.0

// Command olm reads objects of a cluster from files or standard input, and writes
// what the library would create or change into a folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/olmcore/olm/controllers"
	olmgitops "github.com/olmcore/olm/examples/gitops"
	"github.com/olmcore/olm/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

func main() {
	out := flag.String("out", "plan", "`FOLDER` to write to")
	version := flag.String("kubernetes-version", "v1.999.0", "`VERSION` of the cluster's API server")
	complete := flag.Bool("complete", false, "the input is all there is: kinds that it has no objects of have none (else nothing is concluded from such kinds)")
	ignoreAccounts := flag.Bool("ignore-accounts", false, "plan what must run as a ServiceAccount, too: it gets the rights of who applies the folder")
	var catalogs controllers.Catalogs
	flag.Var(&catalogs, "catalog", "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	flag.Parse()
	o := controllers.Options{KubernetesVersion: *version, Sweeps: true, Live: true, Issuer: controllers.NoIssuer{}} // no keys into a folder
	catalogs.Serve(&o)
	if err := run(context.Background(), *out, *complete, *ignoreAccounts, &o, flag.Args(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, complete, ignoreAccounts bool, o *controllers.Options, files []string, stdin io.Reader, log io.Writer) error {
	objects, err := read(files, stdin)
	if err != nil {
		return err
	}
	observed, err := olmcore.NewSnapshot(objects, manifest.Scopes(objects, complete)...)
	if err != nil {
		return err
	}
	plan := olmgitops.New(observed)
	plan.IgnoreAccounts = ignoreAccounts
	runners := controllers.New(o).Runners(observed, plan)
	for _, r := range runners {
		r.Told = func(report controllers.Report) { fmt.Fprint(log, report) }
	}
	return errors.Join(controllers.Pass(ctx, runners, time.Now), plan.Write(out))
}

func read(files []string, stdin io.Reader) ([]olmcore.Object, error) {
	if len(files) == 0 {
		found, err := manifest.Read("stdin", stdin)
		if err != nil {
			return nil, err
		}
		return manifest.Distinct(found)
	}
	var all []manifest.Object
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		found, err := manifest.Read(name, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return manifest.Distinct(all)
}
