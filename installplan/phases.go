// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	retryingPrefix = "retrying execution due to error: "
	waitingPrefix  = "waiting for "
	notUnpacked    = " is not unpacked"
)

// awaitApproval is the round of a plan in phase RequiresApproval.
func (d *decision) awaitApproval() error {
	plan := d.in.InstallPlan
	if plan.Spec.Approved {
		d.state = StateApproved
		d.next.Status.Phase, d.next.Status.Message = v1alpha1.InstallPlanPhaseInstalling, ""
		d.result.Requeue(d.retryInterval())
		return nil
	}
	d.state = StateRequiresApproval
	wanted := slices.ContainsFunc(d.in.Subscriptions, func(s *v1alpha1.Subscription) bool {
		return s != nil && wantsManual(s) && olmcore.OwnedBy(plan, s.UID)
	})
	owned := slices.ContainsFunc(d.in.Subscriptions, func(s *v1alpha1.Subscription) bool {
		return s != nil && olmcore.OwnedBy(plan, s.UID)
	})
	if owned && !wanted {
		d.diagnose(olmcore.Info, ReasonPendingPlanCouldBeAutomatic, "spec.approval",
			"no Subscription that owns the plan wants manual approval any more")
	}
	e, err := d.evaluate(true)
	if err != nil {
		return err
	}
	for i := range e.verdicts {
		if v := &e.verdicts[i]; v.refused() {
			d.warn(ReasonStepRefused, e.path(i), "%s", clip(v.message))
		}
	}
	return nil
}

// failed is the round of a plan in phase Failed: it starts again when the cause
// that it states is gone.
func (d *decision) failed() error {
	d.state = StateFailed
	plan := d.in.InstallPlan
	if plan.Status.AttenuatedServiceAccountRef != nil && d.in.RBACChanged {
		d.retry()
		return nil
	}
	if !isNeeded(plan, d.in.Subscriptions) && !d.in.halfMade() {
		return nil
	}
	if c := conditionOf(&plan.Status, ConditionRetrying); c != nil && c.LastTransitionTime != nil {
		if left := c.LastTransitionTime.Add(d.transientTimeout()).Sub(d.in.Now); left > 0 {
			d.result.Requeue(left)
		} else {
			d.retry()
		}
		return nil
	}
	if !isRefusal(plan.Status.Message) {
		return nil
	}
	e, err := d.evaluate(true)
	if err != nil {
		return err
	}
	obstacle := func(v verdict) bool { return v.refused() || v.outcome == waiting && !v.follows }
	if !slices.ContainsFunc(e.verdicts, obstacle) {
		d.retry()
	} else if len(d.schemas) > 0 {
		d.result.Requeue(or(d.in.Config.CheckInterval, DefaultCheckInterval)) // nobody watches custom resources
	}
	return nil
}

func (d *decision) retry() {
	d.state = StateRetried
	status := &d.next.Status
	status.Phase, status.StartTime, status.Message = v1alpha1.InstallPlanPhaseInstalling, nil, ""
	status.Conditions = withoutCondition(status.Conditions, ConditionRetrying)
	d.result.Requeue(d.retryInterval())
}

// mayHeal reports whether a failed plan is still needed and failed of something
// that the objects of its steps can show to be over.
func mayHeal(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return isRefusal(plan.Status.Message) && isNeeded(plan, subscriptions)
}

// halfMade reports whether the versions that a plan brings are there and have not been
// set up, so that later versions wait for what the plan has not applied. Of one that is
// gone nothing is made again.
func (in *Input) halfMade() bool {
	plan := in.InstallPlan
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		i := slices.IndexFunc(in.ClusterServiceVersions, func(c *v1alpha1.ClusterServiceVersion) bool {
			return c != nil && c.Name == name && c.Namespace == plan.Namespace
		})
		if i < 0 {
			return false
		}
		c := in.ClusterServiceVersions[i]
		if copied(c) || c.DeletionTimestamp != nil || c.Status.Phase != v1alpha1.CSVPhaseNone && c.Status.Phase != v1alpha1.CSVPhasePending {
			return false
		}
	}
	return applied(plan) && len(plan.Spec.ClusterServiceVersionNames) > 0
}

// isNeeded reports whether a Subscription refers to the very plan.
func isNeeded(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
		return s != nil && s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == plan.UID && refersTo(s, plan)
	})
}

