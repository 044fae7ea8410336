// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// clockRounds is the number of reconciles of each manager in which both come to rest while time stands still.
const clockRounds = 20

// clocks are how far the clocks of two managers are ahead of the API server's. No two of the three differ by more than the
// tolerance.
var clocks = [][2]time.Duration{
	{0, olmcore.ClockTolerance / 2}, {0, olmcore.ClockTolerance}, {olmcore.ClockTolerance, 0},
	{0, -olmcore.ClockTolerance / 2}, {0, -olmcore.ClockTolerance}, {-olmcore.ClockTolerance, 0},
	{-olmcore.ClockTolerance / 2, olmcore.ClockTolerance / 2},
}

// TestTwoClocksAgreeOnEveryStatus runs two managers in turn whose clocks differ by up to the tolerance, in any world. While
// time stands still, both stop to write.
func TestTwoClocksAgreeOnEveryStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		steps := w.steps()
		delete(steps, "clock is set")
		t.Repeat(steps)
		w.Recover()
		// An interval that is not longer than the difference is over at once for one of the two.
		require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
			if cs.Spec.UpdateStrategy != nil {
				cs.Spec.UpdateStrategy = polling("15m")
			}
		}))
		pair := rapid.SampledFrom(clocks).Draw(t, "clocks")
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			w.agree(t, pair)
			require.NoError(t, w.RunFor(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 70 * time.Second}).Draw(t, "pause")))
		}
	})
}

// agree runs two managers in turn until neither writes.
func (w *stormyWorld) agree(t *rapid.T, clocks [2]time.Duration) {
	for round := range clockRounds {
		wrote := w.turn(t, 0, clocks[0])
		wrote = append(wrote, w.turn(t, 1, clocks[1])...)
		require.NoError(t, w.Settle())
		if len(wrote) == 0 {
			return
		}
		for _, action := range wrote {
			verb, target, cause := action.Describe()
			if round < clockRounds-2 {
				continue
			}
			text := ""
			if u, ok := action.(olmcore.UpdateStatus); ok {
				record, err := olmcore.RecordOf(u)
				require.NoError(t, err)
				text = string(record.Patch)
			}
			t.Logf("%s %s (%s: %s) %s", verb, target, cause.Reason, cause.Message, text)
		}
	}
	require.Fail(t, "two managers write in turn")
}

// turn lets a manager with a clock reconcile what is in the cluster, and returns what it wrote.
func (w *stormyWorld) turn(t *rapid.T, who int, skew time.Duration) []olmcore.Action {
	in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	in.Now, in.LastRun = w.Now().Add(skew), w.last[who]
	if client := w.clients[who]; client != nil {
		in.Connection = new(*client)
	}
	out := answer(t, in)
	w.last[who] = olmcore.LastResultsOf(w.last[who], out.Actions, olmcore.Run(context.Background(), w.Cluster, out.Actions), in.Now)
	switch out.Connection.Verb {
	case catalog.ConnectionConnect:
		w.clients[who] = &catalog.Connection{Address: out.Connection.Address, State: "IDLE", LastTransition: in.Now}
	case catalog.ConnectionDrop:
		w.clients[who] = nil
	}
	return slices.Clone(out.Actions)
}

// TestAVerdictOfAClockAheadIsKept lets a manager whose clock is ahead say that a Pod that is being deleted is lost with its
// node. To the other one the grace period is not over.
func TestAVerdictOfAClockAheadIsKept(t *testing.T) {
	for _, skew := range []time.Duration{olmcore.ClockTolerance / 2, olmcore.ClockTolerance} {
		w := newWorld(t, catalog.Config{ForceDelete: catalog.ForceDeleteNever}, cool())
		w.run(t, time.Hour)
		pod := w.input(t).Pods.Items[0]
		require.NoError(t, w.FailNode(pod.Spec.NodeName))
		require.NoError(t, w.Cluster.RunFor(41*time.Second)) // it is unreachable for a second
		require.NoError(t, w.Cluster.Delete(olmcore.RefOf(pod).Unversioned()))
		for range rounds {
			in := w.input(t)
			in.Now = in.Now.Add(skew)
			require.NoError(t, olmcore.Run(context.Background(), w.Cluster, answer(t, in).Actions))
		}
		require.Contains(t, w.input(t).CatalogSource.Status.Conditions[0].Message, "lost")
		for _, action := range answer(t, w.input(t)).Actions {
			require.NotEqual(t, olmcore.VerbUpdateStatus, verbOf(action), "the status is taken back")
		}
	}
}

func verbOf(action olmcore.Action) olmcore.Verb {
	verb, _, _ := action.Describe()
	return verb
}
