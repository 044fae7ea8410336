// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

const retryingPrefix = "retrying execution due to error: "

// evaluate judges every step of the plan before anything is applied. preflight: nothing
// is applied in this round.
func (d *decision) evaluate(in *Input, preflight bool) step.Evaluation {
	resources := make([]crd.ResourceVerdict, len(in.CustomResources.Items))
	for i, v := range in.CustomResources.Items {
		resources[i] = crd.ResourceVerdict(v)
	}
	e := step.Evaluate(step.Input{
		Now: in.Now, Plan: in.InstallPlan, Preflight: preflight, HasAccount: in.ServiceAccount != nil,
		Subscriptions: in.Subscriptions.Items, ClusterServiceVersions: in.ClusterServiceVersions.Items,
		Alongside: in.Alongside.Items, Announced: in.Announced,
		CustomResourceDefinitions: in.CustomResourceDefinitions.Items, CustomResources: resources,
		Objects: in.Objects.Items, ConfigMaps: in.ConfigMaps.Items,
		PullSecrets: in.PullSecrets.Items, CatalogSources: in.CatalogSources.Items, LastRun: in.LastRun,
		OLMNamespace: in.Config.olmNamespace(), GlobalNamespace: in.Config.globalNamespace(),
		OverwriteUnmanaged: in.Config.OverwriteUnmanaged, CopyAnySecret: in.Config.CopyAnySecret,
		ChangeOwnedCRDs: in.Config.ChangeOwnedCRDs, SupportedKinds: in.Config.SupportedKinds,
	})
	d.result.Diagnostics = append(d.result.Diagnostics, e.Diagnostics...)
	d.lost = e.Lost
	for _, c := range e.Changes {
		d.changes = append(d.changes, SchemaChange(c))
	}
	return e
}

// install is the round of a plan in phase Installing.
func (d *decision) install(in *Input) {
	plan := in.InstallPlan
	if plan.Spec.Approval == v1alpha1.ApprovalManual && !plan.Spec.Approved {
		if relation.Untouched(plan) {
			d.state = StateWithdrawn
			d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseRequiresApproval, ""
			return
		}
		d.say(olmcore.Info, ReasonApprovalWithdrawnTooLate, "spec.approved", "steps of the plan were applied already")
	}
	if d.status.StartTime == nil {
		d.state = StateStarting
		d.status.StartTime = new(olmcore.Timestamp(in.Now))
		d.result.Requeue(retryInterval)
		return
	}
	e := d.evaluate(in, false)
	d.status.Plan = e.Record()
	d.result.Requeue(retryInterval)
	problems, notVisible := findProblems(in, e, d.status.Plan)
	d.result.Diagnostics = append(d.result.Diagnostics, notVisible...)
	for _, p := range problems {
		d.say(olmcore.Warning, p.reason, e.Path(p.step), "%s", p.message)
	}
	if i := slices.IndexFunc(problems, func(p problem) bool { return p.over(in.Now) }); i >= 0 {
		d.fail(in, problems[i])
		return
	}
	if !e.Refused() {
		removeRetrying(&d.status)
	}
	if len(problems) > 0 {
		d.retryLater(in, problems)
	} else {
		d.progress(in, e)
	}
	d.actions = e.Actions()
}

// retryLater is a round with problems for which there is time left.
func (d *decision) retryLater(in *Input, problems []problem) {
	d.state = StateRetrying
	if !problems[0].known {
		d.status.Message = retryingPrefix + problems[0].message
	}
	if slices.ContainsFunc(problems, func(p problem) bool { return p.anew }) {
		d.recordRetrying(in, problems[0])
	}
	for _, p := range problems {
		if !p.endless {
			d.result.Requeue(p.deadline.Sub(in.Now))
		}
	}
}

// recordRetrying records that a problem is tried again, from now on.
func (d *decision) recordRetrying(in *Input, p problem) {
	setCondition(&d.status, v1alpha1.InstallPlanCondition{
		Type: ConditionRetrying, Status: corev1.ConditionTrue,
		Reason: v1alpha1.InstallPlanConditionReason(p.reason), Message: p.message,
	}, in.Now)
}

