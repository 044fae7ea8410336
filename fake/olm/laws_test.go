// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
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
)

// rounds is the bound of the settling law for a whole namespace: a resolution,
// its plan of about nine rounds, and its versions of about five.
const rounds = 24

// lawWorlds are the worlds in which every law must hold, by what goes on in them.
var lawWorlds = map[string]func(*world) error{
	"a catalog starts":         func(*world) error { return nil },
	"an operator is installed": func(w *world) error { return w.subscribe("alpha", v1alpha1.ApprovalAutomatic) },
	"two operators, one of them Manual": func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalManual); err != nil {
			return err
		}
		return w.subscribe("beta", v1alpha1.ApprovalAutomatic)
	},
	"an operator is upgraded": func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalAutomatic); err != nil {
			return err
		}
		if err := w.driver.RunFor(w.ctx, time.Minute); err != nil {
			return err
		}
		w.heads["alpha"]++
		return nil
	},
	"an upgrade waits for approval": func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalManual); err != nil {
			return err
		}
		if err := w.driver.RunFor(w.ctx, time.Minute); err != nil {
			return err
		}
		if err := w.approveAll(); err != nil {
			return err
		}
		err := w.driver.RunFor(w.ctx, time.Minute)
		w.heads["alpha"]++
		return err
	},
	"an operator is removed": func(w *world) error {
		if err := w.subscribe("alpha", v1alpha1.ApprovalAutomatic); err != nil {
			return err
		}
		if err := w.driver.RunFor(w.ctx, time.Minute); err != nil {
			return err
		}
		if err := w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: "alpha"}); err != nil {
			return err
		}
		return w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: namespace, Name: csvName("alpha", 1)})
	},
}

// whole returns the world with all controllers, as the laws want it.
func whole(t *testing.T, prepare func(*world) error) invariant.World {
	var last *world
	return invariant.World{
		New: func() (*fake.Cluster, error) {
			last = newWorld(t)
			return last.cluster, prepare(last)
		},
		Controllers: func(*fake.Cluster) []fake.Controller {
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
	for name, prepare := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Settles(whole(t, prepare))) })
	}
}

func TestActionsMayBeRepeated(t *testing.T) {
	for name, prepare := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Repeatable(whole(t, prepare))) })
	}
}

func TestActionsMayBeLost(t *testing.T) {
	for name, prepare := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.Resumable(whole(t, prepare))) })
	}
}

func TestTwoManagersComeToRest(t *testing.T) {
	for name, prepare := range lawWorlds {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.TwoManagers(whole(t, prepare))) })
	}
}
