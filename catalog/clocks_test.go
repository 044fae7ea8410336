// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// clockRounds is the number of reconciles of each manager after which both must stop to write while time stands
// still.
const clockRounds = 20

// TestManagersWithDifferentClocksConverge runs two managers in turn, in random worlds. Their clocks differ by up to
// the tolerance. It checks that both stop writing while the time does not advance.
func TestManagersWithDifferentClocksConverge(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.skew = rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks")
		steps := w.steps()
		delete(steps, "clock is set")
		t.Repeat(steps)
		w.Faults().Clear()
		// An interval that is not longer than the difference is over at once for one of the two.
		require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
			if cs.Spec.UpdateStrategy != nil {
				cs.Spec.UpdateStrategy = polling("15m")
			}
		}))
		clocks := invariant.TwoClocks{
			Cluster: w.Cluster, Rounds: clockRounds, Ahead: w.skew,
			Managers: [2][]controller.Controller{{w.connected(t, 0)}, {w.connected(t, 1)}},
		}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			require.NoError(t, clocks.Agree(context.Background()))
			require.NoError(t, w.RunFor(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 70 * time.Second}).Draw(t, "pause")))
			if rapid.IntRange(0, 3).Draw(t, "slowly") == 0 {
				require.NoError(t, clocks.RunFor(context.Background(), 70*time.Second, 5*time.Second))
			}
		}
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}

// connected returns the controller of a manager that has a gRPC client.
func (w *stormyWorld) connected(t *rapid.T, who int) controller.Controller {
	c := catalogController(w.config)
	c.Reconcile = func(
		ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
	) (olmcore.Result, error) {
		in, err := catalog.Gather(ctx, r, key, w.config)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.Now, in.LastRun = now, last
		if client := w.clients[who]; client != nil {
			in.Connection = new(*client)
		}
		out := answer(t, in)
		switch out.Connection.Verb {
		case catalog.ConnectionConnect:
			w.clients[who] = &catalog.Connection{Address: out.Connection.Address, State: "IDLE", LastTransition: now}
		case catalog.ConnectionDrop:
			w.clients[who] = nil
		}
		return out.Result, nil
	}
	return c
}

// TestStatusWrittenWithAFasterClockIsKept checks that a manager keeps a status that was written by a manager with a
// faster clock. A Pod that is being deleted is lost with its Node. The grace period is not over on its clock,
// and its client has lost its connection meanwhile.
func TestStatusWrittenWithAFasterClockIsKept(t *testing.T) {
	for _, skew := range []time.Duration{olmcore.ClockTolerance / 2, olmcore.ClockTolerance} {
		for name, lost := range map[string]time.Duration{"no client": 0, "a client that lost its connection": 50 * time.Second} {
			t.Run(fmt.Sprint(name, ", ", skew), func(t *testing.T) {
				w := newWorld(t, catalog.Config{ForceDelete: catalog.ForceDeleteNever, Replicas: 2}, cool())
				w.run(t, time.Hour)
				input := func(ahead time.Duration) catalog.Input {
					in := w.input(t)
					if in.Now = in.Now.Add(ahead); lost > 0 {
						in.Connection = &catalog.Connection{Address: "cool.olm.svc:50051", State: "TRANSIENT_FAILURE", LastTransition: in.Now.Add(-lost)}
					}
					return in
				}
				require.NoError(t, olmcore.Run(context.Background(), w.Cluster, answer(t, input(0)).Actions))
				pod := w.input(t).Pods.Items[0]
				require.NoError(t, w.Node(pod.Spec.NodeName).Fail())
				require.NoError(t, w.Cluster.RunFor(41*time.Second)) // it is unreachable for a second
				require.NoError(t, w.Cluster.Delete(olmcore.RefOf(pod).Unversioned()))
				for range rounds {
					require.NoError(t, olmcore.Run(context.Background(), w.Cluster, answer(t, input(skew)).Actions))
				}
				require.Contains(t, w.input(t).CatalogSource.Status.Conditions[0].Message, "lost")
				for _, action := range answer(t, input(0)).Actions {
					require.NotEqual(t, olmcore.VerbUpdateStatus, verbOf(action), "the status is taken back")
				}
			})
		}
	}
}

// TestManagersWithDifferentClocksAgreeOnTheNewestContent moves the tag of the image in the second in which the Pods
// are created. It checks that a manager whose clock is ahead does not delete Pods for content that the other
// manager creates again.
func TestManagersWithDifferentClocksAgreeOnTheNewestContent(t *testing.T) {
	const image = "quay.io/example/catalog:v3" // the names of its Pods follow from it
	for _, ahead := range invariant.ClockPairs() {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			cs := cool()
			cs.Spec.Image = image
			w := newWorld(t, catalog.Config{Replicas: 3}, cs)
			require.NoError(t, w.Node("c").Create(nil))
			w.run(t, 0)
			require.NoError(t, w.Node("b").Drain())
			w.Image(image).SetDigest("sha256:" + strings.Repeat("1", 64))
			clocks := invariant.TwoClocks{
				Cluster: w.Cluster, Rounds: clockRounds, Ahead: ahead,
				Managers: [2][]controller.Controller{{catalogController(w.config)}, {catalogController(w.config)}},
			}
			require.NoError(t, clocks.Agree(t.Context()))
			require.NoError(t, clocks.RunFor(t.Context(), 4*time.Minute, 20*time.Second))
			pods := w.input(t).Pods.Items
			require.Len(t, pods, 3)
			for _, pod := range pods {
				require.Contains(t, pod.Status.ContainerStatuses[0].ImageID, strings.Repeat("1", 64))
			}
		})
	}
}

func verbOf(action olmcore.Action) olmcore.Verb {
	verb, _, _ := action.Describe()
	return verb
}
