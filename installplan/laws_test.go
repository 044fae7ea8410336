// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func reconcileLaws(t *rapid.T) {
	in := eitherInput(t)
	if err := invariant.Laws(reconcileResult, in); err != nil {
		t.Fatal(err)
	}
	requests := func(in installplan.Input) (olmcore.Result, error) {
		changes, err := schemaChanges(in)
		if err != nil {
			return olmcore.Result{}, err
		}
		lost, err := lostBundles(in)
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{{Message: fmt.Sprint(len(changes), lost)}}}, err
	}
	if err := invariant.Deterministic(requests, in); err != nil {
		t.Fatal(err)
	}
	if err := invariant.Pure(requests, in); err != nil {
		t.Fatal(err)
	}
}

func TestLawsOfReconcile(t *testing.T) { rapid.Check(t, reconcileLaws) }

// TestCheckpointsAreSound: no change of an Input goes unnoticed.
func TestCheckpointsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := invariant.CheckpointSound(installplan.Reconcile, eitherInput(t)); err != nil {
			t.Fatal(err)
		}
	})
	young := plan(none, nil, func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = *ago(time.Minute) })
	asking := subscription("a", refersTo("install-x"), manual)
	waiting := input(plan(requiresApproval, []*v1alpha1.Step{crdStep("a.v1", "v1")}, func(p *v1alpha1.InstallPlan) {
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
	}, ownedBy(asking)), with(asking))
	waiting.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "x", New: []string{"bad"}})
	require.NoError(t, invariant.CheckpointCovers(installplan.Reconcile, waiting)) // of a complete plan little matters
	for _, in := range []installplan.Input{converged(3, 2), waiting, input(young)} {
		checkpointOf(t, in)
		require.NoError(t, invariant.CheckpointSound(installplan.Reconcile, in))
	}
}
