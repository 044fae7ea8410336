// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/stage"
)

const (
	// transientRetry is the pause after a failure that trying again may help.
	transientRetry = time.Second
	// unpackRecheck is the pause between two looks at bundles that are being unpacked,
	// unpackRetry the one after a failure.
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
	// again is the reason to ask again, empty while the answer holds; wait is the time
	// until asking again may help.
	again string
	wait  time.Duration
	// stale: it was computed from other Subscriptions, and is not carried out yet.
	stale bool
	// failed: there is no solution. succeeded: there is one; applies: its decisions can
	// be written. speaks: one of them changes something or failed.
	failed, succeeded, applies, speaks bool
	resolution                         want // ResolutionFailed
	unpacking, unpackFailed            want
	// unpackError is why nothing could be unpacked for now.
	unpackError string
	plan        *v1alpha1.InstallPlan
	decisions   map[string]olmcore.SubscriptionDecision
}

// newAnswer returns what a Resolution means; nil is none.
func newAnswer(n *namespace, in *Resolved) answer {
	if in == nil {
		return answer{again: ResolveUnanswered}
	}
	a := answer{decisions: map[string]olmcore.SubscriptionDecision{}}
	for _, d := range in.Resolution.Decisions {
		a.decisions[d.Name] = d
		a.speaks = a.speaks || d.Changed || d.Failure != nil
	}
	if !a.isFresh(n.subs, in) {
		a.again, a.stale = ResolveStale, in.Resolution.Failure != nil || a.hasUndone(n, in.Plan)
		return a
	}
	for _, d := range in.Resolution.Decisions {
		if d.Failure != nil {
			a.retry(n.now, in, d.Failure)
		}
	}
	if f := in.Resolution.Failure; f != nil {
		a.failed, a.resolution = true, failureWant(f)
		a.retry(n.now, in, f)
		return a
	}
	a.succeeded, a.resolution = true, absent
	a.unpack(n.now, in)
	if len(in.Resolution.Operators) == 0 || in.Plan.Name == "" {
		a.applies = len(in.Resolution.Operators) == 0
		return a
	}
	p := n.plans.ByName[in.Plan.Name]
	if p != nil && (in.Plan.UID != "" && p.UID != in.Plan.UID || p.DeletionTimestamp != nil || n.plans.Window.Gone(p.UID, "")) {
		p = nil
	}
	switch a.plan = p; {
	case p == nil:
		a.planNotVisible(n, in)
	case a.isSpent(n, in):
		a.again = ResolvePlanGone
	default:
		a.applies = true
	}
	return a
}

// isSpent reports whether an answer was carried out to its end before a Subscription was
// made to forget it: the plan is complete, what it brought is gone, and the Subscription
// was written after the resolution. To carry such an answer out again would bring
// nothing.
func (a *answer) isSpent(n *namespace, in *Resolved) bool {
	if a.plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false
	}
	for _, d := range a.decisions {
		s := n.byName[d.Name]
		if d.Changed && n.csvs[d.CurrentCSV] == nil && s != nil && s.Status.InstallPlanRef == nil &&
			(in.At.IsZero() || !s.Status.LastUpdated.Time.Before(in.At.Truncate(time.Second))) {
			return true
		}
	}
	return false
}

