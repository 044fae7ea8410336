// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

const (
	// retryInterval is the time between two rounds of a plan that is Installing.
	retryInterval = 5 * time.Second
	// transientTimeout is how long a step may fail for a reason that passes by itself, and the time after which a plan
	// that failed of one is tried again.
	transientTimeout = 10 * time.Minute
	// minTries is how often a write must fail in a row before a plan fails of it: one answer after downtime says little.
	minTries = 3

	retryingPrefix = "retrying execution due to error: "
)

// evaluate judges every step of the plan before anything is applied. preflight: nothing is applied in this round.
func (d *decision) evaluate(in *Input, preflight bool) step.Evaluation {
	resources := make([]step.ResourceVerdict, len(in.CustomResources.Items))
	for i, v := range in.CustomResources.Items {
		resources[i] = step.ResourceVerdict(v)
	}
	e := step.Evaluate(step.Input{
		Now: in.Now, Plan: in.InstallPlan, Preflight: preflight, HasAccount: in.ServiceAccount != nil,
		Subscriptions: in.Subscriptions.Items, ClusterServiceVersions: in.ClusterServiceVersions.Items,
		Alongside: in.Alongside.Items, Announced: in.Announced,
		CustomResourceDefinitions: in.CustomResourceDefinitions.Items, CustomResources: resources,
		Objects: in.Objects.Items, ConfigMaps: in.ConfigMaps.Items,
		PullSecrets: in.PullSecrets.Items, CatalogSources: in.CatalogSources.Items, LastRun: in.LastRun, Memory: in.Unpacked,
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
	d.result.Requeue(retryInterval)
	if d.status.StartTime == nil {
		d.state = StateStarting
		d.status.StartTime = new(olmcore.Timestamp(in.Now))
		return
	}
	e := d.evaluate(in, false)
	d.steps = e.Statuses()
	problems := d.findProblems(in, e)
	for _, p := range problems {
		d.say(olmcore.Warning, p.reason, e.Path(p.step), "%s", p.message)
	}
	over := slices.IndexFunc(problems, func(p problem) bool { return !p.endless && !in.Now.Before(p.deadline) })
	if over >= 0 {
		d.fail(in, problems[over])
		return
	}
	if !e.Refused() {
		removeConditions(&d.status, isRetrying)
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
	for _, p := range problems {
		if p.anew {
			d.setCondition(in, ConditionRetrying, corev1.ConditionTrue, problems[0].reason, problems[0].message)
		}
		if !p.endless {
			d.result.Requeue(p.deadline.Sub(in.Now))
		}
	}
}

// progress is a round in which nothing is wrong.
func (d *decision) progress(in *Input, e step.Evaluation) {
	status := &d.status
	d.state = StateCompleting
	for _, v := range e.Verdicts {
		if v.Outcome != step.Done && d.state == StateCompleting {
			d.state = StateApplying
		}
		if v.Outcome != step.Waiting {
			continue
		}
		if d.state != StateWaiting {
			d.state, status.Message = StateWaiting, report.Clip(v.Message)
		}
		if !v.Deadline.IsZero() {
			d.result.Requeue(v.Deadline.Sub(in.Now))
		}
	}
	switch d.state {
	case StateApplying:
		// Without a memory of the last run an error may be as good as new: it stays, or a new process would take back
		// what another one says.
		if strings.HasPrefix(status.Message, retryingPrefix) && len(in.LastRun) > 0 || strings.HasPrefix(status.Message, step.WaitingPrefix) ||
			strings.HasSuffix(status.Message, step.NotUnpacked) {
			status.Message = ""
		}
	case StateCompleting:
		status.Phase, status.Message = v1alpha1.InstallPlanPhaseComplete, ""
		d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionTrue, "", "")
		d.result.RequeueAfter = 0
	}
}

// fail ends the plan. What may pass by itself is noted, to be tried again.
func (d *decision) fail(in *Input, p problem) {
	d.state = StateFailing
	d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseFailed, p.message
	removeConditions(&d.status, isRetrying)
	d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, string(v1alpha1.InstallPlanReasonComponentFailed), p.message)
	d.result.RequeueAfter = 0
	if p.passes {
		d.setCondition(in, ConditionRetrying, corev1.ConditionTrue, p.reason, p.message)
		d.result.Requeue(transientTimeout)
	}
}

// heal is the round of a plan in phase Failed: it starts again when the cause that it states is gone.
func (d *decision) heal(in *Input) {
	d.state = StateFailed
	if d.isCured(in) {
		d.state = StateRetried
		d.status.Phase, d.status.StartTime, d.status.Message = v1alpha1.InstallPlanPhaseInstalling, nil, ""
		removeConditions(&d.status, isRetrying)
		d.result.Requeue(retryInterval)
	}
}

// isCured returns whether the cause that a failed plan states is gone, and records when to look again where it is not.
func (d *decision) isCured(in *Input) (cured bool) {
	plan := in.InstallPlan
	since, passes := retryingSince(&plan.Status)
	switch {
	case plan.Status.AttenuatedServiceAccountRef != nil && in.RBACChanged:
		return true
	case !in.isNeeded() && !in.isHalfMade():
		return false
	case passes:
		left := since.Add(transientTimeout).Sub(in.Now)
		d.result.Requeue(left)
		return left <= 0
	case !step.IsRefusal(plan.Status.Message) || in.unread() != "":
		return false
	}
	e := d.evaluate(in, true)
	cured = !slices.ContainsFunc(e.Verdicts, func(v step.Verdict) bool { return v.Refused() || v.Outcome == step.Waiting && !v.Follows })
	if !cured && len(d.changes) > 0 {
		d.result.Requeue(checkInterval) // nothing watches custom resources
	}
	return cured
}

// isNeeded reports whether a Subscription refers to the very plan.
func (in *Input) isNeeded() bool {
	return slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool { return relation.RefersExactly(s, in.InstallPlan) })
}

