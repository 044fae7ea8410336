// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// checkInterval is the time between two checks of a missing OperatorGroup, and of the custom resources that a plan
// failed of.
const checkInterval = 30 * time.Second

// withoutStepsRules are the rows for plans that have no steps.
var withoutStepsRules = []rule{
	row(StateFailed, failed, stays, hasNoSteps, (*facts).stay),
	row(StateSuperseded, none, failed, isNotAwaited, endWithoutSteps),
	row(StateWithoutStatus, unfinished, stays, hasNoSteps, waitForSteps),
}

// hasNoSteps reports whether the plan still has to get its steps from package create.
func hasNoSteps(f *facts) bool { return len(f.plan.Status.Plan)+len(f.plan.Status.BundleLookups) == 0 }

// timeForSteps returns the time until a plan without steps is overdue.
func (f *facts) timeForSteps() time.Duration {
	return f.plan.CreationTimestamp.Add(relation.OrphanGrace).Sub(f.in.Now)
}

// isNotAwaited reports whether the plan has no steps relation.OrphanGrace after its creation and no Subscription waits
// for it.
func isNotAwaited(f *facts) bool {
	return hasNoSteps(f) && f.plan.Status.Phase == v1alpha1.InstallPlanPhaseNone && f.timeForSteps() <= 0 && f.in.notAwaited() != ""
}

// endWithoutSteps ends the plan with a write of the status, so the API server decides between the end and the steps
// that another controller may write.
func endWithoutSteps(f *facts) decision { return f.supersede(f.in.notAwaited()) }

// notAwaited returns why no Subscription waits for the steps of the plan. It returns "" if one does, if a Subscription
// may reference an earlier plan of the same name, or if a user approved the plan and no Subscription references it yet.
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
		return "the versions of its Subscriptions are installed"
	case isApproved:
		return ""
	}
	return "no Subscription references it"
}

func waitForSteps(f *facts) decision {
	if left := f.timeForSteps(); left > 0 {
		return f.stay().requeue(left)
	}
	return f.stay().report(f.diagnose(olmcore.Warning, ReasonPlanWithoutStatus, "status.plan",
		"the plan has no steps %s after its creation", relation.OrphanGrace))
}

// checkRules are the rows for plans with steps that are not finished, before approval and execution.
var checkRules = []rule{
	row(StateSuperseded, unfinished, failed, isReplacedByLaterPlan, endForLaterPlan),
	row(StateFailing, installing, failed, isCheckFailedTooLong, failAfterCheck),
	row(StateCheckFailed, unfinished, stays, isCheckFailed, reportCheck),
	row(StateServiceAccountChanged, unfinished, stays, isUnderOtherAccount, recordAccount),
	row(StatePhaseUnknown, none, stays, always, reportUnknownPhase),
}

func isReplacedByLaterPlan(f *facts) bool { return f.in.successor(f.later) != nil }

func endForLaterPlan(f *facts) decision {
	return f.supersede(relation.SupersededBy(f.in.successor(f.later).Name))
}

// supersede returns a decision that ends the plan. Its open steps are not applied any more, whether the plan is
// approved or not.
func (f *facts) supersede(message string) decision {
	d := f.stay().report(f.diagnose(olmcore.Info, ReasonSuperseded, "", "%s", message))
	d.reason = ReasonSuperseded
	d.status = without(progressing(d.status), ConditionRetrying)
	d.status.Conditions = slices.Clone(d.status.Conditions)
	relation.Supersede(&d.status, message, f.in.Now)
	return d
}

// isCheckFailed reports whether the OperatorGroup of the namespace does not allow the plan to continue.
func isCheckFailed(f *facts) bool { return f.obstacle != "" }

// isNotStarted reports whether status.startTime is not stored yet. It is stored before the first object of a step is
// written.
func isNotStarted(f *facts) bool { return f.plan.Status.StartTime == nil }

// isCheckFailedTooLong reports whether the check of a started plan has failed for transientTimeout while a later plan
// waits for it.
func isCheckFailedTooLong(f *facts) bool {
	since := f.plan.Status.GetCondition(v1alpha1.InstallPlanInstalled)
	hasFailed := since.Status == corev1.ConditionFalse && since.LastTransitionTime != nil
	return isCheckFailed(f) && f.isAwaited() && !isNotStarted(f) && hasFailed && f.timeForCheck(since) <= 0
}

