// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"maps"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// rounds is the bound of the settling law for a whole namespace: a resolution,
// its plan of about nine rounds, and its versions of about five.
const rounds = 24

// lawWorld is a world in which every law must hold. before runs once, and begin in each of the many copies of that
// world.
type lawWorld struct{ before, begin func(*world) error }

func nothing(*world) error { return nil }

// lawWorlds contains the worlds of the laws, by a description.
var lawWorlds = map[string]lawWorld{
	"a catalog starts":         {nothing, nothing},
	"an operator is installed": {nothing, func(w *world) error { return w.subscribe("alpha", v1alpha1.ApprovalAutomatic) }},
	"two operators, one of them Manual": {nothing, func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalManual); err != nil {
			return err
		}
		return w.subscribe("beta", v1alpha1.ApprovalAutomatic)
	}},
	"an operator is upgraded": {installAlpha, publishAlpha},
	"an upgrade waits for approval": {func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalManual); err != nil {
			return err
		}
		if err := w.driver.RunFor(w.ctx, time.Minute); err != nil {
			return err
		}
		if err := w.approveAll(); err != nil {
			return err
		}
		return w.driver.RunFor(w.ctx, time.Minute)
	}, publishAlpha},
	"an operator is removed": {installAlpha, func(w *world) error {
		if err := w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: "alpha"}); err != nil {
			return err
		}
		return w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: namespace, Name: csvName("alpha", 1)})
	}},
}

func installAlpha(w *world) error {
	if err := w.subscribe("alpha", v1alpha1.ApprovalAutomatic); err != nil {
		return err
	}
	return w.driver.RunFor(w.ctx, time.Minute)
}

func publishAlpha(w *world) error {
	w.heads["alpha"]++
	return nil
}

// copyOf returns another world with the same objects.
func copyOf(w *world) (*world, error) {
	other := *w
	other.driver = nil // it drives the other cluster
	other.heads = maps.Clone(w.heads)
	other.cluster = fake.NewCluster(w.cluster.Now())
	other.cluster.AutoCreateNamespaces = true
	other.cluster.Sharing().Watch()
	return &other, other.cluster.Load(w.cluster.Objects()...)
}

// whole returns the world with all controllers, as the laws want it.
func whole(t *testing.T, of lawWorld) invariant.World {
	first := newWorld(t)
	require.NoError(t, of.before(first))
	require.NoError(t, first.cluster.Settle())
	var last *world
	return invariant.World{
		New: func() (c *fake.Cluster, err error) {
			if last, err = copyOf(first); err != nil {
				return nil, err
			}
			return last.cluster, of.begin(last)
		},
		Controllers: func(*fake.Cluster) []controller.Controller {
			o := &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Resolve: last.resolve}}
			return o.Controllers()
		},
		Rounds:     rounds,
		SettleTime: time.Minute,
		Ignore:     ignore,
	}
}

// ignore: conditions stand in the order in which they were first written.
var ignore = []invariant.Ignore{
	invariant.CreatedOrPresent(),
	{Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.SubscriptionKind}, Path: []string{"status", "conditions"}, Unordered: true},
}

func TestWorldsSettle(t *testing.T) {
	for name, of := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Settles(whole(t, of))) })
	}
}

func TestActionsMayBeRepeated(t *testing.T) {
	for name, of := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Repeatable(whole(t, of))) })
	}
}

func TestActionsMayBeLost(t *testing.T) {
	for name, of := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Resumable(whole(t, of))) })
	}
}

func TestTwoManagersComeToRest(t *testing.T) {
	for name, of := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.TwoManagers(whole(t, of))) })
	}
}
