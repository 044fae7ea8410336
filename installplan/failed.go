// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// failedRetry is the time between two tries of the open steps of a plan that failed because the API server rejected a write.
const failedRetry = 10 * time.Minute

// heal is the round of a plan in phase Failed. A plan that was refused before anything was applied starts again once
// nothing refuses it. A plan that failed because the API server rejected a write tries its open steps every failedRetry,
// and starts again once the writes are accepted.
func (d *decision) heal(in *Input) {
	d.state = StateFailed
	plan := in.InstallPlan
	switch {
	case plan.Status.AttenuatedServiceAccountRef != nil && in.RBACChanged && !in.isReplaced():
		d.restart(in)
	case !in.isRetried() || in.unread() != "":
	case !in.isRejected() && step.IsRefusal(plan.Status.Message):
		d.checkAgain(in)
	default:
		d.tryAgain(in)
	}
}

// restart takes a failed plan back to Installing. Later plans did not wait for the failed plan, so its open steps for their packages
// are skipped for good. So are all steps of a version that a later one has replaced: it is not created again.
func (d *decision) restart(in *Input) {
	d.state = StateRetried
	takenOver, _ := takenOverIn(in)
	d.steps = make([]v1alpha1.StepStatus, len(in.InstallPlan.Status.Plan))
	for i, s := range in.InstallPlan.Status.Plan {
		if s == nil {
			continue
		}
		exists := func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == s.Resolving }
		isOpen := !olmcore.IsStepDone(s) || !slices.ContainsFunc(in.ClusterServiceVersions.Items, exists)
		if d.steps[i] = s.Status; takenOver[s.Resolving] && isOpen {
			d.steps[i] = v1alpha1.StepStatusNotCreated
		}
	}
	d.status.Phase, d.status.StartTime, d.status.Message = v1alpha1.InstallPlanPhaseInstalling, nil, ""
	removeConditions(&d.status, isRetrying)
	d.result.Requeue(retryInterval)
}

// checkAgain restarts a plan that was refused before anything was applied, if nothing refuses it any more.
func (d *decision) checkAgain(in *Input) {
	e := d.evaluate(in, true)
	isRefused := slices.ContainsFunc(e.Verdicts, func(v step.Verdict) bool {
		return v.Refused() || v.Outcome == step.Waiting && !v.Follows
	})
	switch {
	case !isRefused:
		d.restart(in)
	case len(d.changes) > 0:
		d.result.Requeue(checkInterval) // custom resources are not watched
	}
}

// tryAgain writes the objects of the open steps of a plan that failed because the API server rejected a write. The plan
// stays Failed meanwhile. Its status changes only if a write is accepted or fails in another way.
func (d *decision) tryAgain(in *Input) {
	e := d.evaluate(in, true)
	tries := in.triesOf(e)
	left := min(tries.next.Sub(in.Now), failedRetry)
	account, obstacle := relation.AccountOf(in.OperatorGroups.Items)
	switch {
	case cmp.Or(obstacle, relation.AccountChange(in.InstallPlan, account)) != "":
		left = failedRetry
	case tries.failure != nil && !in.isStated(tries.failure):
		message := report.Clip(explain(tries.failure.target, tries.failure.last.Message))
		d.fail(in, problem{reason: ReasonStepFailed, message: message, answered: true})
		d.state = StateFailed
		return
	case tries.failure == nil && (tries.accepted || isDone(e)):
		d.restart(in)
		return
	case left <= 0 && !apiequality.Semantic.DeepEqual(account, in.InstallPlan.Status.AttenuatedServiceAccountRef):
		d.restart(in) // the account is recorded before anything is written
		return
	case left <= 0 && len(e.Actions()) > 0:
		d.state, d.actions = StateTryingAgain, e.Actions()
		d.result.Requeue(failedRetry)
		return
	case left <= 0: // refused, or waiting for the cluster
		d.result.Requeue(failedRetry)
		return
	}
	d.result.Diagnostics, d.changes, d.lost = nil, nil, nil // a plan at rest reports nothing and asks for nothing
	d.result.Requeue(left)
}

