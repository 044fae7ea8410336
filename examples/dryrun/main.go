// SPDX-License-Identifier: Apache-2.0

// Command dryrun reads Kubernetes objects and prints what OLM's semantics would
// do about them, and why. It changes nothing and talks to no cluster.
//
//	go run ./examples/dryrun --complete cluster.yaml
//	go run ./examples/dryrun --settle --output json world.yaml
//
// --help prints the kubectl command that writes such a cluster.yaml.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore/decode"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now()))
}

// Exit codes.
const (
	exitOK       = 0
	exitInternal = 1
	exitUsage    = 2
)

type options struct {
	dryrun.Options
	now    time.Time
	output string
	// complete: kinds of which the input has no objects have none.
	complete bool
	files    []string
}

// run is main with the world as arguments.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, clock time.Time) int {
	o, err := parse(args, stderr, clock)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	objects, err := dryrun.Read(o.files, stdin)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	cluster, err := dryrun.Load(objects, o.now)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	// The cluster has its own objects; both together are large.
	scopes, spellings := dryrun.Scopes(objects, o.complete, o.Catalogs), dryrun.Spellings(objects)
	r, err := dryrun.Run(context.Background(), cluster, scopes, o.Options)
	if err != nil {
		return fail(stderr, err, exitInternal)
	}
	if o.Catalogs.Path != "" && !o.Catalogs.Asked {
		return fail(stderr, fmt.Errorf("--path %q names no Subscription of the input that is resolved", o.Catalogs.Path), exitUsage)
	}
	r.Input, r.Help = spellings, "Add them (--help prints the whole kubectl command), or say --complete if the cluster has none."
	if err := dryrun.Printers[o.output](stdout, r); err != nil {
		return fail(stderr, err, exitInternal)
	}
	return exitOK
}

func fail(stderr io.Writer, err error, code int) int {
	fmt.Fprintln(stderr, "dryrun:", printable.OneLine(err.Error()))
	return code
}

const usage = `usage: dryrun [flags] [FILE...]
Reads Kubernetes YAML or JSON (stdin without FILE), prints what OLM's semantics would do
about it and why, and changes nothing. For a whole cluster:

  %s > cluster.yaml
  dryrun --complete cluster.yaml

`

func parse(args []string, stderr io.Writer, clock time.Time) (options, error) {
	o := options{now: clock, Options: dryrun.Options{Catalogs: &dryrun.Catalogs{}}}
	flags := flag.NewFlagSet("dryrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	now := flags.String("now", "", "the time to decide at, RFC 3339 (default: the clock's)")
	flags.StringVar(&o.output, "output", "table", "table, json or yaml")
	flags.BoolVar(&o.complete, "complete", false, "the input is all there is: kinds that it has no objects of have none (default: nothing is concluded from such kinds)")
	flags.BoolVar(&o.Settle, "settle", false, "run the actions in a simulated cluster that holds the input and nothing else, until nothing is left to do")
	flags.DurationVar(&o.Advance, "advance", 10*time.Minute, "with --settle: how far to move the clock at most")
	flags.Var(o.Catalogs, "catalog", "NAMESPACE/NAME=PATH: resolve Subscriptions against this file-based catalog, a file (.gz allowed) or a folder; repeatable")
	flags.StringVar(&o.Catalogs.Explain, "explain", "", "with --catalog: say why this bundle is or is not chosen")
	flags.StringVar(&o.Catalogs.Path, "path", "", "with --catalog: SUBSCRIPTION or SUBSCRIPTION=BUNDLE: print the way of a Subscription, hop by hop, to where it ends or to a bundle")
	flags.BoolVar(&o.Catalogs.Across, "across-channels", false, "with --path: the way may lead through other channels of the package, to the head of its default channel")
	flags.Usage = func() {} // only --help prints it; an error is one line
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stderr, usage, decode.KubectlGet())
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return o, err
		}
		return o, fmt.Errorf("%w (--help lists the flags)", err)
	}
	if _, ok := dryrun.Printers[o.output]; !ok {
		return o, fmt.Errorf("--output %q is none of %s", o.output, strings.Join(slices.Sorted(maps.Keys(dryrun.Printers)), ", "))
	}
	if o.Advance < 0 {
		return o, fmt.Errorf("--advance %s is negative", o.Advance)
	}
	if o.Catalogs.Explain != "" && len(o.Catalogs.Content) == 0 {
		return o, errors.New("--explain needs --catalog")
	}
	if o.Catalogs.Path != "" && len(o.Catalogs.Content) == 0 {
		return o, errors.New("--path needs --catalog")
	}
	if *now != "" {
		t, err := time.Parse(time.RFC3339, *now)
		if err != nil {
			return o, fmt.Errorf("--now %q is no RFC 3339 time such as 2026-01-02T15:04:05Z", *now)
		}
		o.now = t
	}
	o.now = o.now.UTC().Truncate(time.Second)
	o.files = flags.Args()
	return o, nil
}
