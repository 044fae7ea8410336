// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

const (
	// retryInterval is the time between two calls for a plan that is Installing.
	retryInterval = 5 * time.Second
	// transientTimeout is the time for which a step may fail for a reason that passes by itself.
	transientTimeout = 10 * time.Minute
	// minTries is the number of failures in a row after which a write can fail a plan. A single error after downtime
	// proves little.
	minTries = 3
)

// findings contains the results of evaluating the steps of a plan.
type findings struct {
	step.Evaluation
	// problems prevent steps from being applied. Problems that can never pass come first, then those of lower steps.
	problems []problem
	// unseen are the targets that were created and that the lists do not show.
	unseen []*step.Target
	// tries is what is known about the last try of a plan that failed.
	tries tries
}

// steps returns what is found about the steps, before anything is applied.
func (f *facts) steps() *findings {
	if f.evaluated != nil {
		return f.evaluated
	}
	e := step.Evaluate(stepInput(f.in, f.phase != v1alpha1.InstallPlanPhaseInstalling))
	found := &findings{Evaluation: e}
	switch f.phase {
	case v1alpha1.InstallPlanPhaseInstalling:
		found.unseen = unseenTargets(f, e)
		found.problems = problemsOf(f, e)
	case v1alpha1.InstallPlanPhaseFailed:
		found.tries = triesOf(f, e)
	}
	f.evaluated = found
	return found
}

// stepInput returns the part of an Input by which steps are evaluated. If preflight is set, nothing is applied in this
// call.
func stepInput(in *Input, preflight bool) step.Input {
	takenOver, _ := takenOverIn(in)
	return step.Input{
		Now:                       in.Now,
		Plan:                      in.InstallPlan,
		Preflight:                 preflight,
		HasAccount:                in.ServiceAccount != nil,
		Subscriptions:             in.Subscriptions.Items,
		ClusterServiceVersions:    in.ClusterServiceVersions.Items,
		Alongside:                 in.Alongside.Items,
		Announced:                 in.Announced,
		CustomResourceDefinitions: in.CustomResourceDefinitions.Items,
		APIServices:               in.APIServices,
		CustomResources:           resourceVerdicts(in.CustomResources.Items),
		Objects:                   in.Objects.Items,
		ConfigMaps:                in.ConfigMaps.Items,
		PullSecrets:               in.PullSecrets.Items,
		CatalogSources:            in.CatalogSources.Items,
		LastRun:                   in.LastRun,
		Memory:                    in.Unpacked,
		TakenOver:                 takenOver,
		OLMNamespace:              in.Config.olmNamespace(),
		GlobalNamespace:           in.Config.globalNamespace(),
		OverwriteUnmanaged:        in.Config.OverwriteUnmanaged,
		CopyAnySecret:             in.Config.CopyAnySecret,
		ChangeOwnedCRDs:           in.Config.ChangeOwnedCRDs,
		SupportedKinds:            in.Config.SupportedKinds,
	}
}

func resourceVerdicts(verdicts []ResourceVerdict) []step.ResourceVerdict {
	converted := make([]step.ResourceVerdict, len(verdicts))
	for i, v := range verdicts {
		converted[i] = step.ResourceVerdict(v)
	}
	return converted
}

// unseenTargets returns the targets that were created in the last run and that the lists do not show.
func unseenTargets(f *facts, e step.Evaluation) (unseen []*step.Target) {
	statuses := e.Statuses()
	for _, t := range e.Targets {
		last, ran := f.in.LastRun[t.Key]
		wasCreated := ran && last.Class == olmcore.ClassNone && statuses[t.Steps[0]] == v1alpha1.StepStatusNotPresent
		if wasCreated && isOpen(t) && t.Observed == nil {
			unseen = append(unseen, t)
		}
	}
	return unseen
}

// isOpen reports whether the object of a target still has to be written and may be.
func isOpen(t *step.Target) bool { return t.Decision.Outcome != step.Done && !t.Decision.Refused() }

