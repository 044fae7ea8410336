// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is the result of Reconcile: the actions to run, plus requests that only the caller can fulfil.
type Outcome struct {
	olmcore.Result
	// SchemaChanges contains requests to validate custom resources against new schemas. The caller validates the custom
	// resources of each version against both schemas, and calls Reconcile again with Input.CustomResources before it runs
	// any action. Module installplan/crvalidation does that. A caller that runs the actions without validation lets the
	// plan break custom resources. The list is empty if Input.CustomResources is complete.
	SchemaChanges []SchemaChange
	// LostBundles contains a lookup for each bundle that is no longer unpacked although steps need its content. The caller
	// unpacks these bundles again with package unpack. Until then, the plan applies nothing. The plan continues once the
	// planned content exists, and fails if unpacking takes too long.
	LostBundles []v1alpha1.BundleLookup
	// Unpacked contains the decoded bundles for the next call. Pass it as Input.Unpacked to the next call for the plan.
	// Unpacked is nil if no bundle was needed.
	Unpacked *Memory
	// Checkpoint makes the next call for the plan cheap if nothing changes. Pass it as Input.Checkpoint to that call.
	// Checkpoint is nil if the Outcome contains more than RequeueAfter and Unpacked.
	Checkpoint *olmcore.Checkpoint
}

// Reconcile returns the next actions for one InstallPlan. The actions are one of the following:
//   - a correction of the relations of the plan
//   - the cleanup of a deleted plan
//   - an update of the status, followed by the objects of the steps in plan order
//
// Objects are written as the ServiceAccount of the plan, except CustomResourceDefinitions. A Complete plan has actions
// only if its relations are wrong, or if the plan or its namespace is being deleted. The error is an
// *olmcore.InputError.
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
		out.Checkpoint = in.cover(inputs.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// facts are what one call observes about a plan. They are not changed. The steps are evaluated when they are first
// asked for.
type facts struct {
	in   *Input
	plan *v1alpha1.InstallPlan
	// assessing is set by Assess, which ignores writes to the metadata of the plan.
	assessing bool
	// phase is the recorded phase, or none if the API does not have it.
	phase phase
	// repair contains the owners, labels and approval that the plan should have.
	repair relation.Repair
	// later contains the plans that take precedence over the plan, newest first.
	later []*v1alpha1.InstallPlan
	// account is the ServiceAccount that the OperatorGroup of the namespace prescribes. obstacle says why that is unknown,
	// or why the plan may not run under it; "" for no obstacle.
	account  *corev1.ObjectReference
	obstacle string

	evaluated *findings
}

// observe returns the facts about a plan.
func observe(in *Input, assessing bool) *facts {
	plan := in.InstallPlan
	f := &facts{in: in, plan: plan, assessing: assessing, phase: phaseOf(plan), repair: relation.Check(plan, in.Subscriptions.Items)}
	if f.phase == v1alpha1.InstallPlanPhaseComplete {
		return f
	}
	if f.phase != v1alpha1.InstallPlanPhaseFailed {
		f.later = in.later()
	}
	f.account, f.obstacle = relation.AccountOf(in.OperatorGroups.Items)
	if f.obstacle == "" {
		f.obstacle = relation.AccountChange(plan, f.account)
	}
	return f
}

// phaseOf returns the recorded phase of a plan, or none if the API does not have it.
func phaseOf(plan *v1alpha1.InstallPlan) phase {
	if !slices.Contains(everyPhase, plan.Status.Phase) {
		return v1alpha1.InstallPlanPhaseNone
	}
	return plan.Status.Phase
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
