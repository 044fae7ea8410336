// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
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
		isOpen := !olmcore.IsStepDone(s) || !slices.ContainsFunc(f.in.ClusterServiceVersions.Items, exists)
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
	return wasRefused(f) && !slices.ContainsFunc(f.steps().Verdicts, func(v step.Verdict) bool {
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
	return !slices.ContainsFunc(found.Verdicts, func(v step.Verdict) bool { return v.Outcome != step.Done })
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
	c := conditionOf(&f.plan.Status, ConditionProgressing)
	if c == nil || c.Reason != ReasonStepFailed {
		return false
	}
	return r.isTransient || c.Message == r.problem.message
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
		case target.Verdict.Outcome == step.Done:
		case last.Class == olmcore.Conflict:
			conflict = last.Last.Add(retryInterval)
		default:
			if t.failure == nil {
				p := problem{reason: ReasonStepFailed, message: report.Clip(target.Explain(last.Message)), isRetried: true}
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

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isRetried reports whether a failed plan is tried again: a Subscription references it, it created a version that was
// never installed, or it has not created the Subscription of a version. A plan is not tried again once later plans with
// steps contain all of its packages.
func (in *Input) isRetried() bool {
	plan := in.InstallPlan
	isWithdrawn := plan.Spec.Approval == v1alpha1.ApprovalManual && !plan.Spec.Approved
	return !isWithdrawn && !in.isReplaced() && (in.isNeeded() || in.isHalfMade() || leavesUnfollowed(in))
}

// isReplaced reports whether the plan was superseded, or later plans with steps contain all of its packages.
func (in *Input) isReplaced() bool {
	_, all := takenOverIn(in)
	return all || relation.IsSuperseded(in.InstallPlan)
}

// takenOverIn returns the versions of the plan that other plans install instead, and whether those are all of them.
// Other plans wait for a plan that runs, but not for one that failed.
func takenOverIn(in *Input) (versions map[string]bool, all bool) {
	if in.InstallPlan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		return relation.Outdated(in.InstallPlan, in.RelatedPlans.Items, in.Subscriptions.Items, in.ClusterServiceVersions.Items)
	}
	return relation.TakenOver(in.InstallPlan, in.RelatedPlans.Items)
}

// isNeeded reports whether a Subscription refers to the very plan.
func (in *Input) isNeeded() bool {
	return slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool {
		return relation.RefersExactly(s, in.InstallPlan)
	})
}

// isHalfMade reports whether the versions of the plan exist and were never installed, so that later versions wait for
// the steps that the plan did not apply. A version that was deleted is not created again.
func (in *Input) isHalfMade() bool {
	plan := in.InstallPlan
	if len(plan.Spec.ClusterServiceVersionNames) == 0 || !relation.Applied(plan) {
		return false
	}
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		c := versionNamed(in, name)
		if c == nil || !olmcore.NeverInstalled(c) {
			return false
		}
	}
	return true
}

// leavesUnfollowed reports whether the plan created a version of a package that no Subscription names, and has not
// created the Subscription for it. Without a Subscription the version is never upgraded, and versions that need a newer
// one are never installed. Versions that other plans install instead do not count. A version that was deleted is not
// created again.
func leavesUnfollowed(in *Input) bool {
	takenOver, _ := takenOverIn(in)
	for _, name := range in.InstallPlan.Spec.ClusterServiceVersionNames {
		if !takenOver[name] && versionNamed(in, name) == nil {
			return false
		}
	}
	return slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool {
		isOpen := s != nil && s.Resource.Kind == v1alpha1.SubscriptionKind && !olmcore.IsStepDone(s)
		return isOpen && !takenOver[s.Resolving] && isUnfollowed(in, versionNamed(in, s.Resolving))
	})
}

// isUnfollowed reports whether the package of a version is known, and no Subscription names it.
func isUnfollowed(in *Input, c *v1alpha1.ClusterServiceVersion) bool {
	if c == nil {
		return false
	}
	packages := olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])
	return len(packages) > 0 && !slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool {
		return s.Spec != nil && slices.Contains(packages, s.Spec.Package)
	})
}

// versionNamed returns the version of a name if it exists, is no copy, and is not being deleted.
func versionNamed(in *Input, name string) *v1alpha1.ClusterServiceVersion {
	for _, c := range in.ClusterServiceVersions.Items {
		if c.Name == name && !c.IsCopied() && c.DeletionTimestamp == nil {
			return c
		}
	}
	return nil
}
