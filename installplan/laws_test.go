// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
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

// TestCheckpointsAreSound checks that a Checkpoint does not hide any change of an Input.
func TestCheckpointsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := invariant.CheckpointSound(installplan.Reconcile, eitherInput(t)); err != nil {
			t.Fatal(err)
		}
	})
	young := Plan(None, nil, func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = *Ago(time.Minute) })
	asking := Subscription("a", RefersTo("install-x"), Manual)
	waiting := input(Plan(RequiresApproval, []*v1alpha1.Step{CRDStep("a.v1", "v1")}, func(p *v1alpha1.InstallPlan) {
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
	}, OwnedBy(asking)), with(asking))
	waiting.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "x", New: []string{"bad"}})
	require.NoError(t, invariant.CheckpointCovers(installplan.Reconcile, waiting, "Unpacked")) // a Complete plan depends on few fields
	for _, in := range []installplan.Input{converged(3, 2), waiting, input(young)} {
		checkpointOf(t, in)
		require.NoError(t, invariant.CheckpointSound(installplan.Reconcile, in))
	}
}

func seen(o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	o.SetUID("uid-seen")
	o.SetResourceVersion("1")
	return o
}

// FuzzPlan reconciles arbitrary bytes as a plan.
func FuzzPlan(f *testing.F) {
	for _, p := range []*v1alpha1.InstallPlan{
		Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1"), nil}, Started(time.Second)), Plan(RequiresApproval, []*v1alpha1.Step{RoleStep("", "r")}),
		Plan(Failed, nil), Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(Subscription("a"))),
	} {
		data, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &v1alpha1.InstallPlan{}
		if json.Unmarshal(data, p) != nil {
			return
		}
		p.Namespace = NS
		in := input(p, with(CSV("a.v1"), Subscription("a", RefersTo(p.Name))))
		r, err := reconcileResult(in)
		if err != nil {
			return
		}
		_, _ = installplan.Assess(in)
		for _, a := range r.Actions {
			if _, err := olmcore.RecordOf(a); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzLawsOfReconcile runs TestLawsOfReconcile with inputs of the fuzzer.
func FuzzLawsOfReconcile(f *testing.F) { f.Fuzz(rapid.MakeFuzz(reconcileLaws)) }
