// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryEdgeIsTaken by a state of its own; who takes it is told apart by the
// cases of TestPhases and TestCreateMakesAPlanInTwoRounds.
func TestEveryEdgeIsTaken(t *testing.T) {
	blocked := plan(installing, []*v1alpha1.Step{step("", "", "v1", "Gizmo", "g", "{}")}, started(0))
	done := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, started(0))
	asked := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	retried := input(plan(failed, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
	}))
	retried.RBACChanged = true
	taken := map[installplan.State]bool{"": true}
	for _, in := range []installplan.Input{
		input(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, asked(true))),
		input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, asked(false))),
		input(done, with(csv("a.v1"))), input(blocked), retried,
	} {
		a := installplan.Assess(in)
		edge := installplan.Edge{From: in.InstallPlan.Status.Phase, To: a.Phase, State: a.State}
		require.Contains(t, installplan.Edges(), edge)
		taken[a.State] = true
	}
	for _, e := range installplan.Edges() {
		require.True(t, taken[e.State], "%+v", e)
	}
}

// TestNoOtherEdgeOccurs, whatever the input, and Assess decides as Reconcile
// does.
func TestNoOtherEdgeOccurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		r, err := installplan.Reconcile(in)
		require.NoError(t, err)
		from, to := in.InstallPlan.Status.Phase, statusOf(in, r).Phase
		a := installplan.Assess(in)
		require.Equal(t, to, a.Phase)
		require.Equal(t, r.RequeueAfter, a.RequeueAfter)
		if from == to {
			require.Empty(t, r.Transitions)
			return
		}
		require.True(t, slices.Contains(installplan.Edges(), installplan.Edge{From: from, To: to, State: a.State}), "%s -> %s in %s", from, to, a.State)
		require.Len(t, r.Transitions, 1)
		require.Equal(t, string(to), r.Transitions[0].To)
	})
}

// TestRulesOfEveryRound are what must hold of a single decision.
func TestRulesOfEveryRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := in.InstallPlan
		r, err := installplan.Reconcile(in)
		require.NoError(t, err)
		got := statusOf(in, r)
		var steps []olmcore.Action
		for _, a := range r.Actions {
			verb, target, _ := a.Describe()
			if target.Kind == "InstallPlan" {
				continue
			}
			if p.DeletionTimestamp == nil {
				steps = append(steps, a)
			} else {
				require.Equal(t, "Subscription", target.Kind)
			}
			var o olmcore.Object
			switch a := a.(type) {
			case olmcore.Create:
				o = a.Object
				require.Equal(t, "true", o.GetLabels()[olmcore.LabelManaged], "%s", target)
			case olmcore.Update:
				o = a.After
				for key, value := range a.Before.GetLabels() {
					require.Contains(t, o.GetLabels(), key, "%s lost label %s=%s", target, key, value)
				}
				for _, ref := range a.Before.GetOwnerReferences() {
					require.True(t, olmcore.OwnedBy(o, ref.UID), "%s lost an owner", target)
				}
				if !isManaged(a.Before) && target.Kind != "CustomResourceDefinition" {
					require.False(t, isManaged(o), "%s became ours", target)
				}
			case olmcore.Delete:
				require.Equal(t, olmcore.VerbDelete, verb)
				require.NotEmpty(t, a.Target.UID)
			}
			if o != nil {
				for _, ref := range o.GetOwnerReferences() {
					require.NotEmpty(t, ref.UID)
				}
			}
		}
		if len(steps) > 0 {
			require.Equal(t, installing, p.Status.Phase)
			require.Equal(t, installing, got.Phase)
			require.NotNil(t, p.Status.StartTime)
		}
		if got.Phase == complete && p.Status.Phase != complete {
			require.Empty(t, steps)
			for _, s := range got.Plan {
				require.True(t, s.Status == created || s.Status == present || s.Optional && s.Status == v1alpha1.StepStatusNotCreated)
			}
		}
		if p.Status.StartTime != nil && got.StartTime == nil {
			require.Equal(t, failed, p.Status.Phase)
		}
		for _, d := range r.Diagnostics {
			if d.Reason == installplan.ReasonStepRefused {
				require.Empty(t, steps, "a step is refused")
			}
		}
		for i, s := range got.Plan {
			if len(got.Plan) == len(p.Status.Plan) && s != nil && s.Status == waitingAPI && p.Status.Plan[i] != nil && p.Status.Plan[i].Status != waitingAPI {
				require.Equal(t, "CustomResourceDefinition", s.Resource.Kind)
			}
		}
	})
}

func isManaged(o olmcore.Object) bool {
	if o.GetLabels()[olmcore.LabelManaged] == "true" || o.GetLabels()[olmcore.LabelOwner] != "" {
		return true
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "ClusterServiceVersion" {
			return true
		}
	}
	return false
}
