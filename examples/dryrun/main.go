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
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/manifest"
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
	now     time.Time
	output  string
	settle  bool
	advance time.Duration
	// complete: kinds of which the input has no objects have none.
	complete bool
	// catalogs are those of --catalog.
	catalogs *catalogs
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
	objects, err := read(o.files, stdin)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	cluster, err := load(objects, o.now)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	r, err := dryRun(cluster, scopesOf(objects, o), o)
	if err != nil {
		return fail(stderr, err, exitInternal)
	}
	if o.catalogs.path != "" && !o.catalogs.asked {
		return fail(stderr, fmt.Errorf("--path %q names no Subscription of the input that is resolved", o.catalogs.path), exitUsage)
	}
	r.Input = spellings(objects)
	if err := printers[o.output](stdout, r); err != nil {
		return fail(stderr, err, exitInternal)
	}
	return exitOK
}

func fail(stderr io.Writer, err error, code int) int {
	fmt.Fprintln(stderr, "dryrun:", strings.ReplaceAll(err.Error(), "\n", " "))
	return code
}

const usage = `usage: dryrun [flags] [FILE...]
Reads Kubernetes YAML or JSON (stdin without FILE), prints what OLM's semantics would do
about it and why, and changes nothing. For a whole cluster:

  %s > cluster.yaml
  dryrun --complete cluster.yaml

`

func parse(args []string, stderr io.Writer, clock time.Time) (options, error) {
	o := options{now: clock, catalogs: &catalogs{}}
	flags := flag.NewFlagSet("dryrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	now := flags.String("now", "", "the time to decide at, RFC 3339 (default: the clock's)")
	flags.StringVar(&o.output, "output", "table", "table, json or yaml")
	flags.BoolVar(&o.complete, "complete", false, "the input is all there is: kinds that it has no objects of have none (default: nothing is concluded from such kinds)")
	flags.BoolVar(&o.settle, "settle", false, "run the actions in a simulated cluster that holds the input and nothing else, until nothing is left to do")
	flags.DurationVar(&o.advance, "advance", 10*time.Minute, "with --settle: how far to move the clock at most")
	flags.Var(o.catalogs, "catalog", "NAMESPACE/NAME=PATH: resolve Subscriptions against this file-based catalog, a file (.gz allowed) or a folder; repeatable")
	flags.StringVar(&o.catalogs.explain, "explain", "", "with --catalog: say why this bundle is or is not chosen")
	flags.StringVar(&o.catalogs.path, "path", "", "with --catalog: SUBSCRIPTION or SUBSCRIPTION=BUNDLE: print the way of a Subscription, hop by hop, to where it ends or to a bundle")
	flags.BoolVar(&o.catalogs.across, "across-channels", false, "with --path: the way may lead through other channels of the package, to the head of its default channel")
	flags.Usage = func() {} // only --help prints it; an error is one line
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stderr, usage, manifest.KubectlGet())
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return o, err
		}
		return o, fmt.Errorf("%w (--help lists the flags)", err)
	}
	if _, ok := printers[o.output]; !ok {
		return o, fmt.Errorf("--output %q is none of %s", o.output, strings.Join(slices.Sorted(maps.Keys(printers)), ", "))
	}
	if o.advance < 0 {
		return o, fmt.Errorf("--advance %s is negative", o.advance)
	}
	if o.catalogs.explain != "" && len(o.catalogs.Content) == 0 {
		return o, errors.New("--explain needs --catalog")
	}
	if o.catalogs.path != "" && len(o.catalogs.Content) == 0 {
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

func read(files []string, stdin io.Reader) ([]manifest.Object, error) {
	if len(files) == 0 {
		return manifest.Read("stdin", stdin)
	}
	var all []manifest.Object
	for _, name := range files {
		found, err := readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// spellings lists the keys that the API spells in another case.
func spellings(read []manifest.Object) []string {
	var found []string
	for _, o := range read {
		for _, key := range o.Keys {
			found = append(found, fmt.Sprintf("%s: document %d: %s: %s", o.File, o.Document, olmcore.KeyOf(o.Object), key))
		}
	}
	return found
}

func readFile(name string) ([]manifest.Object, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return manifest.Read(name, f)
}

// load puts the objects into a simulated cluster.
func load(read []manifest.Object, now time.Time) (*fake.Cluster, error) {
	objects, err := manifest.Distinct(read)
	if err != nil {
		return nil, err
	}
	cluster := fake.NewCluster(now)
	cluster.AutoCreateNamespaces = true
	if err = cluster.Load(objects...); err == nil {
		return cluster, nil
	}
	for _, o := range read { // which one was it?
		if err := fake.NewCluster(now).Load(o.Object); err != nil {
			return nil, &manifest.Error{File: o.File, Document: o.Document, Err: err}
		}
	}
	return nil, err
}