// isHalfMade reports whether the versions that a plan brings exist and have not been set up, so that later versions
// wait for what the plan has not applied. Of one that is gone nothing is made again.
func (in *Input) isHalfMade() bool {
	names := in.InstallPlan.Spec.ClusterServiceVersionNames
	return len(names) > 0 && relation.Applied(in.InstallPlan) && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(in.ClusterServiceVersions.Items, func(c *v1alpha1.ClusterServiceVersion) bool {
			return c.Name == name && !c.IsCopied() && c.DeletionTimestamp == nil &&
				(c.Status.Phase == v1alpha1.CSVPhaseNone || c.Status.Phase == v1alpha1.CSVPhasePending)
		})
	})
}

// problem is what keeps one step from being applied.
type problem struct {
	step            int
	reason, message string
	// deadline is when the plan fails of it, unless it is endless; of what can never pass it is zero.
	deadline time.Time
	endless  bool
	// passes: the cause passes by itself, so that the failed plan is tried again.
	passes bool
	// anew: the time for what is refused starts in this round.
	anew bool
	// known: the status tells of it. Each answer has a text of its own, and who wrote all of them would be woken by its
	// own writes and try without a pause.
	known bool
}

// findProblems returns what was found by looking, and what the API server answered to the last tries, once the statuses
// of this round are recorded. Of several problems the one of the lowest step comes first; what can never pass comes
// before everything else. It says which objects were written and cannot be read.
func (d *decision) findProblems(in *Input, e step.Evaluation) (found []problem) {
	for i, v := range e.Verdicts {
		if !v.Refused() {
			continue
		}
		p := problem{step: i, reason: ReasonStepRefused, message: v.Message}
		if v.Outcome == step.Blocked {
			p.deadline, p.anew = in.refusedUntil(v.Deadline)
		}
		found = append(found, p)
	}
	for _, t := range e.Targets {
		last, ran := in.LastRun[t.Key]
		if t.Verdict.Outcome == step.Done || t.Verdict.Refused() {
			continue
		}
		first := t.Steps[0]
		if ran && last.Class == olmcore.ClassNone && t.Observed == nil && d.steps[first] == v1alpha1.StepStatusNotPresent {
			d.say(olmcore.Info, ReasonStepNotVisible, e.Path(first), "%s was created and is not visible", t.Key)
		}
		if last.Class != olmcore.ClassNone && last.Class != olmcore.Conflict { // where what was read was stale it is decided anew
			found = append(found, in.failure(t, last))
		}
	}
	for i := range found {
		found[i].message = report.Clip(found[i].message)
	}
	never := func(p problem) int {
		if p.deadline.IsZero() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Or(cmp.Compare(never(a), never(b)), cmp.Compare(a.step, b.step)) })
	return found
}

// failure is the problem of a target that could not be written. Its time counts from the first failure of the present
// series, so that downtime costs none. Where the answers change all the time it counts from the first of all of them,
// and is that of trouble that passes.
func (in *Input) failure(t *step.Target, last olmcore.LastResult) problem {
	status := &in.InstallPlan.Status
	explain := func(text string) string { return t.Kind.Explain(t.Key.Name, t.Observed != nil, text) }
	after := func(since time.Time, timeout time.Duration) time.Time {
		if since.Before(status.StartTime.Time) {
			since = status.StartTime.Time
		}
		return since.Add(timeout)
	}
	p := problem{step: t.Steps[0], reason: ReasonStepFailed, message: explain(last.Message)}
	p.endless = last.Class == olmcore.Forbidden || last.Count < minTries
	p.deadline = after(last.First, in.installTimeout())
	if p.passes = last.Class == olmcore.Transient || last.Class == olmcore.Webhook; p.passes {
		p.deadline = after(last.First, transientTimeout)
	}
	if last.Tries > max(last.Count, minTries) && last.Class != olmcore.Forbidden {
		if mixed := after(last.Since, transientTimeout); p.endless || mixed.Before(p.deadline) {
			p.endless, p.passes, p.deadline = false, true, mixed
		}
	}
	p.known = last.Count != minTries && (last.Tries > 1 || last.Class == olmcore.Forbidden && last.Tries > 0) &&
		strings.HasPrefix(status.Message, retryingPrefix+explain(""))
	return p
}

func (in *Input) installTimeout() time.Duration {
	return cmp.Or(in.Config.InstallTimeout, DefaultInstallTimeout)
}

// refusedUntil returns when the plan fails of a step that is refused: at deadline or, where that is zero, InstallTimeout
// after status.startTime. What is refused is not tried, so no outcome counts its time. Where the refusal is new or was not
// watched when the time was over, its time starts anew once, and condition Retrying keeps the new start.
func (in *Input) refusedUntil(deadline time.Time) (until time.Time, anew bool) {
	status, timeout := &in.InstallPlan.Status, in.installTimeout()
	if since, retrying := retryingSince(status); retrying {
		return since.Add(timeout), false
	}
	if deadline.IsZero() {
		deadline = status.StartTime.Add(timeout)
	}
	known := strings.HasPrefix(status.Message, retryingPrefix) || strings.HasPrefix(status.Message, step.WaitingPrefix)
	watched := in.Now.Before(deadline.Add(max(timeout, 2*retryInterval)))
	if in.Now.Before(deadline) || known && watched {
		return deadline, false
	}
	return in.Now.Add(timeout), true
}