// isDone reports whether every step is done.
func isDone(e step.Evaluation) bool {
	return !slices.ContainsFunc(e.Verdicts, func(v step.Verdict) bool { return v.Outcome != step.Done })
}

// tries is what is known of the last try of the open steps of a failed plan.
type tries struct {
	// failure is the rejected write of the lowest open step, nil for none.
	failure *failedWrite
	// accepted is set if a write was accepted.
	accepted bool
	// next is the time of the next try.
	next time.Time
}

type failedWrite struct {
	target *step.Target
	last   olmcore.LastResult
}

// triesOf returns what the results of the last run say about the open steps. A conflict is no failure; the write is tried
// again soon.
func (in *Input) triesOf(e step.Evaluation) (t tries) {
	t.next = in.failedAt().Add(failedRetry)
	var conflict time.Time
	for _, target := range e.Targets {
		last, ran := in.LastRun[target.Key]
		switch {
		case !ran:
		case last.Class == olmcore.ClassNone:
			t.accepted = true
		case target.Verdict.Outcome == step.Done:
		case last.Class == olmcore.Conflict:
			conflict = last.Last.Add(retryInterval)
		default:
			if t.failure == nil {
				t.failure = &failedWrite{target: target, last: last}
			}
			if next := last.Last.Add(failedRetry); next.After(t.next) {
				t.next = next
			}
		}
	}
	if t.failure == nil && conflict.After(t.next) {
		t.next = conflict
	}
	return t
}

// isStated reports whether the plan's message states a failed write. Transient errors have texts of their own; one of them
// does not replace what is stated about the same object.
func (in *Input) isStated(f *failedWrite) bool {
	message := in.InstallPlan.Status.Message
	return message == report.Clip(explain(f.target, f.last.Message)) ||
		f.last.Class == olmcore.Transient && strings.HasPrefix(message, explain(f.target, ""))
}

// isRejected reports whether the plan failed because the API server rejected a write. Its message then is that of the API server or of
// a webhook, whose wording means nothing here.
func (in *Input) isRejected() bool {
	c := conditionOf(&in.InstallPlan.Status, ConditionRetrying)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == ReasonStepFailed
}

// failedAt returns when the plan failed, the zero time if its status does not contain that.
func (in *Input) failedAt() time.Time {
	status := &in.InstallPlan.Status
	if since, ok := retryingSince(status); ok {
		return since
	}
	c := status.GetCondition(v1alpha1.InstallPlanInstalled)
	switch {
	case c.LastUpdateTime != nil:
		return c.LastUpdateTime.Time
	case c.LastTransitionTime != nil:
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// isRetried reports whether a failed plan is tried again: a Subscription references it, it created a version that was never
// installed, or it has not created the Subscription of a version. A plan is not tried again once later plans with steps contain all
// of its packages.
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

// takenOverIn returns the versions of the plan that other plans install instead, and whether those are all of them. Other plans wait
// for a plan that runs, but not for one that failed.
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

// isHalfMade reports whether the versions of the plan exist and were never installed, so that later versions wait for the
// steps that the plan did not apply. A version that was deleted is not created again.
func (in *Input) isHalfMade() bool {
	plan := in.InstallPlan
	if len(plan.Spec.ClusterServiceVersionNames) == 0 || !relation.Applied(plan) {
		return false
	}
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		if c := versionNamed(in, name); c == nil || !olmcore.NeverInstalled(c) {
			return false
		}
	}
	return true
}

// leavesUnfollowed reports whether the plan created a version of a package that no Subscription names, and has not created the
// Subscription for it. Without a Subscription the version is never upgraded, and versions that need a newer one are never
// installed. Versions that other plans install instead do not count. A version that was deleted is not created again.
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