// problem prevents one step from being applied.
type problem struct {
	step            int
	reason, message string
	// deadline is when the plan fails of the problem, the zero time if the problem can never pass.
	deadline time.Time
	// endless is set if the plan does not fail of the problem, whatever the deadline is.
	endless bool
	// isRetried is set if a plan that failed of the problem tries its open steps again.
	isRetried bool
	// isNew is set if the time for a refused step starts with this call.
	isNew bool
	// isReported is set if the status reports the problem already. Every error has a text of its own, and a controller
	// that wrote all of them would be woken by its own writes and would retry without a pause.
	isReported bool
}

// isOver reports whether the plan fails of the problem now.
func (p problem) isOver(now time.Time) bool { return !p.endless && !now.Before(p.deadline) }

// problemsOf returns the problems that the evaluation of the steps found and those that the API server reported in the
// last tries. Problems that can never pass come first, then those of lower steps.
func problemsOf(f *facts, e step.Evaluation) []problem {
	found := slices.Concat(refusedSteps(f, e), failedWrites(f, e))
	for i := range found {
		found[i].message = printable.Clip(found[i].message)
	}
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Compare(a.step, b.step) })
	var hopeless, others []problem
	for _, p := range found {
		if p.deadline.IsZero() {
			hopeless = append(hopeless, p)
		} else {
			others = append(others, p)
		}
	}
	return slices.Concat(hopeless, others)
}

// refusedSteps returns the problems of steps that are refused, and of steps that have waited for the cluster for too
// long while a later plan waits for this one.
func refusedSteps(f *facts, e step.Evaluation) (found []problem) {
	for i, v := range e.Decisions {
		p := problem{step: i, reason: ReasonStepRefused, message: printable.Text(v.Message)}
		switch v.Outcome {
		case step.Invalid:
			found = append(found, p)
		case step.Blocked:
			p.deadline, p.isNew = refusedUntil(f, v.Deadline)
			found = append(found, p)
		case step.Waiting:
			p.deadline, p.isRetried = f.plan.Status.StartTime.Add(transientTimeout), true
			if f.isAwaited() && v.Deadline.IsZero() && p.isOver(f.in.Now) {
				found = append(found, p)
			}
		}
	}
	return found
}

// failedWrites returns the problems of steps whose object could not be written. After a conflict the step is evaluated
// with newer objects, so a conflict is no problem.
//
// The status reports the first failed write, but does not record its object. If a target before it succeeded since
// then, or is not open any more, that target may be the reported one, and the failure is reported anew.
func failedWrites(f *facts, e step.Evaluation) (found []problem) {
	reportedAt := f.failureReportedAt()
	for _, t := range e.Targets {
		last, ran := f.in.LastRun[t.Key]
		switch {
		case !ran || last.Class == olmcore.Conflict:
		case last.Class == olmcore.ClassNone:
			if !last.Last.Before(reportedAt) {
				reportedAt = time.Time{}
			}
		case isOpen(t):
			found = append(found, failedWrite(f, t, last, reportedAt))
		default:
			reportedAt = time.Time{}
		}
	}
	return found
}

// failedWrite returns the problem of a target that could not be written. reportedAt is when the status last reported a
// failed write that may be this one, or zero.
func failedWrite(f *facts, t *step.Target, last olmcore.LastResult, reportedAt time.Time) problem {
	isForbidden := last.Class == olmcore.Forbidden
	wasTriedBefore := last.Tries > 1 || isForbidden && last.Tries > 0
	since := last.Since
	if since.IsZero() {
		since = last.First
	}
	p := problem{step: t.Steps[0], reason: ReasonStepFailed, message: t.Explain(last.Message), isRetried: true}
	p.isReported = wasTriedBefore && last.Count != minTries && !reportedAt.IsZero() && !reportedAt.Before(olmcore.Timestamp(since).Time)
	p.deadline, p.endless = writeDeadline(f, last)
	return p
}

