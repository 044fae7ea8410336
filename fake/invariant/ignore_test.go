// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// counting writes into ConfigMap ns/a how often it ran, until limit, and notes of ConfigMaps in a label whether it had
// to be written again: what no two runs agree about.
func counting(limit int) func(*fake.Cluster) []controller.Controller {
	return func(*fake.Cluster) []controller.Controller {
		runs := 0
		return []controller.Controller{{
			Name: "count", Always: []types.NamespacedName{{Namespace: "ns", Name: "a"}},
			Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
				before, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
				if runs++; err != nil || before.Labels["seen"] == "yes" && runs > limit {
					return olmcore.Result{}, err
				}
				after := before.DeepCopy()
				after.Labels = map[string]string{"seen": "yes"}
				after.Data = map[string]string{"run": fmt.Sprintf("number-%d", runs)}
				return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(before, after, because)}}, nil
			},
		}}
	}
}

func TestIgnoreLeavesOutWhatRunsMayDifferIn(t *testing.T) {
	configMaps := schema.GroupKind{Kind: "ConfigMap"}
	run := []string{"data", "run"}
	for name, tt := range map[string]struct {
		ignore invariant.Ignore
		holds  bool
	}{
		"nothing":                   {ignore: invariant.Ignore{Kind: configMaps, Path: []string{"data", "other"}}},
		"the field":                 {ignore: invariant.Ignore{Kind: configMaps, Path: run}, holds: true},
		"any field beside it":       {ignore: invariant.Ignore{Path: []string{"*", "run"}}, holds: true},
		"the field of a namespace":  {ignore: invariant.Ignore{Namespace: "ns", Path: run}, holds: true},
		"of another namespace":      {ignore: invariant.Ignore{Namespace: "other", Path: run}},
		"of another name":           {ignore: invariant.Ignore{Name: "b*", Path: run}},
		"of another kind":           {ignore: invariant.Ignore{Kind: schema.GroupKind{Kind: "Secret"}, Path: run}},
		"texts that count the same": {ignore: invariant.Ignore{Name: "[ab]", Path: run, Equal: []string{"number-*"}}, holds: true},
		"other texts":               {ignore: invariant.Ignore{Path: run, Equal: []string{"none-*"}}},
		"texts that count as none":  {ignore: invariant.Ignore{Path: run, Equal: []string{"", "number-*"}}, holds: true},
		"an object":                 {ignore: invariant.Ignore{Kind: configMaps, Name: "a"}, holds: true},
		"another object":            {ignore: invariant.Ignore{Kind: configMaps, Name: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := invariant.World{New: twoConfigMaps, Controllers: counting(0), Rounds: 3, Ignore: []invariant.Ignore{tt.ignore}}
			if tt.holds {
				require.NoError(t, invariant.Resumable(w))
			} else {
				require.ErrorContains(t, invariant.Resumable(w), "the end differs")
			}
		})
	}
}

// stepping gives the step of plan ns/plan a status, and another one when that has to be written again.
func stepping(statuses [2]v1alpha1.StepStatus) func(*fake.Cluster) []controller.Controller {
	return func(*fake.Cluster) []controller.Controller {
		runs := 0
		return []controller.Controller{{
			Name: "step", Always: []types.NamespacedName{{Namespace: "ns", Name: "plan"}},
			Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
				before, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
				if runs++; err != nil || before.Status.Phase == v1alpha1.InstallPlanPhaseComplete {
					return olmcore.Result{}, err
				}
				after := before.DeepCopy()
				after.Status.Phase = v1alpha1.InstallPlanPhaseComplete
				after.Status.Plan[0].Status = statuses[min(runs-1, 1)]
				return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(before, after, because)}}, nil
			},
		}}
	}
}

