// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// Reconcile takes one InstallPlan one round further. Actions are, alone in their
// result, the repair of the plan's relations or the removal of its finalizer;
// else the plan's status first, then the objects of its steps in plan order,
// each under the ServiceAccount that the plan runs as (CustomResourceDefinitions
// under the controller's own). A plan that is Complete and in order gives the
// zero Result. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncInstallPlans and ExecutePlan.
// Differs: see doc.go and docs/deviations.md.
func Reconcile(in Input) (olmcore.Result, error) {
	if err := in.validate(); err != nil {
		return olmcore.Result{}, err
	}
	if in.isComplete() && !in.needsRepair() {
		return olmcore.Result{}, nil
	}
	d, err := newDecision(in, false)
	if err != nil {
		return olmcore.Result{}, err
	}
	return d.result, nil
}

// isComplete reports that the plan is Complete and stays: nothing but its relations
// will ever be looked at. This is the path of nearly every plan, so it neither
// allocates nor looks at steps.
func (in *Input) isComplete() bool {
	plan := in.InstallPlan
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && plan.DeletionTimestamp == nil && !terminating(in.Namespace)
}

// newDecision decides about a copy of the input, which stays off the heap on
// the path above.
func newDecision(in Input, assessing bool) (*decision, error) {
	d := &decision{in: &in, assessing: assessing}
	return d, d.decide()
}

// decision is one round in the making.
type decision struct {
	in     *Input
	state  State
	reason string // of the phase Failed, where it is not a step
	result olmcore.Result
	// next is a copy of the plan with the status that this round stores; nil until
	// a rule needs it.
	next *v1alpha1.InstallPlan
	// assessing: relations that are not in order are passed over.
	assessing bool
	// sweeping: the finalizer is Reconcile's.
	sweeping bool
	// steps are the actions on step objects.
	steps []olmcore.Action
	// schemas are the changes that custom resources were judged for.
	schemas []SchemaChange
	// anew: the time for what is refused starts in this round, see refusedUntil.
	anew bool
	// lost are the bundles whose content is missing.
	lost []v1alpha1.BundleLookup
}

// decide asks the rules in order; the first that answers ends the round. A plan
// that is Complete does not get beyond its repair.
func (d *decision) decide() error {
	plan := d.in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil:
		d.state = StateDeleting
		d.clean()
		return nil
	case terminating(d.in.Namespace):
		d.state = StateNamespaceTerminating
		d.abandon()
		return nil
	case d.in.mustBeManual() || d.in.needsRepair() && !d.assessing:
		d.state = StateRepairing
		d.repair()
		return nil
	case len(plan.Status.Plan) == 0 && len(plan.Status.BundleLookups) == 0:
		d.withoutStatus()
		return nil
	}
	if err := d.in.validateDeep(); err != nil {
		return err
	}
	d.next = copyPlan(plan)
	if err := d.advance(); err != nil {
		return err
	}
	if d.next.Status.Phase == v1alpha1.InstallPlanPhaseComplete && d.in.releasable() && !d.assessing {
		d.release()
		return nil
	}
	d.finish()
	return nil
}

// release takes the finalizer off before the plan is Complete, so that a plan which
// is Complete rests.
func (d *decision) release() {
	d.removeFinalizer(olmcore.Cause{Reason: ReasonPlanDone, Message: "every step is applied"})
	d.result.Requeue(d.retryInterval())
}

// copyPlan is DeepCopy with all steps in one piece of memory.
func copyPlan(plan *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	rest := *plan
	rest.Status.Plan = nil
	next := rest.DeepCopy()
	if plan.Status.Plan == nil {
		return next
	}
	steps := make([]v1alpha1.Step, len(plan.Status.Plan))
	next.Status.Plan = make([]*v1alpha1.Step, len(steps))
	for i, s := range plan.Status.Plan {
		if s != nil {
			steps[i] = *s
			next.Status.Plan[i] = &steps[i]
		}
	}
	return next
}

// advance decides about a plan with steps that is not Complete.
func (d *decision) advance() error {
	status := &d.next.Status
	if status.Phase == v1alpha1.InstallPlanPhaseFailed {
		return d.failed()
	}
	if by := d.in.successor(); by != "" {
		d.supersede(by)
		return nil
	}
	if !d.check() {
		return nil
	}
	switch status.Phase {
	case v1alpha1.InstallPlanPhaseRequiresApproval:
		return d.awaitApproval()
	case v1alpha1.InstallPlanPhaseInstalling:
		return d.install()
	}
	d.state = StatePhaseUnknown
	d.warn(ReasonPlanPhaseUnknown, "status.phase", "phase %q is none that the plan could leave", status.Phase)
	return nil
}

// finish turns next and the step actions into the result.
func (d *decision) finish() {
	plan := d.in.InstallPlan
	if !sameStatus(&plan.Status, &d.next.Status) {
		if d.next.Status.CatalogSources == nil {
			d.next.Status.CatalogSources = []string{}
		}
		d.next.Status.Plan = withoutNil(d.next.Status.Plan)
		cause := olmcore.Cause{Reason: ReasonPlanProgressed, Message: "state " + string(d.state)}
		d.result.Actions = append(d.result.Actions, olmcore.UpdateStatusOf(plan, d.next, cause))
	}
	d.result.Actions = append(d.result.Actions, d.steps...)
	if from, to := plan.Status.Phase, d.next.Status.Phase; from != to {
		t := olmcore.Transition{
			Target: olmcore.RefOf(plan).Unversioned(), Type: "Phase", From: string(from), To: string(to),
			Message: d.next.Status.Message, At: olmcore.Timestamp(d.in.Now), Bound: olmcore.Exact, Certainty: olmcore.CertaintyObserved,
		}
		if to == v1alpha1.InstallPlanPhaseFailed {
			t.Reason = or(d.reason, string(v1alpha1.InstallPlanReasonComponentFailed))
		}
		d.result.Transitions = append(d.result.Transitions, t)
	}
}

// sameStatus compares what a round may change.
func sameStatus(a, b *v1alpha1.InstallPlanStatus) bool {
	return a.Phase == b.Phase && a.Message == b.Message && a.StartTime.Equal(b.StartTime) &&
		slices.EqualFunc(a.Plan, b.Plan, func(a, b *v1alpha1.Step) bool { return recorded(a) == recorded(b) }) &&
		(len(a.Conditions)+len(b.Conditions) == 0 || apiequality.Semantic.DeepEqual(a.Conditions, b.Conditions)) &&
		(a.AttenuatedServiceAccountRef == nil && b.AttenuatedServiceAccountRef == nil ||
			apiequality.Semantic.DeepEqual(a.AttenuatedServiceAccountRef, b.AttenuatedServiceAccountRef))
}

func (d *decision) phase() v1alpha1.InstallPlanPhase {
	if d.next != nil {
		return d.next.Status.Phase
	}
	return d.in.InstallPlan.Status.Phase
}

func (d *decision) message() string {
	if d.next != nil {
		return d.next.Status.Message
	}
	return d.in.InstallPlan.Status.Message
}

func withoutNil(steps []*v1alpha1.Step) []*v1alpha1.Step {
	kept := steps[:0]
	for _, s := range steps {
		if s != nil {
			kept = append(kept, s)
		}
	}
	return kept
}