// planNotVisible waits for a plan that was made a moment ago, and gives the answer up
// when it stays away while a Subscription needs it.
func (a *answer) planNotVisible(n *namespace, in *Resolved) {
	if !a.hasUndone(n, in.Plan) {
		return
	}
	start := in.At
	for _, s := range n.subs {
		if in.At.IsZero() && s.Status.LastUpdated.After(start) {
			start = s.Status.LastUpdated.Time
		}
	}
	elapsed, grace := stage.Since(start, n.now), n.plans.Grace
	switch {
	case n.plans.Live || n.plans.Window.Gone(in.Plan.UID, in.Plan.Name), !start.IsZero() && elapsed >= grace:
		a.again = ResolvePlanGone
	case start.IsZero():
		a.wait = stage.Recheck
	default:
		a.wait = min(stage.Recheck, grace-elapsed)
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

// retry plans the next try after a failure. For contradicting constraints there is none:
// only a change can help, and a change drops the answer.
func (a *answer) retry(now time.Time, in *Resolved, f *olmcore.ResolutionFailure) {
	switch {
	case f.Unsatisfiable:
	case f.Transient:
		a.retryAfter(now, in, transientRetry)
	default:
		a.retryAfter(now, in, retries.After(min(in.Attempts, 62)+1))
	}
}

// retryAfter asks again once a pause has passed since the answer.
func (a *answer) retryAfter(now time.Time, in *Resolved, pause time.Duration) {
	if in.At.IsZero() {
		return
	}
	left := in.At.Add(pause).Sub(now)
	if left <= 0 || left > 2*pause { // the clock went back: what is left would be a pause for ever
		a.again = ResolveRetry
	} else if a.wait == 0 || left < a.wait {
		a.wait = left
	}
}

// isFresh reports whether the Subscriptions are those that the resolution looked at,
// apart from what carrying it out has changed already.
func (a *answer) isFresh(subs []*v1alpha1.Subscription, in *Resolved) bool {
	if len(in.Resolution.Observed) != len(subs) {
		return false
	}
	observed := map[string]olmcore.SubscriptionFingerprint{}
	for _, o := range in.Resolution.Observed {
		observed[o.Name] = o
	}
	for _, s := range subs {
		is, was := olmcore.FingerprintOf(s), observed[s.Name]
		if is == was {
			continue
		}
		d := a.decisions[s.Name]
		was.CurrentCSV = d.CurrentCSV
		if is != was || !d.Changed || !in.hasReached(s) {
			return false
		}
	}
	return true
}

// hasReached reports whether a Subscription that has the version of a decision can have
// it from this answer: another one may bring the same version by another plan.
func (in *Resolved) hasReached(s *v1alpha1.Subscription) bool {
	ref := s.Status.InstallPlanRef
	return len(in.Resolution.Operators) == 0 || ref != nil && in.Plan.Name != "" && stage.SamePlan(ref, in.Plan.UID, in.Plan.Name)
}

// hasUndone reports whether a decision is not carried out yet.
func (a *answer) hasUndone(n *namespace, plan olmcore.Ref) bool {
	for _, d := range a.decisions {
		if !d.Changed {
			continue
		}
		s := n.byName[d.Name]
		if s == nil || s.Status.CurrentCSV != d.CurrentCSV && s.Status.InstalledCSV != d.CurrentCSV {
			return true
		}
		if ref := s.Status.InstallPlanRef; plan.Name != "" && s.Status.InstalledCSV != d.CurrentCSV && (ref == nil || ref.Name != plan.Name) {
			return true
		}
	}
	return false
}

// unpack sets what the Subscriptions say of the bundles of an answer.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: a failure is tried again every time, not only
// the first; BundleUnpacking and BundleUnpackFailed are never both there.
func (a *answer) unpack(now time.Time, in *Resolved) {
	failed := func(reason, message string) { a.unpacking, a.unpackFailed = absent, present(reason, message) }
	u := in.Unpacking
	switch {
	case in.PlanError != "":
		failed(ReasonEnsureInstallPlanFailed, "error ensuring InstallPlan: "+in.PlanError)
		a.retry(now, in, &olmcore.ResolutionFailure{})
	case u == nil && len(in.Resolution.Operators) > 0 && in.Plan.Name == "":
	case u == nil:
		a.unpacking, a.unpackFailed = absent, absent
	case u.Failure != nil && u.Failure.Transient:
		a.unpackError = u.Failure.Message
		a.retry(now, in, &olmcore.ResolutionFailure{}) // as after any other error
	case u.Failure != nil:
		failed(ReasonErrorPreventedUnpacking, u.Failure.Message)
	default:
		a.lookups(now, in)
	}
}

// lookups sets what the lookups add up to: a failure, the first one; else progress; else
// nothing.
func (a *answer) lookups(now time.Time, in *Resolved) {
	a.unpacking, a.unpackFailed = absent, absent
	pending, hint := false, ""
	for i := range in.Unpacking.Lookups {
		for _, c := range in.Unpacking.Lookups[i].Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == v1alpha1.BundleLookupFailed:
				a.retryAfter(now, in, unpackRetry)
				a.unpackFailed = present(ReasonBundleUnpackFailed, lookupFailure(c))
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
	if !pending {
		return
	}
	if a.wait == 0 || unpackRecheck < a.wait {
		a.wait = unpackRecheck
	}
	a.unpacking = present(ReasonUnpackingInProgress, hint)
}

func lookupFailure(c v1alpha1.BundleLookupCondition) string {
	message := "Bundle unpacking failed - " + c.Reason + ": " + c.Message
	if strings.Contains(c.Message, "Auto-retry") || strings.Contains(c.Message, "Common causes") {
		return message
	}
	return message + ". " + unpackGuidance
}

// conditionFacts returns what the answer says of one Subscription.
func (n *namespace) conditionFacts(s *v1alpha1.Subscription) facts {
	a, f := &n.answer, facts{spec: s.Spec}
	d, decided := a.decisions[s.Name]
	switch {
	case n.blocked != "":
		f.resolution = present(ReasonErrorPreventedResolution, n.blocked)
		return f
	case a.failed, a.succeeded:
		f.resolution, f.unpacking, f.unpackFailed = a.resolution, a.unpacking, a.unpackFailed
	case isBlockedMessage(s.Status.Conditions):
		f.resolution = absent // nothing else takes it back while the Subscription waits for its plan
	}
	if decided && d.Failure != nil && a.speaks {
		f.resolution = failureWant(d.Failure) // says more than the namespace's
	}
	return f
}

// isBlockedMessage reports whether ResolutionFailed says that the number of
// OperatorGroups is wrong.
func isBlockedMessage(have []v1alpha1.SubscriptionCondition) bool {
	i := slices.IndexFunc(have, func(c v1alpha1.SubscriptionCondition) bool { return c.Type == v1alpha1.SubscriptionResolutionFailed })
	return i >= 0 && have[i].Reason == ReasonErrorPreventedResolution &&
		strings.HasPrefix(have[i].Message, "found ") && strings.HasSuffix(have[i].Message, " operatorGroups, expected 1")
}
