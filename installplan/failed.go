// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/plans"
)

// failedRules are the rows for plans in phase Failed. A plan that was refused before anything was applied starts again
// once nothing refuses it. A plan that failed because the API server rejected a write tries its open steps every
// failedRetry, and starts again once the writes are accepted.
var failedRules = []rule{
	row(StateRetried, failed, installing, hasNewPermissions, restart),
	row(StateFailed, failed, stays, isGivenUp, (*facts).stay),
	row(StateRetried, failed, installing, isAllowedAgain, restartWithFindings),
	row(StateFailed, failed, stays, wasRefused, waitUntilAllowed),
	row(StateRetried, failed, installing, isAcceptedAgain, restartWithFindings),
	row(StateTryingAgain, failed, stays, isTryDue, tryAgain),
	row(StateFailed, failed, stays, always, waitForNextTry),
}

// failedRetry is the time between two tries of the open steps of a plan that failed because the API server rejected a
// write.
const failedRetry = 10 * time.Minute

// hasNewPermissions reports whether the permissions of the namespace changed since a plan with a ServiceAccount failed.
func hasNewPermissions(f *facts) bool {
	return f.plan.Status.AttenuatedServiceAccountRef != nil && f.in.RBACChanged && !f.in.isReplaced()
}

// restart takes a failed plan back to Installing. Later plans did not wait for the failed plan, so its open steps for
// their packages are skipped for good. So are all steps of a version that a later one has replaced: it is not created
// again.
func restart(f *facts) decision {
	d := f.stay().requeue(retryInterval)
	d.status = without(progressing(d.status), ConditionRetrying)
	d.status.StartTime = nil
	takenOver, _ := takenOverIn(f.in)
	d.steps = make([]v1alpha1.StepStatus, len(f.plan.Status.Plan))
	for i, s := range f.plan.Status.Plan {
		if s == nil {
			continue
		}
		exists := func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == s.Resolving }
		isOpen := !plans.IsStepDone(s) || !slices.ContainsFunc(f.in.ClusterServiceVersions.Items, exists)
		d.steps[i] = s.Status
		if takenOver[s.Resolving] && isOpen {
			d.steps[i] = v1alpha1.StepStatusNotCreated
		}
	}
	return d
}

func restartWithFindings(f *facts) decision { return restart(f).withFindings(f.steps()) }

// isGivenUp reports whether the plan stays Failed.
func isGivenUp(f *facts) bool { return !f.in.isRetried() }

// wasRefused reports whether the plan failed of what was found before anything was applied.
func wasRefused(f *facts) bool { return f.stalledBy() == ReasonStepRefused }

// isAllowedAgain reports whether nothing refuses the plan any more.
func isAllowedAgain(f *facts) bool {
	return wasRefused(f) && !slices.ContainsFunc(f.steps().Decisions, func(v step.Decision) bool {
		return v.Refused() || v.Outcome == step.Waiting && !v.Follows
	})
}

func waitUntilAllowed(f *facts) decision {
	d := f.stay().withFindings(f.steps())
	if len(f.steps().Changes) > 0 {
		return d.requeue(checkInterval) // custom resources are not watched
	}
	return d
}

// isAcceptedAgain reports whether the plan starts again: the last try succeeded, or a ServiceAccount has to be recorded
// before the next one.
func isAcceptedAgain(f *facts) bool {
	t := f.steps().tries
	switch {
	case f.obstacle != "":
		return false
	case t.failure == nil && (t.isAccepted || isDone(f.steps())):
		return true
	}
	return t.left <= 0 && isUnderOtherAccount(f)
}

// isDone reports whether every step is done.
func isDone(found *findings) bool {
	return !slices.ContainsFunc(found.Decisions, func(v step.Decision) bool { return v.Outcome != step.Done })
}

// isTryDue reports whether the open steps have to be tried now.
func isTryDue(f *facts) bool {
	return f.obstacle == "" && f.steps().tries.left <= 0 && len(f.steps().Actions()) > 0
}

// tryAgain writes the objects of the open steps. The plan stays Failed meanwhile. Its status changes only if a write is
// accepted or fails in another way.
func tryAgain(f *facts) decision {
	d := f.stay().withFindings(f.steps()).requeue(failedRetry)
	d.result.Actions = f.steps().Actions()
	return d
}

// waitForNextTry reports nothing about the steps until the next try. It states the failure of the last try.
func waitForNextTry(f *facts) decision {
	t := f.steps().tries
	switch {
	case f.obstacle != "":
		return f.stay().requeue(failedRetry)
	case t.left <= 0: // refused, or waiting for the cluster
		return f.stay().withFindings(f.steps()).requeue(failedRetry)
	}
	d := f.stay().requeue(t.left)
	if t.failure != nil && !isStated(f, t.failure) {
		d.status = f.failedStatus(d.status, t.failure.problem)
	}
	return d
}

// isStated reports whether the status states a failure already. Transient errors have texts of their own, which do not
// replace the failure that is stated.
func isStated(f *facts, r *rejectedWrite) bool {
	return r.isTransient && f.stalledBy() == ReasonStepFailed
}
