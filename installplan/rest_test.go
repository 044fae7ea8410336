// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestAPlanThatIsCompleteRests: its finalizer went before.
func TestAPlanThatIsCompleteRests(t *testing.T) {
	c := world(t, userSubscription("rich"))
	var held []bool
	var completed string
	watch := func(inner fake.Controller) fake.Controller {
		reconcile := inner.Reconcile
		inner.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			for _, p := range everyPlan(t, c) {
				held = append(held, slices.Contains(p.Finalizers, installplan.Finalizer))
				if p.Status.Phase == complete && completed == "" {
					completed = p.ResourceVersion
				}
			}
			return reconcile(ctx, r, key, now, last)
		}
		return inner
	}
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), watch(plans(things)), watch(sweeps(things))}}
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.True(t, held[0], "it is there from the creation")
	require.False(t, slices.Contains(held[slices.Index(held, false):], true), "once gone it stays away")
	p := onlyPlan(t, c)
	require.Equal(t, complete, p.Status.Phase)
	require.Equal(t, completed, p.ResourceVersion)
}

// TestABarePlanIsLeftAlone: what a client creates and is about to give a status.
func TestABarePlanIsLeftAlone(t *testing.T) {
	bare := plan(none, nil)
	bare.OwnerReferences = nil
	c := world(t, bare)
	before := onlyPlan(t, c)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(things), sweeps(things)}}
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, before.ResourceVersion, onlyPlan(t, c).ResourceVersion)

	given := before.DeepCopy()
	given.Status = plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}).Status
	require.NoError(t, c.UpdateStatus(given))
	given = onlyPlan(t, c)
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, given.Finalizers, onlyPlan(t, c).Finalizers)
	require.Empty(t, onlyPlan(t, c).Finalizers)
}
