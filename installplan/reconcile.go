// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is what Reconcile asks for and has to say.
type Outcome struct {
	olmcore.Result
	// SchemaChanges ask which custom resources new schemas would break: the caller reads those of each version, holds
	// them against both schemas, and calls Reconcile again with Input.CustomResources before it carries out anything.
	// Module installplan/crvalidation does that. Who does not judge carries out the Actions: then nothing is refused on
	// behalf of custom resources. Empty once they were judged.
	SchemaChanges []SchemaChange
	// LostBundles are the lookups of the plan whose unpacked content its steps need and is lost, as they are before
	// anything is unpacked: the caller takes each through package unpack again. The plan applies nothing meanwhile,
	// fails when that takes long, and goes on once the content that was planned is back.
	LostBundles []v1alpha1.BundleLookup
	// Unpacked, handed back in the next Input for the plan, spares that its bundles are decoded again; nil at rest, and
	// when they were not needed.
	Unpacked *Memory
	// Checkpoint, handed back in the next Input for the plan, makes a call at rest cheap; nil where something is asked
	// for or said.
	Checkpoint *olmcore.Checkpoint
}

// Reconcile takes one InstallPlan one round further. Actions are, alone in their result, the repair of the plan's
// relations or the removal of its finalizer; else the plan's status first, then the objects of its steps in plan order,
// each under the ServiceAccount that the plan runs as (CustomResourceDefinitions under the controller's own). A plan
// that is Complete and in order gives the zero Result. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncInstallPlans and ExecutePlan.
// Differs: see doc.go and docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	return reconcile(in)
}

// reconcile decides about a plan for which the Checkpoint does not hold.
func reconcile(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	in.Unpacked = in.Unpacked.Next()
	decision := decide(observe(&in, false))
	out := Outcome{Result: decision.outcome(&in), Unpacked: in.Unpacked.Used()}
	if found := decision.found; found != nil {
		out.LostBundles = found.Lost
		out.SchemaChanges = schemaChanges(&in, found.Changes)
	}
	if out.Empty() && len(out.SchemaChanges)+len(out.LostBundles) == 0 {
		out.Checkpoint = in.cover(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// schemaChanges returns the changes for which custom resources have to be judged, nil if they were judged.
func schemaChanges(in *Input, found []step.SchemaChange) (changes []SchemaChange) {
	if in.CustomResources.Complete {
		return nil
	}
	for _, c := range found {
		changes = append(changes, SchemaChange(c))
	}
	return changes
}

// changesStatus reports whether the status of the plan has to be written.
func (d decision) changesStatus(plan *v1alpha1.InstallPlan) bool {
	for i, status := range d.steps {
		if plan.Status.Plan[i] != nil && plan.Status.Plan[i].Status != status {
			return true
		}
	}
	return !apiequality.Semantic.DeepEqual(plan.Status, d.status)
}

// outcome returns the result with the write of the status, if it changes, and the transition, if the phase changes.
func (d decision) outcome(in *Input) olmcore.Result {
	plan, result := in.InstallPlan, d.result
	if d.changesStatus(plan) {
		cause := olmcore.Cause{Reason: ReasonPlanProgressed, Message: "state " + string(d.state)}
		write := olmcore.UpdateStatusOf(plan, d.planWithStatus(plan), cause)
		result.Actions = slices.Concat([]olmcore.Action{write}, result.Actions)
	}
	if from, to := plan.Status.Phase, d.status.Phase; from != to {
		t := olmcore.Moved(olmcore.RefOf(plan), "Phase", string(from), string(to), in.Now)
		t.Message = d.status.Message
		if to == v1alpha1.InstallPlanPhaseFailed {
			t.Reason = cmp.Or(d.reason, string(v1alpha1.InstallPlanReasonComponentFailed))
		}
		result.Transitions = append(result.Transitions, t)
	}
	return result
}

// planWithStatus returns a copy of the plan with the status of the decision.
func (d decision) planWithStatus(plan *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	next := *plan
	next.Status = d.status
	after := next.DeepCopy()
	if after.Status.CatalogSources == nil {
		after.Status.CatalogSources = []string{} // the API requires the list
	}
	for i, status := range d.steps {
		if after.Status.Plan[i] != nil {
			after.Status.Plan[i].Status = status
		}
	}
	after.Status.Plan = slices.DeleteFunc(after.Status.Plan, func(s *v1alpha1.Step) bool { return s == nil })
	return after
}
