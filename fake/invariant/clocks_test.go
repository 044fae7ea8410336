// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// writer returns a manager that writes the states of a list into an object, one whenever the clock has moved on. An
// empty state writes nothing.
func writer(object olmcore.Object, states []string, write func(olmcore.Object, string)) controller.Controller {
	turn, last := 0, time.Time{}
	return controller.Controller{
		Name: "writer", Always: []types.NamespacedName{{Namespace: "ops", Name: object.GetName()}},
		Reconcile: func(
			ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults,
		) (olmcore.Result, error) {
			if now.Equal(last) || turn == len(states) {
				return olmcore.Result{}, nil
			}
			last, turn = now, turn+1
			before, err := r.Get(ctx, olmcore.RefOf(object).GVK(), key.Namespace, key.Name)
			if err != nil || states[turn-1] == "" {
				return olmcore.Result{}, err
			}
			after := before.DeepCopyObject().(olmcore.Object)
			write(after, states[turn-1])
			return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: "Test"})}}, nil
		},
	}
}

// TestTwoClocksFindsStatesThatAreRestored checks which sequences of states of two managers TwoClocks accepts, for each
// kind.
func TestTwoClocksFindsStatesThatAreRestored(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ops", Name: "a"}
	kinds := map[string]struct {
		object olmcore.Object
		write  func(olmcore.Object, string)
	}{
		"CatalogSource": {&v1alpha1.CatalogSource{ObjectMeta: meta}, func(o olmcore.Object, state string) {
			o.(*v1alpha1.CatalogSource).Status.Message = state
		}},
		"InstallPlan": {&v1alpha1.InstallPlan{ObjectMeta: meta}, func(o olmcore.Object, state string) {
			o.(*v1alpha1.InstallPlan).Status.Message = state
		}},
	}
	type list = []string
	for name, tc := range map[string]struct {
		first, second list // the states that each manager writes, one in each round
		fails         map[string]bool
	}{
		"both write the same":              {first: list{"a", "b", "c"}, second: list{"a", "b", "c"}},
		"one writes alone":                 {first: list{"a", "b", "a", "b", "a", "b", "a"}},
		"each state is new":                {first: list{"a", "c", "e"}, second: list{"b", "d", "f"}},
		"one takes the other's state over": {first: list{"a", "b", "", "c"}, second: list{"b", "", "c"}},
		"a state is restored once":         {first: list{"a", "a"}, second: list{"b"}, fails: map[string]bool{"InstallPlan": true}},
		"both restore theirs twice": {
			first: list{"a", "a", "a"}, second: list{"b", "b", "b"}, fails: map[string]bool{"InstallPlan": true},
		},
		"both restore theirs for long": {
			first: list{"a", "a", "a", "a"}, second: list{"b", "b", "b", "b"},
			fails: map[string]bool{"InstallPlan": true, "CatalogSource": true},
		},
		"three states in rotation": {
			first: list{"a", "c", "b", "a", "c", "b"}, second: list{"b", "a", "c", "b", "a", "c"},
			fails: map[string]bool{"InstallPlan": true, "CatalogSource": true},
		},
		"one manager rotates two states": {
			first: list{"a", "c", "a", "c", "a", "c"}, second: list{"b", "b", "b", "b", "b", "b"},
			fails: map[string]bool{"InstallPlan": true, "CatalogSource": true},
		},
	} {
		for kind, of := range kinds {
			t.Run(name+" of "+kind, func(t *testing.T) {
				c := fake.NewCluster(time.Unix(1_800_000_000, 0))
				c.AutoCreateNamespaces = true
				require.NoError(t, c.Create(of.object.DeepCopyObject().(olmcore.Object)))
				clocks := invariant.TwoClocks{Cluster: c, Rounds: 4, Managers: [2][]controller.Controller{
					{writer(of.object, tc.first, of.write)}, {writer(of.object, tc.second, of.write)},
				}}
				err := clocks.RunFor(t.Context(), 10*time.Second, time.Second)
				if tc.fails[kind] {
					require.ErrorContains(t, err, "replace each other's states of "+kind+" ops/a")
				} else {
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestTwoClocksAllowsAStateThatAUserRestored checks that a state may return after another client changed the cluster.
func TestTwoClocksAllowsAStateThatAUserRestored(t *testing.T) {
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"}}
	write := func(o olmcore.Object, state string) { o.(*v1alpha1.InstallPlan).Status.Message = state }
	for _, changes := range []bool{false, true} {
		c := fake.NewCluster(time.Unix(1_800_000_000, 0))
		c.AutoCreateNamespaces = true
		require.NoError(t, c.Create(plan.DeepCopy()))
		clocks := invariant.TwoClocks{Cluster: c, Rounds: 4, Managers: [2][]controller.Controller{
			{writer(plan, []string{"a", "", "a"}, write)}, {writer(plan, []string{"", "b", ""}, write)},
		}}
		require.NoError(t, clocks.Agree(t.Context()))
		c.Advance(time.Second)
		require.NoError(t, clocks.Agree(t.Context()))
		if changes {
			require.NoError(t, fake.Edit(c, "ops", "a", func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
		}
		c.Advance(time.Second)
		if err := clocks.Agree(t.Context()); changes {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
	}
}

// TestTwoClocksAllowsAStateThatFollowsAnotherObject checks that plan b may restore its message if the message contains
// the name of plan a, whose status changed in between.
func TestTwoClocksAllowsAStateThatFollowsAnotherObject(t *testing.T) {
	plan := func(name string) *v1alpha1.InstallPlan {
		return &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
	}
	write := func(o olmcore.Object, state string) { o.(*v1alpha1.InstallPlan).Status.Message = state }
	type manager struct{ a, b []string } // what a manager writes into each plan, one state in each round
	for name, tc := range map[string]struct {
		first, second manager
		failing       string // the plan whose states are restored
	}{
		"plan a has a new status each time": {
			manager{[]string{"x", "z"}, []string{"waits for a (1)", "waits for a (1)"}}, manager{[]string{"y"}, []string{"waits for a (2)"}}, "",
		},
		"plan a does not change": {
			manager{[]string{"x", ""}, []string{"waits for a (1)", "waits for a (1)"}}, manager{[]string{""}, []string{"waits for a (2)"}}, "b",
		},
		"plan a changed only before": {
			manager{[]string{"x", ""}, []string{"waits for a (1)", "waits for a (1)"}}, manager{[]string{"y"}, []string{"waits for a (2)"}}, "b",
		},
		"plan a is not named": {
			manager{[]string{"x", "z"}, []string{"waits for another (1)", "waits for another (1)"}},
			manager{[]string{"y"}, []string{"waits for another (2)"}}, "b",
		},
		"the status of plan a is restored, too": {
			manager{[]string{"x", "x"}, []string{"waits for a (1)", "waits for a (1)"}}, manager{[]string{"y"}, []string{"waits for a (2)"}}, "a",
		},
		"each plan names the other one": {
			manager{[]string{"before b (1)", "before b (1)"}, []string{"after a (1)", "after a (1)"}},
			manager{[]string{"before b (2)"}, []string{"after a (2)"}}, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(time.Unix(1_800_000_000, 0))
			c.AutoCreateNamespaces = true
			require.NoError(t, c.Create(plan("a"), plan("b")))
			clocks := invariant.TwoClocks{Cluster: c, Rounds: 4}
			for i, m := range []manager{tc.first, tc.second} {
				clocks.Managers[i] = []controller.Controller{writer(plan("a"), m.a, write), writer(plan("b"), m.b, write)}
				clocks.Managers[i][1].Name = "writer of b"
			}
			err := clocks.RunFor(t.Context(), 10*time.Second, time.Second)
			if tc.failing == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "replace each other's states of InstallPlan ops/"+tc.failing)
			}
		})
	}
}

// TestTwoClocksComparesVersionsWithoutTheirHistory checks that a status of a ClusterServiceVersion counts as restored
// although the history in it has grown.
func TestTwoClocksComparesVersionsWithoutTheirHistory(t *testing.T) {
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"}}
	write := func(o olmcore.Object, state string) {
		s := &o.(*v1alpha1.ClusterServiceVersion).Status
		s.Message, s.Conditions = state, append(s.Conditions, v1alpha1.ClusterServiceVersionCondition{Message: state})
	}
	c := fake.NewCluster(time.Unix(1_800_000_000, 0))
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(version.DeepCopy()))
	clocks := invariant.TwoClocks{Cluster: c, Rounds: 4, Managers: [2][]controller.Controller{
		{writer(version, []string{"a", "a"}, write)}, {writer(version, []string{"b"}, write)},
	}}
	err := clocks.RunFor(t.Context(), 10*time.Second, time.Second)
	require.ErrorContains(t, err, "replace each other's states of ClusterServiceVersion ops/a")
}

// TestTwoClocksKeepsLastResultsWhileAManagerWaits checks that a manager that returns no actions still knows the results
// of its last ones, as with every adapter.
func TestTwoClocksKeepsLastResultsWhileAManagerWaits(t *testing.T) {
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"}}
	write := func(o olmcore.Object, state string) { o.(*v1alpha1.InstallPlan).Status.Message = state }
	c := fake.NewCluster(time.Unix(1_800_000_000, 0))
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(plan.DeepCopy()))
	known := []bool{}
	manager := writer(plan, []string{"x"}, write)
	reconcile := manager.Reconcile
	manager.Reconcile = func(
		ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
	) (olmcore.Result, error) {
		_, isKnown := last[olmcore.KeyOf(plan)]
		known = append(known, isKnown)
		result, err := reconcile(ctx, r, key, now, last)
		result.RequeueAfter = time.Minute
		return result, err
	}
	clocks := invariant.TwoClocks{Cluster: c, Rounds: 4, Managers: [2][]controller.Controller{{manager}, {}}}
	require.NoError(t, clocks.RunFor(t.Context(), 2*time.Second, time.Second))
	require.Equal(t, []bool{false, true, true, true}, known)
}