// install is the round of a plan in phase Installing.
func (d *decision) install() error {
	plan, status := d.in.InstallPlan, &d.next.Status
	if plan.Spec.Approval == v1alpha1.ApprovalManual && !plan.Spec.Approved {
		if untouched(plan) {
			d.state = StateWithdrawn
			status.Phase, status.Message = v1alpha1.InstallPlanPhaseRequiresApproval, ""
			return nil
		}
		d.diagnose(olmcore.Info, ReasonApprovalWithdrawnTooLate, "spec.approved", "steps of the plan were applied already")
	}
	if status.StartTime == nil {
		d.state = StateStarting
		status.StartTime = new(olmcore.Timestamp(d.in.Now))
		d.result.Requeue(d.retryInterval())
		return nil
	}
	e, err := d.evaluate(false)
	if err != nil {
		return err
	}
	e.record(status.Plan)
	d.result.Requeue(d.retryInterval())
	problems := e.problems()
	for _, p := range problems {
		d.warn(p.reason, e.path(p.step), "%s", p.message)
	}
	if i := slices.IndexFunc(problems, func(p problem) bool { return p.over(d.in.Now) }); i >= 0 {
		d.fail(problems[i])
		return nil
	}
	if !e.anyRefused() {
		status.Conditions = withoutCondition(status.Conditions, ConditionRetrying)
	}
	if len(problems) > 0 {
		d.retryLater(problems)
	} else {
		d.progress(e)
	}
	d.steps = e.actions()
	return nil
}

// retryLater is a round with problems for which there is time left.
func (d *decision) retryLater(problems []problem) {
	d.state = StateRetrying
	if !problems[0].known {
		d.next.Status.Message = retryingPrefix + problems[0].message
	}
	if d.anew {
		d.retrying(problems[0])
	}
	for _, p := range problems {
		if !p.endless {
			d.result.Requeue(p.deadline.Sub(d.in.Now))
		}
	}
}

// retrying notes that a problem is tried again, from now on.
func (d *decision) retrying(p problem) {
	setCondition(&d.next.Status, v1alpha1.InstallPlanCondition{
		Type: ConditionRetrying, Status: corev1.ConditionTrue,
		Reason: v1alpha1.InstallPlanConditionReason(p.reason), Message: p.message,
	}, d.in.Now)
}

// progress is a round in which nothing is wrong.
func (d *decision) progress(e *evaluation) {
	status := &d.next.Status
	wait := slices.IndexFunc(e.verdicts, func(v verdict) bool { return v.outcome == waiting })
	switch {
	case wait >= 0:
		d.state = StateWaiting
		status.Message = clip(e.verdicts[wait].message)
		for _, v := range e.verdicts {
			if v.outcome == waiting && !v.deadline.IsZero() {
				d.result.Requeue(v.deadline.Sub(d.in.Now))
			}
		}
	case slices.ContainsFunc(e.verdicts, func(v verdict) bool { return v.outcome != done }):
		d.state = StateApplying
		// Without a memory of the last run an error may be as good as new: it stays, or
		// a new process would take back what another one says.
		if strings.HasPrefix(status.Message, retryingPrefix) && len(d.in.LastRun) > 0 || strings.HasPrefix(status.Message, waitingPrefix) ||
			strings.HasSuffix(status.Message, notUnpacked) {
			status.Message = ""
		}
	default:
		d.state = StateCompleting
		status.Phase, status.Message = v1alpha1.InstallPlanPhaseComplete, ""
		setCondition(status, v1alpha1.InstallPlanCondition{
			Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionTrue,
		}, d.in.Now)
		d.result.RequeueAfter = 0
	}
}

// fail ends the plan. What may pass by itself is noted, to be tried again.
func (d *decision) fail(p problem) {
	d.state = StateFailing
	status := &d.next.Status
	status.Phase, status.Message = v1alpha1.InstallPlanPhaseFailed, p.message
	status.Conditions = withoutCondition(status.Conditions, ConditionRetrying)
	setCondition(status, v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
		Reason: v1alpha1.InstallPlanReasonComponentFailed, Message: p.message,
	}, d.in.Now)
	d.result.RequeueAfter = 0
	if p.passes {
		d.retrying(p)
		d.result.Requeue(d.transientTimeout())
	}
}

// problem is what keeps one step from being applied.
type problem struct {
	step            int
	reason, message string
	// deadline is when the plan fails of it, unless it is endless; of what is
	// hopeless it fails at once.
	deadline          time.Time
	endless, hopeless bool
	// passes: the cause passes by itself, so that the failed plan is tried again.
	passes bool
	// known: the status tells of it. Each answer has a text of its own, and who wrote
	// all of them would be woken by its own writes and try without a pause.
	known bool
}

func (p problem) over(now time.Time) bool {
	return p.hopeless || !p.endless && !now.Before(p.deadline)
}

func stepPath(i int) string { return fmt.Sprintf("status.plan[%d]", i) }
