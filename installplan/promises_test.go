// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
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

// TestNothingIsInstalledWithoutApproval, whatever fails and however long it
// takes.
func TestNothingIsInstalledWithoutApproval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(userSubscription("rich", manual), userSubscription("b"))
		require.NoError(t, err)
		faults(t, c)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich(), operator("b")), things), plans(things), sweeps(things)}}
		require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
		c.Recover()
		require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
		require.Equal(t, requiresApproval, onlyPlan(t, c).Status.Phase)
		for _, o := range c.Objects() {
			require.NotContains(t, []string{"ClusterServiceVersion", "Service", "ConfigMap", "ClusterRole", "CustomResourceDefinition"}, olmcore.KeyOf(o).Kind)
		}
	})
}

// TestAReferenceMakesAnOwner: creators that install different things, and see
// different Subscriptions, leave after one sweep no Subscription that refers to a
// plan which it does not own.
func TestAReferenceMakesAnOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(userSubscription("a"), userSubscription("b"))
		require.NoError(t, err)
		faults(t, c)
		views := []*fake.View{c.View("one"), c.View("two")}
		creators := []fake.Controller{
			makers(installs(operator("a")), installplan.Config{}), makers(installs(operator("b")), installplan.Config{}), makers(installs(operator("a"), operator("b")), installplan.Config{}),
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			who, view := rapid.IntRange(0, 2).Draw(t, "who"), views[rapid.IntRange(0, 1).Draw(t, "view")]
			c.RestartController()
			if r, err := creators[who].Reconcile(t.Context(), view, types.NamespacedName{Namespace: ns}, c.Now(), nil); err == nil {
				_ = olmcore.Run(t.Context(), c, r.Actions)
			}
			if maybe(t, "see") {
				views[rapid.IntRange(0, 1).Draw(t, "which")].Sync()
			}
			c.Advance(time.Second)
		}
		c.Recover()
		in, err := sweep.Gather(t.Context(), c, ns, installplan.Config{})
		require.NoError(t, err)
		in.Now = c.Now()
		require.NoError(t, olmcore.Run(t.Context(), c, swept(t, in).Actions))
		for _, name := range []string{"a", "b"} {
			s := fake.Find[*v1alpha1.Subscription](c, ns, name)
			if ref := s.Status.InstallPlanRef; ref != nil {
				if p := fake.Find[*v1alpha1.InstallPlan](c, ns, ref.Name); p != nil {
					require.True(t, olmcore.OwnedBy(p, s.UID), "%s refers to %s", name, p.Name)
				}
			}
		}
	})
}

// TestAnImageInstallsWhatItsObjectsWould: references change where a manifest
// comes from, and nothing else.
func TestAnImageInstallsWhatItsObjectsWould(t *testing.T) {
	contents := func(o olmcore.Operator, objects ...olmcore.Object) map[string]any {
		c := world(t, append(objects, userSubscription("rich"))...)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), things), plans(things)}}
		require.NoError(t, d.Settle(t.Context()))
		require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
		all := endState(t, c)
		for key := range all {
			if strings.HasPrefix(key, "InstallPlan") || strings.HasPrefix(key, "Subscription") || strings.Contains(key, bundleName) || key == "Namespace olm" {
				delete(all, key)
			}
		}
		return all
	}
	inline := rich()
	inline.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"x"}`)}}
	image, cm := imageOf(t, rich())
	if diff := cmp.Diff(contents(inline), contents(image, cm)); diff != "" {
		t.Error(diff)
	}
}
