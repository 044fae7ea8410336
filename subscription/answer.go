// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

const (
	// transientRetry is the pause after a failure that trying again may help.
	transientRetry = time.Second
	// unpackRecheck is the pause between two looks at bundles that are being unpacked, unpackRetry the one after a failure.
	unpackRecheck = 5 * time.Second
	unpackRetry   = 5 * time.Minute

	unpackGuidance = "Auto-retry: it is tried again every 5 minutes. Common causes: the image does not exist or cannot be pulled, " +
		"or its Pod finds no node; to try at once, delete the failing Job with the label operatorframework.io/bundle-unpack-ref " +
		"in the namespace of the catalog"
)

// retries times the next try after other failures.
var retries = olmcore.Backoff{Base: 5 * time.Millisecond, Max: 5 * time.Minute}

// answer is what a Resolution means for the Subscriptions that are there now.
type answer struct {
	n  *namespace
	in *Resolved
	// again is the reason to ask again, empty while the answer holds; wait is the time until asking again may help.
	again string
	wait  time.Duration
	// stale: it was computed from other Subscriptions, and is not carried out yet.
	stale bool
	// failed: there is no solution. succeeded: there is one; applies: its decisions can be written. speaks: one of them
	// changes something or failed.
	failed, succeeded, applies, speaks bool
	resolution                         want // ResolutionFailed
	unpacking, unpackFailed            want
	// unpackError is why nothing could be unpacked for now.
	unpackError string
	plan        *v1alpha1.InstallPlan
	decisions   map[string]*olmcore.SubscriptionDecision
}

// newAnswer returns what a Resolution means; nil is none.
func newAnswer(n *namespace, in *Resolved) answer {
	if in == nil {
		return answer{again: ResolveUnanswered}
	}
	a := answer{n: n, in: in, decisions: make(map[string]*olmcore.SubscriptionDecision, len(in.Resolution.Decisions))}
	for i := range in.Resolution.Decisions {
		d := &in.Resolution.Decisions[i]
		a.decisions[d.Name] = d
		a.speaks = a.speaks || d.Changed || d.Failure != nil
	}
	if !a.isFresh() {
		a.again, a.stale = ResolveStale, in.Resolution.Failure != nil || a.hasUndone()
		return a
	}
	for _, d := range in.Resolution.Decisions {
		a.retry(d.Failure)
	}
	if f := in.Resolution.Failure; f != nil {
		a.failed, a.resolution = true, failureWant(f)
		a.retry(f)
		return a
	}
	a.succeeded, a.resolution = true, absent
	a.unpack()
	if len(in.Resolution.Operators) == 0 || in.Plan.Name == "" {
		a.applies = len(in.Resolution.Operators) == 0
		return a
	}
	p := n.planNamed[in.Plan.Name]
	if p != nil && (in.Plan.UID != "" && p.UID != in.Plan.UID || p.DeletionTimestamp != nil || n.window.gone(p.UID, "")) {
		p = nil
	}
	switch a.plan = p; {
	case p == nil:
		a.planNotVisible()
	case a.isSpent():
		a.again = ResolvePlanGone
	default:
		a.applies = true
	}
	return a
}

// isSpent reports whether an answer was carried out to its end before a Subscription was made to forget it: the plan is
// complete, what it brought is gone, and the Subscription was written after the resolution. To carry such an answer out
// again would bring nothing.
func (a *answer) isSpent() bool {
	if a.plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false
	}
	for _, d := range a.decisions {
		s := a.n.subNamed[d.Name]
		if d.Changed && a.n.csvs[d.CurrentCSV] == nil && s != nil && s.Status.InstallPlanRef == nil &&
			(a.in.At.IsZero() || !s.Status.LastUpdated.Time.Before(a.in.At.Truncate(time.Second))) {
			return true
		}
	}
	return false
}

// planNotVisible waits for a plan that was just made, and gives the answer up when it stays away while it is needed.
func (a *answer) planNotVisible() {
	if !a.hasUndone() {
		return
	}
	start := a.in.At
	if start.IsZero() {
		for _, s := range a.n.subs {
			start = relation.Latest(start, s.Status.LastUpdated.Time)
		}
	}
	left := a.n.grace - since(start, a.n.now)
	switch {
	case a.n.live || a.n.window.gone(a.in.Plan.UID, a.in.Plan.Name), !start.IsZero() && left <= 0:
		a.again = ResolvePlanGone
	case start.IsZero():
		a.wait = recheck
	default:
		a.wait = min(recheck, left)
	}
}

// failureWant returns what ResolutionFailed says of a failure.
func failureWant(f *olmcore.ResolutionFailure) want {
	const prefix = "constraints not satisfiable: "
	switch {
	case f.Unsatisfiable:
		return present(ReasonConstraintsNotSatisfiable, prefix+strings.TrimPrefix(f.Message, prefix))
	case f.Transient:
		return want{}
	}
	return present(ReasonErrorPreventedResolution, f.Message)
}

// retry plans the next try after a failure. Contradicting constraints need a change, which drops the answer.
func (a *answer) retry(f *olmcore.ResolutionFailure) {
	switch {
	case f == nil || f.Unsatisfiable:
	case f.Transient:
		a.retryAfter(transientRetry)
	default:
		a.retryAfter(retries.After(min(a.in.Attempts, 62) + 1))
	}
}

// retryAfter asks again once a pause has passed since the answer.
func (a *answer) retryAfter(pause time.Duration) {
	if a.in.At.IsZero() {
		return
	}
	left := a.in.At.Add(pause).Sub(a.n.now)
	if left <= 0 || left > 2*pause { // the clock went back: what is left would be a pause for ever
		a.again = ResolveRetry
	} else if a.wait == 0 || left < a.wait {
		a.wait = left
	}
}

