// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// checkInterval is the time between two checks of missing OperatorGroups, and of the custom resources that a plan
// failed of.
const checkInterval = 30 * time.Second

// withoutSteps is the round of a plan that has no steps. A plan that no Subscription waits for ends after relation.OrphanGrace. The
// end is a write of the status, so the API server decides between the end and the steps that another controller may write.
func (d *decision) withoutSteps(in *Input) {
	plan := in.InstallPlan
	left := plan.CreationTimestamp.Add(relation.OrphanGrace).Sub(in.Now)
	reason := ""
	if plan.Status.Phase == v1alpha1.InstallPlanPhaseNone {
		reason = in.notAwaited()
	}
	switch d.state = StateWithoutStatus; {
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		d.state = StateFailed
	case left > 0:
		d.result.Requeue(left)
	case reason != "":
		d.supersede(in, reason)
	default:
		d.say(olmcore.Warning, ReasonPlanWithoutStatus, "status.plan", "the plan has no steps %s after its creation", relation.OrphanGrace)
	}
}

// notAwaited returns why no Subscription waits for the steps of the plan. It returns "" if one does, if a Subscription may
// reference an earlier plan of the same name, or if a user approved the plan and no Subscription references it yet.
func (in *Input) notAwaited() string {
	plan, isReferenced := in.InstallPlan, false
	for _, s := range in.Subscriptions.Items {
		switch {
		case !relation.Needs(s, plan) || s.DeletionTimestamp != nil:
		case !relation.RefersExactly(s, plan) || !relation.HasVersion(s):
			return ""
		default:
			isReferenced = true
		}
	}
	isApproved := plan.Spec.Approval == v1alpha1.ApprovalManual && plan.Spec.Approved
	switch {
	case isReferenced:
		return "what it was made for came another way"
	case isApproved:
		return ""
	}
	return "no Subscription references it"
}

// later returns the plans that the plan has to make way for, newest first.
func (in *Input) later() []*v1alpha1.InstallPlan {
	return relation.Later(in.InstallPlan, in.RelatedPlans.Items, in.Subscriptions.Items)
}

// isAwaited reports whether a later plan waits for the plan, so that no step of it may wait without end.
func (in *Input) isAwaited() bool { return len(in.later()) > 0 }

// successor returns the plan that supersedes the plan, nil for none. A plan that has not started is superseded by any later plan
// that has steps. A plan that has started is superseded once later plans have started for all of its versions. A later plan
// without steps may never get them; package create supersedes what is in its way when it gets them.
func (in *Input) successor() *v1alpha1.InstallPlan {
	plan, later := in.InstallPlan, in.later()
	if relation.Terminal(plan) || !relation.HasSteps(plan) || len(later) == 0 {
		return nil
	}
	if _, all := relation.TakenOver(plan, in.RelatedPlans.Items); all {
		return later[0]
	}
	if i := slices.IndexFunc(later, relation.HasSteps); i >= 0 && relation.Untouched(plan) {
		return later[i]
	}
	return nil
}

// supersede ends the plan. Its open steps are not applied any more, whether the plan is approved or not.
func (d *decision) supersede(in *Input, message string) {
	d.state, d.reason = StateSuperseded, ReasonSuperseded
	removeConditions(&d.status, isRetrying)
	relation.Supersede(&d.status, message, in.Now)
	d.say(olmcore.Info, ReasonSuperseded, "", "%s", message)
}

// waitForEarlier reports whether the plan may not start, because an earlier plan with a common package is not finished.
func (d *decision) waitForEarlier(in *Input) bool {
	earlier := relation.Earlier(in.InstallPlan, in.RelatedPlans.Items, in.Subscriptions.Items)
	if len(earlier) == 0 {
		return false
	}
	message := relation.Unfinished(earlier)
	d.state, d.status.Message = StateWaiting, message
	d.say(olmcore.Info, ReasonEarlierPlanUnfinished, "", "%s", message)
	d.result.Requeue(checkInterval)
	return true
}

// check reports whether the OperatorGroup of the namespace lets a plan go on, and records what it finds.
func (d *decision) check(in *Input) bool {
	account, text := relation.AccountOf(in.OperatorGroups.Items)
	if text == "" {
		text = relation.AccountChange(in.InstallPlan, account)
	}
	if text != "" {
		d.state = StateCheckFailed
		d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, string(v1alpha1.InstallPlanReasonInstallCheckFailed), text)
		d.say(olmcore.Warning, ReasonInstallCheckFailed, "", "%s", text)
		d.result.Requeue(checkInterval)
		if d.status.Phase == v1alpha1.InstallPlanPhaseInstalling && d.status.StartTime != nil && in.isAwaited() {
			d.failAfter(in, conditionOf(&d.status, v1alpha1.InstallPlanInstalled).LastTransitionTime, text)
		}
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

// failAfter ends a plan whose check has failed for transientTimeout, because a later plan waits for it.
func (d *decision) failAfter(in *Input, since *metav1.Time, message string) {
	if since == nil {
		return
	}
	if left := since.Add(transientTimeout).Sub(in.Now); left > 0 {
		d.result.Requeue(left)
		return
	}
	d.fail(in, problem{reason: ReasonInstallCheckFailed, message: report.Clip(message)})
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
	at, have := olmcore.Timestamp(in.Now), d.status.GetCondition(kind)
	message = printable.Keep(have.Message, message)
	c := v1alpha1.InstallPlanCondition{
		Type: kind, Status: status, Reason: v1alpha1.InstallPlanConditionReason(reason), Message: message,
		LastUpdateTime: &at, LastTransitionTime: &at,
	}
	if have.Status == status && have.Reason == c.Reason && have.Message == message {
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
