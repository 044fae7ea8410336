// SPDX-License-Identifier: Apache-2.0

// Package dryrun says what OLM's semantics would do about objects, and why: what the commands dryrun and kubectl olm
// have in common. It changes nothing and talks to no cluster.
package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Options say how to look. The zero value looks once.
type Options struct {
	// Settle runs the actions in the cluster, which holds the input and nothing else, until nothing is left to do. Advance
	// is how far its clock moves at most.
	Settle  bool
	Advance time.Duration
	// Catalogs are resolved from; nil is none.
	Catalogs *Catalogs
	// SeparatePlans makes one InstallPlan for each set of Subscriptions that depend on each other.
	SeparatePlans bool
}

// Run asks every package what it would do about the objects of a cluster. scopes are what these objects tell of; with
// Settle the cluster is all there is, and changes. The error is not about the objects.
func Run(ctx context.Context, cluster *fake.Cluster, scopes []olmcore.Scope, o Options) (*Report, error) {
	r := &runner{
		ctx: ctx, cluster: cluster, reader: cluster, results: map[olmcore.Key]*Result{},
		catalogs: cmp.Or(o.Catalogs, &Catalogs{}), secrets: secretsOf(cluster), separatePlans: o.SeparatePlans,
	}
	if r.global = r.catalogs.GlobalNamespace; r.global == "" {
		r.global, _ = MostNamed(r.subscriptions(""))
	}
	if o.Settle {
		return r.settle(o.Advance)
	}
	input, err := observe(cluster, scopes)
	if err != nil {
		return nil, err
	}
	r.reader = input
	if err := r.look(input); err != nil {
		return nil, err
	}
	all := r.report()
	all.NotRead = unread(input.asked)
	return all, nil
}

// Read returns the objects of files, or of stdin where no file is named. The error says which document of which file.
func Read(files []string, stdin io.Reader) ([]decode.Object, error) {
	if len(files) == 0 {
		return decode.Read("stdin", stdin)
	}
	var all []decode.Object
	for _, name := range files {
		found, err := readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func readFile(name string) ([]decode.Object, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode.Read(name, f)
}

// Spellings lists the keys that the API spells in another case.
func Spellings(read []decode.Object) []string {
	var found []string
	for _, o := range read {
		for _, key := range o.Keys {
			found = append(found, fmt.Sprintf("%s: document %d: %s: %s", o.File, o.Document, olmcore.KeyOf(o.Object), key))
		}
	}
	return found
}

// Load puts the objects into a simulated cluster whose clock shows now. The error says which object does not fit, and
// where it was read.
func Load(read []decode.Object, now time.Time) (*fake.Cluster, error) {
	objects, err := decode.Distinct(read)
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
			return nil, &decode.Error{File: o.File, Document: o.Document, Err: err}
		}
	}
	return nil, err
}
