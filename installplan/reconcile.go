// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
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
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	in.Unpacked = in.Unpacked.Next()
	d := decide(&in, false)
	out := Outcome{Result: d.outcome(&in), LostBundles: d.lost, Unpacked: in.Unpacked.Used()}
	if !in.CustomResources.Complete {
		out.SchemaChanges = d.changes
	}
	if out.Empty() && len(out.SchemaChanges)+len(out.LostBundles) == 0 {
		out.Checkpoint = in.cover(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// decision is what one round comes to. The rules make it, each one its part.
type decision struct {
	state State
	// status is what the plan's status becomes but for its steps, which get the statuses of steps; nil for their own. It
	// shares with the plan what did not change.
	status v1alpha1.InstallPlanStatus
	steps  []v1alpha1.StepStatus
	// reason is that of the phase Failed, where it is no step's.
	reason string
	// result is what is said, when to look again, and the actions on the plan and its Subscriptions; actions are those
	// on the objects of its steps.
	result  olmcore.Result
	actions []olmcore.Action
	// changes and lost are the requests of Outcome.
	changes []SchemaChange
	lost    []v1alpha1.BundleLookup
	target  olmcore.Ref
}

// decide asks the rules in order; the first that answers ends the round. A plan that is Complete does not get beyond
// its repair. assessing: relations that are not in order are passed over.
func decide(in *Input, assessing bool) decision {
	plan := in.InstallPlan
	d := decision{status: plan.Status, target: olmcore.RefOf(plan)}
	d.status.Conditions = slices.Clone(plan.Status.Conditions)
	repair := relation.Check(plan, in.Subscriptions.Items)
	switch {
	case plan.DeletionTimestamp != nil:
		d.clean(in)
		return d
	case input.Terminating(in.Namespace):
		d.abandon(in)
		return d
	case repair.ToManual || (repair.Needed || in.mustRelease()) && !assessing:
		d.repair(in, repair)
		return d
	case in.isComplete():
		d.state = StateComplete
		return d
	case len(plan.Status.Plan) == 0 && len(plan.Status.BundleLookups) == 0:
		d.withoutSteps(in)
		return d
	}
	d.advance(in)
	if d.status.Phase == v1alpha1.InstallPlanPhaseComplete && in.isReleasable() && !assessing {
		// The finalizer goes before the plan is Complete, so that a plan which is Complete rests.
		d.status, d.steps, d.actions = plan.Status, nil, nil
		d.release(in, olmcore.Cause{Reason: ReasonPlanDone, Message: "every step is applied"})
		d.result.Requeue(retryInterval)
		if backOff(in, d.result.Actions) {
			d.result.Actions = nil
		}
	}
	return d
}

// advance decides about a plan with steps that is not Complete.
func (d *decision) advance(in *Input) {
	if d.status.Phase == v1alpha1.InstallPlanPhaseFailed {
		d.heal(in)
		return
	}
	if by := in.successor(); by != nil {
		d.supersede(in, relation.SupersededBy(by.Name))
		return
	}
	if !d.check(in) {
		return
	}
	switch d.status.Phase {
	case v1alpha1.InstallPlanPhaseRequiresApproval:
		d.awaitApproval(in)
	case v1alpha1.InstallPlanPhaseInstalling:
		d.install(in)
	default:
		d.state = StatePhaseUnknown
		d.say(olmcore.Warning, ReasonPlanPhaseUnknown, "status.phase", "phase %q is none that the plan could leave", d.status.Phase)
	}
}

// repair makes the plan's relations whole. That a plan lacks the finalizer is no reason for a write; it comes with one.
func (d *decision) repair(in *Input, repair relation.Repair) {
	d.state = StateRepairing
	plan := in.InstallPlan
	after, cause := repair.Update(plan)
	if in.mustRelease() {
		relation.RemoveFinalizer(after)
	} else if !in.Config.DisableFinalizer && !relation.Terminal(plan) && len(plan.Status.Plan) > 0 {
		relation.AddFinalizer(after)
	}
	d.result.Actions = append(d.result.Actions, olmcore.UpdateOf(plan, after, cause))
}

func (d *decision) say(severity olmcore.Severity, reason, path, format string, args ...any) {
	d.result.Diagnostics = append(d.result.Diagnostics, olmcore.Diagnose(severity, reason, d.target, path, format, args...))
}

// changesStatus reports whether the status of the plan has to be written.
func (d *decision) changesStatus(plan *v1alpha1.InstallPlan) bool {
	for i, status := range d.steps {
		if plan.Status.Plan[i] != nil && plan.Status.Plan[i].Status != status {
			return true
		}
	}
	return !apiequality.Semantic.DeepEqual(plan.Status, d.status)
}

// outcome returns the result, with the write of the status and the transition where there are any.
func (d *decision) outcome(in *Input) olmcore.Result {
	plan, result := in.InstallPlan, d.result
	if d.changesStatus(plan) {
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
		cause := olmcore.Cause{Reason: ReasonPlanProgressed, Message: "state " + string(d.state)}
		result.Actions = append(result.Actions, olmcore.UpdateStatusOf(plan, after, cause))
	}
	result.Actions = append(result.Actions, d.actions...)
	if from, to := plan.Status.Phase, d.status.Phase; from != to {
		t := olmcore.Moved(d.target, "Phase", string(from), string(to), in.Now)
		t.Message = d.status.Message
		if to == v1alpha1.InstallPlanPhaseFailed {
			t.Reason = cmp.Or(d.reason, string(v1alpha1.InstallPlanReasonComponentFailed))
		}
		result.Transitions = append(result.Transitions, t)
	}
	return result
}