// progress is a round in which nothing is wrong.
func (d *decision) progress(in *Input, e step.Evaluation) {
	status := &d.status
	wait := slices.IndexFunc(e.Verdicts, func(v step.Verdict) bool { return v.Outcome == step.Waiting })
	switch {
	case wait >= 0:
		d.state = StateWaiting
		status.Message = report.Clip(e.Verdicts[wait].Message)
		for _, v := range e.Verdicts {
			if v.Outcome == step.Waiting && !v.Deadline.IsZero() {
				d.result.Requeue(v.Deadline.Sub(in.Now))
			}
		}
	case slices.ContainsFunc(e.Verdicts, func(v step.Verdict) bool { return v.Outcome != step.Done }):
		d.state = StateApplying
		// Without a memory of the last run an error may be as good as new: it stays, or
		// a new process would take back what another one says.
		if strings.HasPrefix(status.Message, retryingPrefix) && len(in.LastRun) > 0 || strings.HasPrefix(status.Message, step.WaitingPrefix) ||
			strings.HasSuffix(status.Message, step.NotUnpacked) {
			status.Message = ""
		}
	default:
		d.state = StateCompleting
		status.Phase, status.Message = v1alpha1.InstallPlanPhaseComplete, ""
		setCondition(status, v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionTrue}, in.Now)
		d.result.RequeueAfter = 0
	}
}

// fail ends the plan. What may pass by itself is noted, to be tried again.
func (d *decision) fail(in *Input, p problem) {
	d.state = StateFailing
	d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseFailed, p.message
	removeRetrying(&d.status)
	setCondition(&d.status, v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
		Reason: v1alpha1.InstallPlanReasonComponentFailed, Message: p.message,
	}, in.Now)
	d.result.RequeueAfter = 0
	if p.passes {
		d.recordRetrying(in, p)
		d.result.Requeue(transientTimeout)
	}
}

// heal is the round of a plan in phase Failed: it starts again when the cause that it
// states is gone.
func (d *decision) heal(in *Input) {
	d.state = StateFailed
	if d.reexamine(in) {
		d.state = StateRetried
		d.status.Phase, d.status.StartTime, d.status.Message = v1alpha1.InstallPlanPhaseInstalling, nil, ""
		removeRetrying(&d.status)
		d.result.Requeue(retryInterval)
	}
}

// reexamine returns whether the cause that a failed plan states is gone, and records when
// to look again where it is not.
func (d *decision) reexamine(in *Input) (cured bool) {
	plan := in.InstallPlan
	since, passes := retryingSince(&plan.Status)
	switch {
	case plan.Status.AttenuatedServiceAccountRef != nil && in.RBACChanged:
		return true
	case !in.isNeeded() && !in.halfMade():
		return false
	case passes:
		left := since.Add(transientTimeout).Sub(in.Now)
		d.result.Requeue(left)
		return left <= 0
	case !step.IsRefusal(plan.Status.Message) || in.unread() != "":
		return false
	}
	e := d.evaluate(in, true)
	obstacle := func(v step.Verdict) bool { return v.Refused() || v.Outcome == step.Waiting && !v.Follows }
	cured = !slices.ContainsFunc(e.Verdicts, obstacle)
	if !cured && len(d.changes) > 0 {
		d.result.Requeue(checkInterval) // nothing watches custom resources
	}
	return cured
}

// isNeeded reports whether a Subscription refers to the very plan.
func (in *Input) isNeeded() bool {
	return slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool { return relation.RefersExactly(s, in.InstallPlan) })
}

// halfMade reports whether the versions that a plan brings exist and have not been set up,
// so that later versions wait for what the plan has not applied. Of one that is gone
// nothing is made again.
func (in *Input) halfMade() bool {
	plan := in.InstallPlan
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		i := slices.IndexFunc(in.ClusterServiceVersions.Items, func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == name })
		if i < 0 {
			return false
		}
		c := in.ClusterServiceVersions.Items[i]
		if c.IsCopied() || c.DeletionTimestamp != nil || c.Status.Phase != v1alpha1.CSVPhaseNone && c.Status.Phase != v1alpha1.CSVPhasePending {
			return false
		}
	}
	return relation.Applied(plan) && len(plan.Spec.ClusterServiceVersionNames) > 0
}
