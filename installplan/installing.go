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
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

const (
	// retryInterval is the time between two rounds of a plan that is Installing.
	retryInterval = 5 * time.Second
	// transientTimeout is how long a step may fail for a reason that passes by itself.
	transientTimeout = 10 * time.Minute
	// minTries is how often a write must fail in a row before a plan fails of it: one answer after downtime says little.
	minTries = 3

	retryingPrefix = "retrying execution due to error: "
)

// refusedRetry is the time until a write is tried again that permissions or a webhook refused. A round without writes
// follows every retryInterval, so that no other step and no deadline waits for it.
var refusedRetry = olmcore.Backoff{Base: retryInterval, Max: time.Minute}

// evaluate judges every step of the plan before anything is applied. preflight: nothing is applied in this round.
func (d *decision) evaluate(in *Input, preflight bool) step.Evaluation {
	resources := make([]step.ResourceVerdict, len(in.CustomResources.Items))
	for i, v := range in.CustomResources.Items {
		resources[i] = step.ResourceVerdict(v)
	}
	takenOver, _ := takenOverIn(in)
	e := step.Evaluate(step.Input{
		Now: in.Now, Plan: in.InstallPlan, Preflight: preflight, HasAccount: in.ServiceAccount != nil,
		Subscriptions: in.Subscriptions.Items, ClusterServiceVersions: in.ClusterServiceVersions.Items,
		Alongside: in.Alongside.Items, Announced: in.Announced,
		CustomResourceDefinitions: in.CustomResourceDefinitions.Items, APIServices: in.APIServices, CustomResources: resources,
		Objects: in.Objects.Items, ConfigMaps: in.ConfigMaps.Items,
		PullSecrets: in.PullSecrets.Items, CatalogSources: in.CatalogSources.Items, LastRun: in.LastRun, Memory: in.Unpacked,
		OLMNamespace: in.Config.olmNamespace(), GlobalNamespace: in.Config.globalNamespace(),
		TakenOver: takenOver, OverwriteUnmanaged: in.Config.OverwriteUnmanaged, CopyAnySecret: in.Config.CopyAnySecret,
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
		if !d.waitForEarlier(in) {
			d.state = StateStarting
			d.status.StartTime, d.status.Message = new(olmcore.Timestamp(in.Now)), ""
		}
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
	if d.actions = e.Actions(); !d.changesStatus(in.InstallPlan) && backOff(in, d.actions) {
		d.actions = nil
	}
}

// backOff reports whether the API server refused each of some writes a short while ago. If one of them is due, or the round
// has another write, all are tried: an adapter forgets the outcome of writes that a round leaves out.
func backOff(in *Input, actions []olmcore.Action) bool {
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

// fail ends the plan. Condition Retrying records that the failed write will be tried again.
func (d *decision) fail(in *Input, p problem) {
	d.state = StateFailing
	d.status.Phase, d.status.Message = v1alpha1.InstallPlanPhaseFailed, p.message
	removeConditions(&d.status, isRetrying)
	d.setCondition(in, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, string(v1alpha1.InstallPlanReasonComponentFailed), p.message)
	d.result.RequeueAfter = 0
	if p.answered {
		d.setCondition(in, ConditionRetrying, corev1.ConditionTrue, p.reason, p.message)
		d.result.Requeue(failedRetry)
	}
}

// problem is what keeps one step from being applied.
type problem struct {
	step            int
	reason, message string
	// deadline is when the plan fails of it, unless it is endless; of what can never pass it is zero.
	deadline time.Time
	endless  bool
	// answered is set if the API server was asked and rejected a write, so that the failed plan is tried again.
	answered bool
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
	isAwaited := in.isAwaited()
	for i, v := range e.Verdicts {
		if v.Outcome == step.Waiting && v.Deadline.IsZero() && isAwaited {
			if until := in.InstallPlan.Status.StartTime.Add(transientTimeout); !in.Now.Before(until) {
				found = append(found, problem{step: i, reason: ReasonStepRefused, message: printable.Text(v.Message), deadline: until, answered: true})
			}
		}
		if !v.Refused() {
			continue
		}
		p := problem{step: i, reason: ReasonStepRefused, message: printable.Text(v.Message)}
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
	after := func(since time.Time, timeout time.Duration) time.Time {
		if since.Before(status.StartTime.Time) {
			since = status.StartTime.Time
		}
		return since.Add(timeout)
	}
	p := problem{step: t.Steps[0], reason: ReasonStepFailed, message: explain(t, last.Message), answered: true}
	isForbidden := last.Class == olmcore.Forbidden
	p.endless = isForbidden && !in.isAwaited() || last.Count < minTries
	p.deadline = after(last.First, in.installTimeout())
	if isForbidden || last.Class == olmcore.Transient || last.Class == olmcore.Webhook {
		p.deadline = after(last.First, transientTimeout)
	}
	if last.Tries > max(last.Count, minTries) && last.Class != olmcore.Forbidden {
		if mixed := after(last.Since, transientTimeout); p.endless || mixed.Before(p.deadline) {
			p.endless, p.deadline = false, mixed
		}
	}
	p.known = last.Count != minTries && (last.Tries > 1 || last.Class == olmcore.Forbidden && last.Tries > 0) &&
		strings.HasPrefix(status.Message, retryingPrefix+explain(t, ""))
	return p
}

// explain returns the message for a write of a target that failed with an error text.
func explain(t *step.Target, text string) string {
	return printable.Text(t.Kind.Explain(t.Key.Name, t.Observed != nil, text))
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
