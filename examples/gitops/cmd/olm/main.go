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
	"github.com/olmcore/olm/olmcore"
)

func main() {
	out := flag.String("out", "plan", "`FOLDER` to write to")
	version := flag.String("kubernetes-version", "v1.999.0", "`VERSION` of the cluster's API server")
	var catalogs controllers.Catalogs
	flag.Var(&catalogs, "catalog", "content of a CatalogSource, as `NAMESPACE/NAME=PATH` of a file-based catalog; may be repeated")
	flag.Parse()
	o := controllers.Options{KubernetesVersion: *version, Sweeps: true}
	if catalogs.Content != nil {
		o.GlobalNamespace, o.Resolve, o.CatalogsOf = catalogs.GlobalNamespace, catalogs.Resolve, catalogs.Known
	}
	if err := run(context.Background(), *out, &o, flag.Args(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, o *controllers.Options, files []string, stdin io.Reader, log io.Writer) error {
	objects, err := read(files, stdin)
	if err != nil {
		return err
	}
	cluster, err := olmcore.NewSnapshot(objects)
	if err != nil {
		return err
	}
	statuses := 0
	folder := &olmgitops.Folder{Dir: out, Skipped: func(a olmcore.Action) {
		if _, isStatus := a.(olmcore.UpdateStatus); isStatus {
			statuses++
			return
		}
		verb, target, cause := a.Describe()
		fmt.Fprintf(log, "not written: %s %s (%s)\n", verb, target, cause.Reason)
	}}
	var failed []error
	for _, c := range controllers.New(o).Controllers {
		keys, err := c.Keys(ctx, cluster)
		if err != nil {
			return err
		}
		for _, key := range keys {
			result, err := c.Reconcile(ctx, cluster, key, time.Now().UTC(), nil)
			if err == nil {
				err = olmcore.Run(ctx, folder, result.Actions)
			}
			for _, d := range result.Diagnostics {
				fmt.Fprintf(log, "%s %s: %s %s: %s\n", c.Name, key, d.Severity, d.Reason, d.Message)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", c.Name, key, err))
			}
		}
	}
	fmt.Fprintf(log, "%d updates of statuses are not written: they belong to the cluster\n", statuses)
	return errors.Join(failed...)
}

func read(files []string, stdin io.Reader) ([]olmcore.Object, error) {
	if len(files) == 0 {
		return olmgitops.Read(stdin)
	}
	var objects []olmcore.Object
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		found, err := olmgitops.Read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}