// TestCreatedOrPresentIgnoresNoOtherStatus of a step.
func TestCreatedOrPresentIgnoresNoOtherStatus(t *testing.T) {
	plan := func() (*fake.Cluster, error) {
		c := fake.NewCluster(noon)
		p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plan"}}
		p.Status.Plan = []*v1alpha1.Step{{Status: v1alpha1.StepStatusUnknown}}
		return c, c.Load(p)
	}
	all := []v1alpha1.StepStatus{v1alpha1.StepStatusCreated, v1alpha1.StepStatusPresent,
		v1alpha1.StepStatusUnknown, v1alpha1.StepStatusNotPresent, v1alpha1.StepStatusNotCreated, v1alpha1.StepStatusWaitingForAPI, v1alpha1.StepStatusUnsupportedResource}
	for i, first := range all {
		for j, second := range all {
			w := invariant.World{New: plan, Controllers: stepping([2]v1alpha1.StepStatus{first, second}), Rounds: 3, Ignore: []invariant.Ignore{invariant.CreatedOrPresent()}}
			if err := invariant.Resumable(w); i == j || i < 2 && j < 2 {
				require.NoError(t, err, "%s, %s", first, second)
			} else {
				require.ErrorContains(t, err, "the end differs", "%s, %s", first, second)
			}
		}
	}
}

func TestIgnoreCountsNoActionsOnWholeObjects(t *testing.T) {
	restless := invariant.World{New: twoConfigMaps, Controllers: counting(1 << 20), Rounds: 3}
	require.ErrorContains(t, invariant.Settles(restless), "not settling")
	restless.Ignore = []invariant.Ignore{{Name: "a", Path: []string{"data"}}}
	require.ErrorContains(t, invariant.Settles(restless), "not settling", "a field is no reason to write for ever")
	restless.Ignore = []invariant.Ignore{{Name: "a"}}
	require.NoError(t, invariant.Settles(restless))
	require.NoError(t, invariant.Repeatable(restless))
}

func TestIgnoreInSafety(t *testing.T) {
	for name, tt := range map[string]struct {
		ignore []invariant.Ignore
		broken bool
	}{
		"nothing":          {broken: true},
		"the plan":         {ignore: []invariant.Ignore{{Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: "InstallPlan"}, Name: "plan"}}},
		"another":          {ignore: []invariant.Ignore{{Name: "other"}}, broken: true},
		"a field of plans": {ignore: []invariant.Ignore{invariant.CreatedOrPresent()}, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(noon)
			plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plan"}}
			plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
			require.NoError(t, c.Load(plan))
			safety := &invariant.Safety{Cluster: c, Ignore: tt.ignore}
			require.NoError(t, safety.Check())
			require.NoError(t, fake.Edit(c, "ns", "plan", func(p *v1alpha1.InstallPlan) { p.Status.Phase = v1alpha1.InstallPlanPhaseFailed }))
			require.Equal(t, tt.broken, safety.Check() != nil)
		})
	}
}

func TestIgnoreThatCannotBeMeant(t *testing.T) {
	for want, ignore := range map[string]invariant.Ignore{
		`Ignore[0] has no pattern of path.Match: "[a"`:                   {Name: "[a"},
		`Ignore[0] has no pattern of path.Match: "[b"`:                   {Path: []string{"data"}, Equal: []string{"[b"}},
		"Ignore[0].Path is empty: Equal and Unordered are about a field": {Unordered: true},
	} {
		w := invariant.World{New: twoConfigMaps, Controllers: labeller(label), Rounds: 2, Ignore: []invariant.Ignore{ignore}}
		require.ErrorContains(t, invariant.Settles(w), want)
		require.ErrorContains(t, invariant.TwoManagers(w), want)
		require.ErrorContains(t, (&invariant.Safety{Cluster: fake.NewCluster(noon), Ignore: w.Ignore}).Check(), want)
	}
}

// A controller notes how often it ran, which two runs need not agree about.
func ExampleIgnore() {
	w := invariant.World{New: twoConfigMaps, Controllers: counting(0), Rounds: 3}
	fmt.Println(invariant.Resumable(w) == nil)
	w.Ignore = []invariant.Ignore{{Kind: schema.GroupKind{Kind: "ConfigMap"}, Path: []string{"data", "run"}}}
	fmt.Println(invariant.Resumable(w) == nil)
	// Output:
	// false
	// true
}
