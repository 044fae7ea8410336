// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

// sweeps is the controller that keeps a namespace in order.
func sweeps(config installplan.Config) fake.Controller {
	kind := v1alpha1.SchemeGroupVersion.WithKind("Subscription")
	return fake.Controller{
		Name: "sweep", Kind: kind.GroupKind(), Keys: fake.NamespacesOf(kind),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			in, err := sweep.Gather(ctx, r, key.Namespace, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			return sweepResult(in)
		},
	}
}

func controllers() []fake.Controller {
	return []fake.Controller{makers(installs(rich()), things), plans(things), sweeps(things)}
}

// endState is every object of a cluster without what differs from run to run: numbers, times, and whether a step's
// object was there before we looked.
func endState(t require.TestingT, c *fake.Cluster) map[string]any {
	names := map[string]string{}
	for _, o := range c.Objects() {
		names[string(o.GetUID())] = "uid of " + olmcore.KeyOf(o).String()
	}
	out := map[string]any{}
	for _, o := range c.Objects() {
		values, err := olmcore.ToMap(o)
		require.NoError(t, err)
		out[olmcore.KeyOf(o).String()] = masked(values, names)
	}
	return out
}

func masked(v any, names map[string]string) any {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			switch key {
			case "resourceVersion", "generation", "clusterIP", "clusterIPs", "observedGeneration":
				delete(x, key)
			default:
				x[key] = masked(value, names)
			}
		}
	case []any:
		for i := range x {
			x[i] = masked(x[i], names)
		}
	case string:
		if name, isUID := names[x]; isUID {
			return name
		}
		if x == string(present) {
			return string(created)
		}
		if _, err := time.Parse(time.RFC3339, x); err == nil {
			return "a time"
		}
	}
	return v
}

func historyWorld(t require.TestingT, over bool) *fake.Cluster {
	objects := []olmcore.Object{userSubscription("rich")}
	if over {
		objects = append(objects, existing()...)
	}
	c, err := newWorld(objects...)
	require.NoError(t, err)
	return c
}

// undisturbed are the end states of worlds in which nothing goes wrong.
var undisturbed = sync.OnceValue(func() map[bool]map[string]any {
	out := map[bool]map[string]any{}
	for _, over := range []bool{false, true} {
		t := panicking{}
		c := historyWorld(t, over)
		d := &fake.Driver{Cluster: c, Controllers: controllers()}
		require.NoError(t, d.RunFor(context.Background(), 15*time.Minute))
		require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
		out[over] = endState(t, c)
	}
	return out
})

type panicking struct{}

func (panicking) Errorf(string, ...any) {}
func (panicking) FailNow()              { panic("the undisturbed world fails") }

// disturbed is what becomes of a reconcile's actions: they run whole, up to any one, without any one, with any one
// twice, or not at all.
func disturbed(t *rapid.T, actions []olmcore.Action) []olmcore.Action {
	if len(actions) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(actions)-1).Draw(t, "action")
	switch rapid.SampledFrom([]string{"run", "run", "cut", "drop", "repeat"}).Draw(t, "how") {
	case "cut":
		return actions[:i]
	case "drop":
		return append(append([]olmcore.Action{}, actions[:i]...), actions[i+1:]...)
	case "repeat":
		return append(append([]olmcore.Action{}, actions[:i+1]...), actions[i:]...)
	}
	return actions
}

// TestAnyHistoryEndsTheSame: an executor that stops anywhere, loses or repeats writes, reads a cache that is behind and
// forgets what it knew changes nothing in the end.
func TestAnyHistoryEndsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over := maybe(t, "over objects that are there")
		c := historyWorld(t, over)
		view := c.View("stale")
		all := controllers()
		memory := map[string]olmcore.LastResults{}
		for range rapid.IntRange(1, 25).Draw(t, "rounds") {
			for _, controller := range all {
				if !maybe(t, "runs") {
					continue
				}
				for _, key := range controller.Keys(view) {
					name := controller.Name + key.String()
					result, err := controller.Reconcile(t.Context(), view, key, c.Now(), memory[name])
					if err != nil {
						continue // gone in the meantime
					}
					actions := disturbed(t, result.Actions)
					err = olmcore.Run(t.Context(), c, actions)
					memory[name] = olmcore.LastResultsOf(memory[name], actions, err, c.Now())
				}
			}
			switch rapid.SampledFrom([]string{"sync", "lag", "settle", "restart", "later"}).Draw(t, "then") {
			case "sync":
				view.Sync()
			case "lag":
				for _, gvk := range view.Behind() {
					if maybe(t, "sees") {
						view.Next(gvk)
					}
				}
			case "settle":
				require.NoError(t, c.Settle())
			case "restart":
				clear(memory)
			case "later":
				c.Advance(time.Second)
			}
		}
		d := &fake.Driver{Cluster: c, Controllers: all}
		require.NoError(t, d.RunFor(context.Background(), 15*time.Minute))
		if diff := cmp.Diff(undisturbed()[over], endState(t, c)); diff != "" {
			t.Fatalf("the end differs (-undisturbed +this):\n%s", diff)
		}
	})
}
