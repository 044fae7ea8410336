// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

// fakeWorld is fake.Cluster with as many drivers as there are managers.
type fakeWorld struct {
	*fake.Cluster
	reports
	t       testing.TB
	drivers []*fake.Driver
	olms    []*olm.OLM
	heard   []int // events of each driver that are reported
}

func newFakeWorld(t testing.TB) *fakeWorld {
	return &fakeWorld{t: t, Cluster: fake.NewCluster(time.Now())}
}

func (w *fakeWorld) addNode(name string)  { require.NoError(w.t, w.Node(name).Create(nil)) }
func (w *fakeWorld) failNode(name string) { require.NoError(w.t, w.Node(name).Fail()) }

func (w *fakeWorld) start(managers int) {
	for range managers {
		o := &olm.OLM{Options: options(nil)}
		w.olms = append(w.olms, o)
		w.drivers = append(w.drivers, &fake.Driver{Cluster: w.Cluster, Controllers: o.Controllers()})
	}
	w.heard = make([]int, len(w.drivers))
}

func (w *fakeWorld) stop() { w.drivers, w.olms = nil, nil }

func (w *fakeWorld) published() {
	for _, o := range w.olms {
		o.CatalogsChanged()
	}
	republish(w.t, w)
}

// until lets the managers take turns, second by second.
func (w *fakeWorld) until(what string, condition func() bool) {
	for range 3600 {
		if w.work(); condition() {
			return
		}
		require.NoError(w.t, w.RunFor(time.Second))
	}
	require.FailNow(w.t, "an hour is over", "not yet: %s\n%s", what, state(w.t, w))
}

// settle lets time pass until everything that waits for a time has had it.
func (w *fakeWorld) settle() {
	for range 300 {
		w.work()
		require.NoError(w.t, w.RunFor(time.Second))
	}
}

// work lets the managers go on until nothing changes at this instant.
func (w *fakeWorld) work() {
	for round := range maxRounds {
		before := w.ResourceVersion()
		require.NoError(w.t, w.Settle())
		for i, d := range w.drivers {
			_, err := d.Round(w.t.Context())
			require.NoError(w.t, err)
			w.hear(i)
		}
		if w.ResourceVersion() == before {
			return
		}
		require.Less(w.t, round, maxRounds-1, "the managers are never done:\n%s", state(w.t, w))
	}
}

// maxRounds is more than any story needs at one instant.
const maxRounds = 1000

// hear turns a driver's events into reports.
func (w *fakeWorld) hear(i int) {
	events := w.drivers[i].Events[w.heard[i]:]
	w.heard[i] += len(events)
	for _, e := range events {
		r := report{manager: fmt.Sprint(i), controller: e.Controller, key: types.NamespacedName(e.Key), err: e.Err}
		switch {
		case e.Action != nil:
			r.result.Actions = []olmcore.Action{e.Action}
		case e.Transition != nil:
			r.result.Transitions = []olmcore.Transition{*e.Transition}
		case e.Diagnostic != nil:
			r.result.Diagnostics = []olmcore.Diagnostic{*e.Diagnostic}
		}
		w.add(r)
	}
}
