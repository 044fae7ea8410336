// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"time"

	"github.com/olmcore/olm/installplan/internal/report"
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

// refusedRetry is the backoff for writes that were refused for lack of permissions or by a webhook. A call without
// writes follows every retryInterval, so that no other step and no deadline waits for the backoff.
var refusedRetry = olmcore.Backoff{Base: retryInterval, Max: time.Minute}

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
		found[i].message = report.Clip(found[i].message)
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
	for i, v := range e.Verdicts {
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
func failedWrites(f *facts, e step.Evaluation) (found []problem) {
	for _, t := range e.Targets {
		last := f.in.LastRun[t.Key]
		if isOpen(t) && last.Class != olmcore.ClassNone && last.Class != olmcore.Conflict {
			found = append(found, failedWrite(f, t, last))
		}
	}
	return found
}

// failedWrite returns the problem of a target that could not be written.
func failedWrite(f *facts, t *step.Target, last olmcore.LastResult) problem {
	isForbidden := last.Class == olmcore.Forbidden
	wasTriedBefore := last.Tries > 1 || isForbidden && last.Tries > 0
	p := problem{step: t.Steps[0], reason: ReasonStepFailed, message: t.Explain(last.Message), isRetried: true}
	p.isReported = wasTriedBefore && last.Count != minTries && f.isFailureReported()
	p.deadline, p.endless = writeDeadline(f, last)
	return p
}

// writeDeadline returns when a plan fails of a write that fails. The time counts from the first failure of the present
// series, so downtime costs none. If the class of the error keeps changing, all failures are one series, as of a reason
// that passes by itself. The plan waits for a missing permission without end, unless a later plan waits for it.
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

// refusedUntil returns when the plan fails of a step that is refused: at deadline or, if that is zero, InstallTimeout
// after status.startTime. A refused step is not tried, so no result counts its time. If the refusal is new, or no
// controller ran when the time was over, the time starts anew once. Condition Retrying then records the new start.
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
