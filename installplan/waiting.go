// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// checkInterval is the time between two checks of missing OperatorGroups, and of the custom resources that a plan
// failed of.
const checkInterval = 30 * time.Second

// withoutSteps is the round of a plan that has no steps.
func (d *decision) withoutSteps(in *Input) {
	plan := in.InstallPlan
	d.state = StateWithoutStatus
	if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		d.state = StateFailed
	} else if left := plan.CreationTimestamp.Add(relation.OrphanGrace).Sub(in.Now); left > 0 {
		d.result.Requeue(left)
	} else {
		d.say(olmcore.Warning, ReasonPlanWithoutStatus, "status.plan", "the plan has no steps %s after its creation", relation.OrphanGrace)
	}
}

// successor returns the name of the plan that superseded the plan, empty when none did. A plan that started is not
// superseded, as a step of it may have been applied: half an operator helps less than two versions.
func (in *Input) successor() string {
	plan := in.InstallPlan
	if relation.Terminal(plan) || plan.Spec.Generation <= 0 || len(plan.Status.Plan) == 0 || !relation.Untouched(plan) {
		return ""
	}
	return relation.Successor(plan, in.Subscriptions.Items)
}

// supersede ends a plan whose place another one took: it is never executed, approved or not.
func (d *decision) supersede(in *Input, by string) {
	d.state, d.reason = StateSuperseded, ReasonSuperseded
	d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseFailed, "superseded by InstallPlan "+by
	d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, ReasonSuperseded, d.status.Message)
	d.say(olmcore.Info, ReasonSuperseded, "", "no Subscription refers to it, InstallPlan %s took its place", by)
}

// check reports whether the OperatorGroup of the namespace lets a plan go on, and records what it finds.
func (d *decision) check(in *Input) bool {
	account, problem := relation.AccountOf(in.OperatorGroups.Items)
	if problem == "" {
		problem = relation.AccountChange(in.InstallPlan, account)
	}
	if problem != "" {
		d.state = StateCheckFailed
		d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, string(v1alpha1.InstallPlanReasonInstallCheckFailed), problem)
		d.say(olmcore.Warning, ReasonInstallCheckFailed, "", "%s", problem)
		d.result.Requeue(checkInterval)
		return false
	}
	removeConditions(&d.status, func(c v1alpha1.InstallPlanCondition) bool {
		return c.Type == v1alpha1.InstallPlanInstalled && c.Reason == v1alpha1.InstallPlanReasonInstallCheckFailed
	})
	if !apiequality.Semantic.DeepEqual(account, d.status.AttenuatedServiceAccountRef) {
		d.state = StateServiceAccountChanged
		d.status.AttenuatedServiceAccountRef = account.DeepCopy()
		d.result.Requeue(retryInterval)
		return false
	}
	return true
}

// awaitApproval is the round of a plan in phase RequiresApproval.
func (d *decision) awaitApproval(in *Input) {
	plan := in.InstallPlan
	if plan.Spec.Approved {
		d.state = StateApproved
		d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseInstalling, ""
		d.result.Requeue(retryInterval)
		return
	}
	d.state = StateRequiresApproval
	owners := slices.DeleteFunc(slices.Clone(in.Subscriptions.Items), func(s *v1alpha1.Subscription) bool { return !olmcore.OwnedBy(plan, s.UID) })
	if len(owners) > 0 && !slices.ContainsFunc(owners, relation.WantsManual) {
		d.say(olmcore.Info, ReasonPendingPlanCouldBeAutomatic, "spec.approval",
			"no Subscription that owns the plan wants manual approval any more")
	}
	e := d.evaluate(in, true)
	for i, v := range e.Verdicts {
		if v.Refused() {
			d.say(olmcore.Warning, ReasonStepRefused, e.Path(i), "%s", report.Clip(v.Message))
		}
	}
}

// conditionOf returns the condition of a type, nil when there is none.
func conditionOf(status *v1alpha1.InstallPlanStatus, kind v1alpha1.InstallPlanConditionType) *v1alpha1.InstallPlanCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// retryingSince returns the transition time of condition Retrying; ok is false when there is none.
func retryingSince(status *v1alpha1.InstallPlanStatus) (since time.Time, ok bool) {
	c := conditionOf(status, ConditionRetrying)
	if c == nil || c.LastTransitionTime == nil {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

func removeConditions(status *v1alpha1.InstallPlanStatus, which func(v1alpha1.InstallPlanCondition) bool) {
	if status.Conditions = slices.DeleteFunc(status.Conditions, which); len(status.Conditions) == 0 {
		status.Conditions = nil
	}
}

func isRetrying(c v1alpha1.InstallPlanCondition) bool { return c.Type == ConditionRetrying }

// setCondition records a condition, once, and keeps its times as long as status, reason and message stay the same.
// lastTransitionTime follows the status alone.
func (d *decision) setCondition(in *Input, kind v1alpha1.InstallPlanConditionType, status corev1.ConditionStatus, reason, message string) {
	at := olmcore.Timestamp(in.Now)
	c := v1alpha1.InstallPlanCondition{
		Type: kind, Status: status, Reason: v1alpha1.InstallPlanConditionReason(reason), Message: message,
		LastUpdateTime: &at, LastTransitionTime: &at,
	}
	if have := d.status.GetCondition(kind); have.Status == status && have.Reason == c.Reason && have.Message == message {
		c.LastUpdateTime = have.LastUpdateTime
	}
	d.status.SetCondition(c)
	first := true
	removeConditions(&d.status, func(other v1alpha1.InstallPlanCondition) bool {
		again := other.Type == kind && !first
		first = first && other.Type != kind
		return again
	})
}