// timeForCheck returns the time until a plan fails of the check that failed since the transition of a condition.
func (f *facts) timeForCheck(since v1alpha1.InstallPlanCondition) time.Duration {
	return since.LastTransitionTime.Add(transientTimeout).Sub(f.in.Now)
}

func failAfterCheck(f *facts) decision {
	return f.fail(reportCheck(f), problem{reason: ReasonInstallCheckFailed, message: printable.Clip(f.obstacle)})
}

// fail returns a decision whose plan fails of a problem.
func (f *facts) fail(d decision, p problem) decision {
	d = d.withoutDeadline()
	d.status = f.failedStatus(d.status, p)
	if p.isRetried {
		return d.requeue(failedRetry)
	}
	return d
}

func reportCheck(f *facts) decision {
	const reason = string(v1alpha1.InstallPlanReasonInstallCheckFailed)
	d := f.stay().report(f.diagnose(olmcore.Warning, ReasonInstallCheckFailed, "", "%s", f.obstacle)).requeue(checkInterval)
	d.status = withCondition(f, d.status, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, reason, f.obstacle)
	since := d.status.GetCondition(v1alpha1.InstallPlanInstalled)
	isStarted := f.phase == v1alpha1.InstallPlanPhaseInstalling && !isNotStarted(f)
	if isStarted && f.isAwaited() && since.LastTransitionTime != nil {
		return d.requeue(f.timeForCheck(since))
	}
	return d
}

// afterCheck returns the decision to stay, without the condition of a check that failed earlier.
func (f *facts) afterCheck() decision {
	d := f.stay()
	if d.status.GetCondition(v1alpha1.InstallPlanInstalled).Reason == v1alpha1.InstallPlanReasonInstallCheckFailed {
		d.status = without(d.status, v1alpha1.InstallPlanInstalled)
	}
	return d
}

// isUnderOtherAccount reports whether the plan does not record the ServiceAccount that it runs under. It is recorded
// before anything is written.
func isUnderOtherAccount(f *facts) bool {
	return !apiequality.Semantic.DeepEqual(f.account, f.plan.Status.AttenuatedServiceAccountRef)
}

func recordAccount(f *facts) decision {
	d := f.afterCheck().requeue(retryInterval)
	d.status.AttenuatedServiceAccountRef = f.account.DeepCopy()
	return d
}

func reportUnknownPhase(f *facts) decision {
	return f.afterCheck().report(f.diagnose(olmcore.Warning, ReasonPlanPhaseUnknown, "status.phase",
		"status.phase %q is not a phase of InstallPlans, so the plan is not executed", f.plan.Status.Phase))
}

// approvalRules are the rows for plans that wait for approval.
var approvalRules = []rule{
	row(StateApproved, requires, installing, isApproved, approve),
	row(StateRequiresApproval, requires, stays, always, waitForApproval),
}

func isApproved(f *facts) bool { return f.plan.Spec.Approved }

func approve(f *facts) decision { return withdraw(f).requeue(retryInterval) }

func withdraw(f *facts) decision {
	d := f.afterCheck()
	d.status = progressing(d.status)
	return d
}

func waitForApproval(f *facts) decision {
	d, found := f.afterCheck(), f.steps()
	owners := slices.DeleteFunc(slices.Clone(f.in.Subscriptions.Items), func(s *v1alpha1.Subscription) bool {
		return !olmcore.OwnedBy(f.plan, s.UID)
	})
	if len(owners) > 0 && !slices.ContainsFunc(owners, relation.WantsManual) {
		d = d.report(f.diagnose(olmcore.Info, ReasonPendingPlanCouldBeAutomatic, "spec.approval",
			"no Subscription that owns the plan requires manual approval any more"))
	}
	d = d.withFindings(found)
	for i, v := range found.Decisions {
		if v.Refused() {
			d = d.report(f.diagnose(olmcore.Warning, ReasonStepRefused, found.Path(i), "%s", printable.Clip(v.Message)))
		}
	}
	return d
}
