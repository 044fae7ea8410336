// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

const (
	// transientTimeout is how long a step may fail for a reason that passes by itself, and
	// the time after which a plan that failed of one is tried again.
	transientTimeout = 10 * time.Minute
	// minTries is how often a write must fail in a row before a plan fails of it: one
	// answer after downtime says little.
	minTries = 3
)

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
	// anew: the time for what is refused starts in this round.
	anew bool
	// known: the status tells of it. Each answer has a text of its own, and who wrote
	// all of them would be woken by its own writes and try without a pause.
	known bool
}

func (p problem) over(now time.Time) bool {
	return p.hopeless || !p.endless && !now.Before(p.deadline)
}

// findProblems returns what was found by looking, and what the API server answered to the
// last tries. steps are those of the plan as this round records them. Of several problems
// the one of the lowest step comes first; what can never pass comes before everything else.
// notVisible says which objects were written and cannot be read.
func findProblems(in *Input, e step.Evaluation, steps []*v1alpha1.Step) (found []problem, notVisible []olmcore.Diagnostic) {
	plan := in.InstallPlan
	for i, v := range e.Verdicts {
		switch v.Outcome {
		case step.Invalid:
			found = append(found, problem{step: i, reason: ReasonStepRefused, message: v.Message, hopeless: true})
		case step.Blocked:
			p := problem{step: i, reason: ReasonStepRefused, message: v.Message}
			p.deadline, p.anew = in.refusedUntil(v.Deadline)
			found = append(found, p)
		}
	}
	for _, t := range e.Targets {
		last, ran := in.LastRun[t.Key]
		if t.Verdict.Outcome == step.Done || t.Verdict.Refused() {
			continue
		}
		if ran && last.Class == olmcore.ClassNone && t.Observed == nil && steps[t.Steps[0]].Status == v1alpha1.StepStatusNotPresent {
			notVisible = append(notVisible, olmcore.Diagnose(olmcore.Info, ReasonStepNotVisible, olmcore.RefOf(plan), step.Path(t.Steps[0]),
				"%s was created and is not visible", t.Key))
		}
		if last.Class == olmcore.ClassNone || last.Class == olmcore.Conflict {
			continue // what was read was stale; it is decided anew
		}
		found = append(found, in.failure(t, last))
	}
	for i := range found {
		found[i].message = report.Clip(found[i].message)
	}
	slices.SortStableFunc(found, func(a, b problem) int {
		if a.hopeless != b.hopeless {
			if a.hopeless {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.step, b.step)
	})
	return found, notVisible
}

// failure is the problem of a target that could not be written. Its time counts from the
// first failure of the present series, so that downtime costs none. Where the answers
// change all the time it counts from the first of all of them, and is that of trouble that
// passes.
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
	p.deadline = after(last.First, in.Config.installTimeout())
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

// refusedUntil returns when the plan fails of a step that is refused: at deadline or, where
// that is zero, InstallTimeout after status.startTime. What is refused is not tried, so no
// outcome counts its time. Where the refusal is new or was not watched when the time was
// over, its time starts anew once, and condition Retrying keeps the new start.
func (in *Input) refusedUntil(deadline time.Time) (until time.Time, anew bool) {
	status := &in.InstallPlan.Status
	timeout := in.Config.installTimeout()
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
