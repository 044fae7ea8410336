// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

const labelled = "example.com/seen"

// labeller is a controller of a user: it labels every Subscription.
func labeller() []controller.Controller {
	kind := v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	keysOf := func(o olmcore.Object) []types.NamespacedName {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
	}
	return []controller.Controller{{
		Name: "labels", Kinds: []schema.GroupVersionKind{kind}, KeysOf: keysOf,
		Affected: func(o olmcore.Object) []types.NamespacedName {
			if olmcore.GVKOf(o) == kind {
				return keysOf(o)
			}
			return nil
		},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (res olmcore.Result, err error) {
			before, err := olmcore.Get[*v1alpha1.Subscription](ctx, r, key.Namespace, key.Name)
			if err != nil || before == nil || before.Labels[labelled] == "yes" {
				return res, err
			}
			after := before.DeepCopy()
			metav1.SetMetaDataLabel(&after.ObjectMeta, labelled, "yes")
			res.Actions = []olmcore.Action{olmcore.UpdateOf(before, after, olmcore.Cause{Reason: "Seen"})}
			return res, nil
		},
	}}
}

// walk takes n steps of a seed.
func walk(h *chaos.History, seed uint64, n int) error {
	r, steps := random(seed), chaos.Steps(h.Options)
	for range n {
		if err := h.Do(chaos.Draw(steps, r), r); err != nil {
			return err
		}
	}
	return nil
}

func TestAHistoryRunsControllersOfItsUser(t *testing.T) {
	starts, writes := 0, 0
	h := chaos.New(chaos.Options{
		Setting: chaos.Setting{Approves: true},
		Objects: []olmcore.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mine", Name: "settings"}}},
		Controllers: func() []controller.Controller {
			starts++
			return labeller()
		},
		AfterAction: func(e controller.Event) error {
			if e.Controller == "labels" && e.Err == nil {
				_, target, _ := e.Action.Describe()
				require.Equal(t, target.Name, e.Key.Name)
				writes++
			}
			return nil
		},
	})
	require.Equal(t, 2, starts, "two managers")
	require.NoError(t, walk(h, 7, 400))
	require.NoError(t, h.Heal())
	require.Greater(t, starts, 3, "the last of the requirements is that a new manager writes nothing")
	require.NotZero(t, writes)
	for _, o := range h.Cluster.Objects() {
		if s, is := o.(*v1alpha1.Subscription); is {
			require.Equal(t, "yes", s.Labels[labelled], s.Name)
		}
	}
	require.NotNil(t, fake.Find[*corev1.ConfigMap](h.Cluster, "mine", "settings"))
}

func TestAHistoryEndsWithWhatMustNeverBe(t *testing.T) {
	never := errors.New("never")
	for name, o := range map[string]chaos.Options{
		"a state": {Check: func(h *chaos.History) error {
			if fake.Find[*corev1.Service](h.Cluster, "olm", "community") != nil {
				return never
			}
			return nil
		}},
		"a write": {AfterAction: func(controller.Event) error { return never }},
	} {
		t.Run(name, func(t *testing.T) {
			o.Tells = true
			h := chaos.New(o)
			require.ErrorIs(t, walk(h, 1, 400), never)
			steps := h.Figures.Steps
			require.ErrorIs(t, h.Do(chaos.Steps(o)[0], random(1)), never, "it stays")
			require.Equal(t, steps, h.Figures.Steps)
			require.ErrorIs(t, h.RunFor(time.Hour), never)
			require.ErrorIs(t, h.Heal(), never)
			require.NotEmpty(t, h.Story())
		})
	}
}

func TestWhoApprovesIsUpToTheSetting(t *testing.T) {
	for _, approves := range []bool{true, false} {
		h := chaos.New(chaos.Options{Setting: chaos.Setting{Approves: approves, Deletes: true}})
		require.NoError(t, walk(h, 3, 600))
		require.NoError(t, h.Heal())
		require.Equal(t, approves, h.Figures.Approvals > 0)
		waits := slices.ContainsFunc(h.Cluster.Objects(), func(o olmcore.Object) bool {
			p, is := o.(*v1alpha1.InstallPlan)
			return is && p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval
		})
		require.Equal(t, approves, !waits)
	}
}

func TestStepsAreThoseOfTheSetting(t *testing.T) {
	mine := chaos.Step{Name: "mine", Weight: 1, Only: chaos.Setting{Attacks: true}, Do: func(*chaos.History, chaos.Choices) {}}
	names := func(s chaos.Setting) (names []string) {
		for _, step := range chaos.Steps(chaos.Options{Setting: s, Steps: []chaos.Step{mine}}) {
			names = append(names, step.Name)
		}
		return names
	}
	require.NotContains(t, names(chaos.Setting{}), "mine")
	require.NotContains(t, names(chaos.Setting{}), "approve every plan")
	require.Contains(t, names(chaos.Setting{Attacks: true}), "mine")
	require.Contains(t, names(chaos.Setting{Approves: true}), "approve every plan")
	drawn := map[string]int{}
	two, r := []chaos.Step{{Name: "often", Weight: 9}, {Name: "seldom", Weight: 1}}, random(1)
	for range 1000 {
		drawn[chaos.Draw(two, r).Name]++
	}
	require.InDelta(t, 100, drawn["seldom"], 40)
}

// A world in which users approve, nodes fail and managers restart, with a controller of the user's own: it must come to
// rest with everything installed.
func ExampleNew() {
	h := chaos.New(chaos.Options{Setting: chaos.Setting{Approves: true}, Controllers: labeller})
	random, steps := random(20260102), chaos.Steps(h.Options)
	for range 300 {
		if err := h.Do(chaos.Draw(steps, random), random); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(h.Heal(), h.Figures.Steps)
	// Output: <nil> 300
}
