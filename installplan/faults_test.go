// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestFaultsOnlyDelay: lost writes, lost answers, conflicts and crashes change nothing in the end, and on the way no
// step object appears before the plan says that it started.
func TestFaultsOnlyDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, written := []olmcore.Object{userSubscription("rich")}, map[string]string{"Service": "service", "ConfigMap": "config"}
		if maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
			delete(written, "Service") // the user's
		}
		c, err := newWorld(objects...)
		require.NoError(t, err)
		faults(t, c)
		started := false
		watch := func(controller fake.Controller) fake.Controller {
			inner := controller.Reconcile
			controller.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
				result, err := inner(ctx, r, key, now, last)
				plans, _ := olmcore.List[*v1alpha1.InstallPlan](ctx, c, ns, nil)
				for _, p := range plans {
					started = started || p.Status.StartTime != nil && p.Status.Phase == installing
				}
				for _, a := range result.Actions {
					if _, target, _ := a.Describe(); target.Kind != "InstallPlan" && target.Kind != "Subscription" {
						require.True(t, started, "%s before the start was stored", target)
					}
				}
				return result, err
			}
			return controller
		}
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), watch(plans(things))}}
		require.NoError(t, d.RunFor(context.Background(), 3*time.Minute))
		c.Recover()
		require.NoError(t, d.RunFor(context.Background(), 3*time.Minute))
		p := onlyPlan(t, c)
		require.Equal(t, complete, p.Status.Phase, p.Status.Message)
		require.Empty(t, p.Finalizers)
		require.Equal(t, "", p.Status.Message)
		for kind, name := range written {
			o, err := c.Get(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: kind}, ns, name)
			require.NoError(t, err)
			require.NotEmpty(t, o.GetAnnotations()[stepHash])
		}
	})
}

// without returns a list without the entry at an index.
func without[T any](list olmcore.Observed[T], i int) olmcore.Observed[T] {
	return olmcore.Found(slices.Delete(slices.Clone(list.Items), i, i+1)...)
}
