// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// installingRules are the rows for plans in phase Installing.
var installingRules = []rule{
	row(StateWithdrawn, installing, requires, isWithdrawnInTime, withdraw),
	row(StateWaiting, installing, stays, mustWaitForEarlierPlan, waitForEarlierPlan),
	row(StateStarting, installing, stays, isNotStarted, recordStart),
	row(StateFailing, installing, failed, isTimeOver, failOfProblem),
	row(StateRetrying, installing, stays, hasProblems, retry),
	row(StateWaiting, installing, stays, isWaitingForCluster, waitForCluster),
	row(StateApplying, installing, stays, hasOpenSteps, applySteps),
	row(StateRepairing, installing, stays, isHeldByFinalizer, releaseBeforeCompletion),
	row(StateCompleting, installing, complete, always, completePlan),
}

// isWithdrawn reports whether a user withdrew the approval of the plan.
func isWithdrawn(plan *v1alpha1.InstallPlan) bool {
	return plan.Spec.Approval == v1alpha1.ApprovalManual && !plan.Spec.Approved
}

func isWithdrawnInTime(f *facts) bool { return isWithdrawn(f.plan) && relation.Untouched(f.plan) }

// mustWaitForEarlierPlan reports whether an earlier plan with a common package is not finished.
func mustWaitForEarlierPlan(f *facts) bool { return isNotStarted(f) && len(f.earlier()) > 0 }

func (f *facts) earlier() []*v1alpha1.InstallPlan {
	return relation.Earlier(f.plan, f.in.RelatedPlans.Items, f.in.Subscriptions.Items)
}

func waitForEarlierPlan(f *facts) decision {
	message := relation.Unfinished(f.earlier())
	d := f.beginRound().report(f.diagnose(olmcore.Info, ReasonEarlierPlanUnfinished, "", "%s", message))
	d.status.Message = message
	return d
}

func recordStart(f *facts) decision {
	d := f.beginRound()
	d.status = progressing(d.status)
	d.status.StartTime = new(olmcore.Timestamp(f.in.Now))
	return d
}

// beginRound returns what every decision about a plan in phase Installing has in common.
func (f *facts) beginRound() decision {
	d := f.afterCheck().requeue(retryInterval)
	if isWithdrawn(f.plan) {
		return d.report(f.diagnose(olmcore.Info, ReasonApprovalWithdrawnTooLate, "spec.approved", "steps of the plan are applied already"))
	}
	return d
}

// reportSteps returns a decision that records the statuses of the steps and reports what was found about them.
func (f *facts) reportSteps() decision {
	found := f.steps()
	d := f.beginRound().withFindings(found)
	d.steps = found.Statuses()
	for _, t := range found.unseen {
		d = d.report(f.diagnose(olmcore.Info, ReasonStepNotVisible, found.Path(t.Steps[0]), "%s was created, but was not observed", t.Key))
	}
	for _, p := range found.problems {
		d = d.report(f.diagnose(olmcore.Warning, p.reason, found.Path(p.step), "%s", p.message))
	}
	if !found.Refused() {
		d.status = without(d.status, ConditionRetrying)
	}
	return d
}

// writeSteps returns the decision with the writes of the steps. If the status does not change and the API server
// refused all of the writes a short while ago, they are left out.
func (f *facts) writeSteps(d decision) decision {
	actions := f.steps().Actions()
	if d.changesStatus(f.plan) || !isBackingOff(f.in, actions) {
		d.result.Actions = slices.Concat(d.result.Actions, actions)
	}
	return d
}

// isBackingOff reports whether the API server refused each of some writes a short while ago. If one of the writes is
// due or was not refused, all are tried: a caller forgets the results of writes that a call leaves out.
func isBackingOff(in *Input, actions []olmcore.Action) bool {
	for _, a := range actions {
		_, target, _ := a.Describe()
		last := in.LastRun[target.Key()]
		isRefused := last.Class == olmcore.Forbidden || last.Class == olmcore.Webhook
		if !isRefused || in.Now.Before(last.Last) || in.Now.Sub(last.Last) >= refusedRetry.After(last.Count) {
			return false
		}
	}
	return true
}

