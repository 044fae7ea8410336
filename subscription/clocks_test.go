// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// clockRounds is the number of reconciles of each manager after which both must stop writing while the time does not
// advance.
const clockRounds = 20

var clockPauses = []time.Duration{time.Second, 9 * time.Second, 20 * time.Second, 70 * time.Second, 4 * time.Minute}

// TestManagersWithDifferentClocksConverge runs two managers in turn, in any namespace. Their clocks differ by up to
// the tolerance. It checks that both stop writing while the time does not advance.
func TestManagersWithDifferentClocksConverge(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		c := fake.NewCluster(epoch)
		c.AutoCreateNamespaces = true
		c.Advance(now.Sub(epoch))
		require.NoError(t, c.Load(objectsOf(in)...))
		c.Advance(rapid.SampledFrom([]time.Duration{0, 4 * time.Minute}).Draw(t, "later"))
		clocks := invariant.TwoClocks{
			Cluster: c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
		}
		for who := range clocks.Managers {
			e := &embedder{config: in.Config, forgetful: rapid.Bool().Draw(t, "forgetful")}
			e.reset()
			if in.Resolution != nil && rapid.Bool().Draw(t, "knows the answer") {
				e.answers[ns] = in.Resolution
			}
			clocks.Managers[who] = []controller.Controller{e.controller()}
		}
		agree(t, &clocks)
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}

// objectsOf returns the objects of an Input.
func objectsOf(in subscription.Input) (objects []olmcore.Object) {
	for _, s := range in.Subscriptions.Items {
		objects = append(objects, s)
	}
	for _, p := range in.InstallPlans.Items {
		objects = append(objects, p)
	}
	for _, c := range in.ClusterServiceVersions.Items {
		objects = append(objects, c)
	}
	for _, g := range in.OperatorGroups.Items {
		objects = append(objects, g)
	}
	if in.Catalogs != nil {
		for _, s := range in.Catalogs.Sources.Items {
			objects = append(objects, s)
		}
	}
	return objects
}

// agree lets two managers converge several times, with pauses between.
func agree(t *rapid.T, clocks *invariant.TwoClocks) {
	for range rapid.IntRange(1, 4).Draw(t, "times") {
		require.NoError(t, clocks.Agree(context.Background()))
		require.NoError(t, clocks.Cluster.RunFor(rapid.SampledFrom(clockPauses).Draw(t, "pause")))
		if rapid.Bool().Draw(t, "slowly") {
			require.NoError(t, clocks.RunFor(context.Background(), 70*time.Second, 5*time.Second))
		}
	}
}

// TestManagersWithDifferentClocksConvergeAfterAnyHistory checks the same after any history of InstallPlans, with
// the sweep of the namespace.
func TestManagersWithDifferentClocksConvergeAfterAnyHistory(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPast(t)
		for _, name := range []string{"alpha", "beta"} {
			p.subscribe(name, rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			p.step()
		}
		p.c.Faults().Clear()
		clocks := invariant.TwoClocks{
			Cluster: p.c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
		}
		for who, w := range p.workers {
			clocks.Managers[who] = []controller.Controller{w.all[controllers.Subscription], w.all[controllers.Sweep]}
		}
		agree(t, &clocks)
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}