// writeDeadline returns when a plan fails because of a write that fails. The timeout starts at the first failure of the
// present series, so downtime does not reduce it. If the class of the error keeps changing, all failures are one
// series, like failures for a temporary reason. The plan waits for a missing permission without end, unless a later
// plan waits for it.
func writeDeadline(f *facts, last olmcore.LastResult) (deadline time.Time, endless bool) {
	start := f.plan.Status.StartTime.Time
	after := func(since time.Time, timeout time.Duration) time.Time {
		if since.Before(start) {
			since = start
		}
		return since.Add(timeout)
	}
	timeout := f.installTimeout()
	switch last.Class {
	case olmcore.Forbidden, olmcore.Transient, olmcore.Webhook:
		timeout = transientTimeout
	}
	deadline, endless = after(last.First, timeout), last.Count < minTries
	if last.Class == olmcore.Forbidden {
		return deadline, endless || !f.isAwaited()
	}
	if last.Tries > max(last.Count, minTries) {
		mixed := after(last.Since, transientTimeout)
		if endless || mixed.Before(deadline) {
			return mixed, false
		}
	}
	return deadline, endless
}

// isAwaited reports whether a later plan waits for the plan, so that no step of the plan may wait without end.
func (f *facts) isAwaited() bool { return len(f.later) > 0 }

func (f *facts) installTimeout() time.Duration {
	return cmp.Or(f.in.Config.InstallTimeout, DefaultInstallTimeout)
}

// refusedUntil returns when the plan fails because of a step that is refused: at deadline or, if that is zero,
// InstallTimeout after status.startTime. A refused step is not tried, so no result records its time. If the refusal is
// new, or no controller ran when the timeout ended, the timeout starts again once. Condition Retrying then records the
// new start.
func refusedUntil(f *facts, deadline time.Time) (until time.Time, isNew bool) {
	timeout := f.installTimeout()
	if since, ok := f.retryingSince(); ok {
		return since.Add(timeout), false
	}
	if deadline.IsZero() {
		deadline = f.plan.Status.StartTime.Add(timeout)
	}
	isWatched := f.in.Now.Before(deadline.Add(max(timeout, 2*retryInterval)))
	if f.in.Now.Before(deadline) || f.stalledBy() != "" && isWatched {
		return deadline, false
	}
	return f.in.Now.Add(timeout), true
}

// retryingSince returns the transition time of condition Retrying. ok is false if there is none.
func (f *facts) retryingSince() (since time.Time, ok bool) {
	c := conditionOf(&f.plan.Status, ConditionRetrying)
	if c == nil || c.LastTransitionTime == nil {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// tries is what is known about the last try of the open steps of a failed plan.
type tries struct {
	// failure is the rejected write of the lowest open step, nil for none.
	failure *rejectedWrite
	// isAccepted is set if a write was accepted.
	isAccepted bool
	// left is the time until the next try.
	left time.Duration
}

type rejectedWrite struct {
	problem     problem
	isTransient bool
}

// triesOf returns what the results of the last run say about the open steps. After a conflict the write is tried again
// soon.
func triesOf(f *facts, e step.Evaluation) (t tries) {
	next := f.failedAt().Add(failedRetry)
	var conflict time.Time
	for _, target := range e.Targets {
		last, ran := f.in.LastRun[target.Key]
		switch {
		case !ran:
		case last.Class == olmcore.ClassNone:
			t.isAccepted = true
		case target.Decision.Outcome == step.Done:
		case last.Class == olmcore.Conflict:
			conflict = last.Last.Add(retryInterval)
		default:
			if t.failure == nil {
				p := problem{reason: ReasonStepFailed, message: printable.Clip(target.Explain(last.Message)), isRetried: true}
				t.failure = &rejectedWrite{problem: p, isTransient: last.Class == olmcore.Transient}
			}
			next = latest(next, last.Last.Add(failedRetry))
		}
	}
	if t.failure == nil && !conflict.IsZero() {
		next = latest(next, conflict)
	}
	t.left = min(next.Sub(f.in.Now), failedRetry)
	return t
}

// failedAt returns when the plan failed, or the zero time if the status does not record it.
func (f *facts) failedAt() time.Time {
	if since, ok := f.retryingSince(); ok {
		return since
	}
	c := f.plan.Status.GetCondition(v1alpha1.InstallPlanInstalled)
	switch {
	case c.LastUpdateTime != nil:
		return c.LastUpdateTime.Time
	case c.LastTransitionTime != nil:
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