// refusedRetry is the backoff for writes that were refused for lack of permissions or by a webhook. A call without
// writes follows every retryInterval, so that no other step and no deadline waits for the backoff.
var refusedRetry = olmcore.Backoff{Base: retryInterval, Max: time.Minute}

// isTimeOver reports whether the plan fails of a problem.
func isTimeOver(f *facts) bool { return f.firstOver() >= 0 }

func (f *facts) firstOver() int {
	return slices.IndexFunc(f.steps().problems, func(p problem) bool { return p.isOver(f.in.Now) })
}

func failOfProblem(f *facts) decision {
	return f.fail(f.reportSteps(), f.steps().problems[f.firstOver()])
}

func hasProblems(f *facts) bool { return len(f.steps().problems) > 0 }

// retry waits for problems to pass for which there is time left.
func retry(f *facts) decision {
	d, problems := f.reportSteps(), f.steps().problems
	first := problems[0]
	if !first.isReported {
		d.status.Message = retryingPrefix + first.message
		d.status = f.stalled(d.status, first.reason, first.message)
	}
	for _, p := range problems {
		if p.isNew {
			d.status = withCondition(f, d.status, ConditionRetrying, corev1.ConditionTrue, first.reason, first.message)
		}
		if !p.endless {
			d = d.requeue(p.deadline.Sub(f.in.Now))
		}
	}
	return f.writeSteps(d)
}

func isWaitingForCluster(f *facts) bool { return f.steps().has(step.Waiting) }

func waitForCluster(f *facts) decision {
	d := f.reportSteps()
	decisions := f.steps().Decisions
	first := slices.IndexFunc(decisions, func(v step.Decision) bool { return v.Outcome == step.Waiting })
	d.status.Message = printable.Clip(decisions[first].Message)
	d.status = f.stalled(d.status, ReasonStepWaits, d.status.Message)
	for _, v := range decisions {
		if v.Outcome == step.Waiting && !v.Deadline.IsZero() {
			d = d.requeue(v.Deadline.Sub(f.in.Now))
		}
	}
	return f.writeSteps(d)
}

func hasOpenSteps(f *facts) bool { return f.steps().has(step.Pending) }

// has reports whether one of the steps has an outcome.
func (s *findings) has(outcome step.Outcome) bool {
	return slices.ContainsFunc(s.Decisions, func(v step.Decision) bool { return v.Outcome == outcome })
}

// applySteps writes the objects of the open steps. A recorded failure is kept while the results of the last run are not
// known: otherwise a new process would clear what another one reports.
func applySteps(f *facts) decision {
	d := f.reportSteps()
	switch f.stalledBy() {
	case "": // the message is that of another client, and so is a condition that may be left
		d.status = without(d.status, ConditionProgressing)
	case ReasonStepFailed, ReasonStepRefused:
		if len(f.in.LastRun) > 0 {
			d.status = progressing(d.status)
		}
	default:
		d.status = progressing(d.status)
	}
	return f.writeSteps(d)
}

// isHeldByFinalizer reports whether every step is done and the plan still has the finalizer. The finalizer is removed
// before the plan is Complete, so that nothing is left to do for a plan that is Complete.
func isHeldByFinalizer(f *facts) bool { return !f.assessing && f.in.isReleasable() }

func releaseBeforeCompletion(f *facts) decision {
	d := f.reportSteps()
	d.status, d.steps = f.plan.Status, nil
	actions := f.removeFinalizer(olmcore.Cause{Reason: ReasonPlanDone, Message: "every step is applied"})
	if !isBackingOff(f.in, actions) {
		d.result.Actions = actions
	}
	return d
}

func completePlan(f *facts) decision {
	d := f.reportSteps().withoutDeadline()
	d.status = withCondition(f, progressing(d.status), v1alpha1.InstallPlanInstalled, corev1.ConditionTrue, "", "")
	return d
}