// isFresh reports whether the Subscriptions are those that were resolved, but for what carrying it out has changed.
func (a *answer) isFresh() bool {
	observed := a.in.Resolution.Observed
	if len(observed) != len(a.n.subs) {
		return false
	}
	byName := make(map[string]*olmcore.SubscriptionFingerprint, len(observed))
	for i := range observed {
		byName[observed[i].Name] = &observed[i]
	}
	for _, s := range a.n.subs {
		is, was, d := olmcore.FingerprintOf(s), byName[s.Name], a.decisions[s.Name]
		switch {
		case was == nil:
			return false
		case is == *was:
			continue
		case d == nil || !d.Changed || is.CurrentCSV != d.CurrentCSV || !a.isReached(s):
			return false
		}
		if is.CurrentCSV = was.CurrentCSV; is != *was {
			return false
		}
	}
	return true
}

// isReached reports whether a Subscription that has the version of a decision can have it from this answer: another one
// may bring the same version by another plan.
func (a *answer) isReached(s *v1alpha1.Subscription) bool {
	ref, plan := s.Status.InstallPlanRef, a.in.Plan
	return len(a.in.Resolution.Operators) == 0 || ref != nil && plan.Name != "" && relation.SamePlan(ref, plan.UID, plan.Name)
}

// hasUndone reports whether a decision is not carried out yet.
func (a *answer) hasUndone() bool {
	for _, d := range a.decisions {
		s := a.n.subNamed[d.Name]
		switch {
		case !d.Changed:
		case s == nil:
			return true
		case s.Status.InstalledCSV == d.CurrentCSV:
		case s.Status.CurrentCSV != d.CurrentCSV:
			return true
		default:
			if ref := s.Status.InstallPlanRef; a.in.Plan.Name != "" && (ref == nil || ref.Name != a.in.Plan.Name) {
				return true
			}
		}
	}
	return false
}

// unpack sets what the Subscriptions say of the bundles of an answer.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: a failure is
// tried again every time, not only the first; BundleUnpacking and BundleUnpackFailed are never both there.
func (a *answer) unpack() {
	u := a.in.Unpacking
	a.unpacking, a.unpackFailed = absent, absent
	switch {
	case a.in.PlanError != "":
		a.unpackFailed = present(ReasonEnsureInstallPlanFailed, "error ensuring InstallPlan: "+a.in.PlanError)
		a.retry(&olmcore.ResolutionFailure{})
	case a.in.PlanRefused.Reason != "":
		a.unpackFailed = present(a.in.PlanRefused.Reason, a.in.PlanRefused.Message)
	case u == nil && len(a.in.Resolution.Operators) > 0 && a.in.Plan.Name == "":
		a.unpacking, a.unpackFailed = want{}, want{}
	case u == nil:
	case u.Failure != nil && u.Failure.Transient:
		a.unpacking, a.unpackFailed, a.unpackError = want{}, want{}, u.Failure.Message
		a.retry(&olmcore.ResolutionFailure{}) // as after any other error
	case u.Failure != nil:
		a.unpackFailed = present(ReasonErrorPreventedUnpacking, u.Failure.Message)
	default:
		a.lookups()
	}
}

// lookups sets what the lookups add up to: a failure, the first one; else progress; else nothing.
func (a *answer) lookups() {
	pending, hint := false, ""
	for _, lookup := range a.in.Unpacking.Lookups {
		for _, c := range lookup.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == v1alpha1.BundleLookupFailed:
				a.retryAfter(unpackRetry)
				message := "Bundle unpacking failed - " + c.Reason + ": " + c.Message
				if !strings.Contains(c.Message, "Auto-retry") && !strings.Contains(c.Message, "Common causes") {
					message += ". " + unpackGuidance
				}
				a.unpackFailed = present(ReasonBundleUnpackFailed, message)
				return
			case c.Type == v1alpha1.BundleLookupPending:
				pending = true
				if hint == "" && c.Reason == "JobIncomplete" &&
					(strings.Contains(c.Message, "ImagePullBackOff") || strings.Contains(c.Message, "ErrImagePull")) {
					hint = "an image cannot be pulled: " + c.Message
				}
			}
		}
	}
	if pending {
		a.unpacking = present(ReasonUnpackingInProgress, hint)
		if a.wait == 0 || unpackRecheck < a.wait {
			a.wait = unpackRecheck
		}
	}
}

// facts returns what the answer says of one Subscription.
func (j *judgement) facts() facts {
	a, f := &j.answer, facts{Verdict: j.Verdict}
	d := a.decisions[j.Subscription.Name]
	said := j.Subscription.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed)
	switch {
	case j.blocked != "":
		f.resolution = present(ReasonErrorPreventedResolution, j.blocked)
		return f
	case a.failed, a.succeeded:
		f.resolution, f.unpacking, f.unpackFailed = a.resolution, a.unpacking, a.unpackFailed
	case said.Reason == ReasonErrorPreventedResolution && strings.HasPrefix(said.Message, "found ") && strings.HasSuffix(said.Message, " operatorGroups, expected 1"):
		f.resolution = absent // nothing else takes that back while the Subscription waits for its plan
	}
	// A failure in an answer that does not hold any more is not published: two managers would overwrite each other without end.
	if d != nil && d.Failure != nil && (a.failed || a.succeeded) {
		f.resolution = failureWant(d.Failure) // more exact than that of the namespace
	}
	return f
}
