// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// transientRetry is the pause after a failure that trying again may help.
	transientRetry = time.Second
	// Other failures wait 5 ms times two to the number of attempts, at most 5 min.
	firstRetry, lastRetry = 5 * time.Millisecond, 5 * time.Minute
)

// answer is what a Resolution means for the Subscriptions that are there now.
type answer struct {
	given bool
	// again is the reason to ask again, empty while the answer holds.
	again     string
	wait      time.Duration // until asking again may help
	stale     bool          // computed from other Subscriptions, and not carried out yet
	apply     bool          // decisions can be written
	succeeded bool
	speaks    bool // a decision changes something or failed
	unpack    wish // BundleUnpacking or BundleUnpackFailed
	hasFailed bool
	failed    wish // ResolutionFailed, when the resolution failed
	plan      *v1alpha1.InstallPlan
	decisions []olmcore.SubscriptionDecision // sorted; none unless it speaks

	unpackError string // why nothing could be unpacked for now
}

// answerOf fills in what an answer means, nil for none.
func (v *view) answerOf(a *answer, in *Resolved) {
	if in == nil {
		a.again = ResolveUnanswered
		return
	}
	a.given = true
	for i := range in.Resolution.Decisions {
		decision := &in.Resolution.Decisions[i]
		a.speaks = a.speaks || decision.Changed || decision.Failure != nil
	}
	if a.speaks {
		a.decisions = sortedDecisions(in.Resolution.Decisions)
	}
	if observed := in.Resolution.Observed; !v.asObserved && !v.isFresh(observed, a, in) && !v.isFresh(sortedFingerprints(observed), a, in) {
		a.again = ResolveStale
		a.stale = in.Resolution.Failure != nil || v.hasUndone(a.decisions, in.Plan)
		return
	}
	for i := range a.decisions {
		if f := a.decisions[i].Failure; f != nil {
			v.retry(a, in, f)
		}
	}
	if f := in.Resolution.Failure; f != nil {
		a.hasFailed, a.failed = true, wishOfFailure(f)
		v.retry(a, in, f)
		return
	}
	a.succeeded, a.apply = true, true
	v.unpack(a, in)
	if len(in.Resolution.Operators) == 0 || in.Plan.Name == "" {
		a.apply = len(in.Resolution.Operators) == 0
		return
	}
	p := v.plan(in.Plan.Name)
	if p != nil && (in.Plan.UID != "" && p.UID != in.Plan.UID || p.DeletionTimestamp != nil || v.isGone(p.UID, "")) {
		p = nil
	}
	switch a.plan = p; {
	case p == nil:
		a.apply = false
		v.planOutOfSight(a, in)
	case v.isSpent(a, in):
		a.apply, a.again = false, ResolvePlanGone
	}
}

// check reports a Subscription that is decided about twice.
func (a *answer) check() error {
	for i := range a.decisions {
		if i > 0 && a.decisions[i].Name == a.decisions[i-1].Name {
			return &olmcore.InputError{Field: "Resolution.Resolution.Decisions", Problem: "holds " + a.decisions[i].Name + " twice"}
		}
	}
	return nil
}

// isSpent reports whether an answer was carried out to its end before a
// Subscription was made to forget it: the plan is complete, what it brought is
// gone, and the Subscription was written after the resolution. To carry such an
// answer out again would bring nothing.
func (v *view) isSpent(a *answer, in *Resolved) bool {
	if a.plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false
	}
	for i := range a.decisions {
		if !a.decisions[i].Changed || v.csv(a.decisions[i].CurrentCSV) != nil {
			continue
		}
		s := v.subscription(a.decisions[i].Name)
		if s != nil && s.Status.InstallPlanRef == nil && (in.At.IsZero() || !s.Status.LastUpdated.Time.Before(in.At.Truncate(time.Second))) {
			return true
		}
	}
	return false
}

// planOutOfSight waits for a plan that was made a moment ago, and gives the
// answer up when it stays away while a Subscription needs it.
func (v *view) planOutOfSight(a *answer, in *Resolved) {
	if !v.hasUndone(a.decisions, in.Plan) {
		return
	}
	start := in.At
	for _, s := range v.subs {
		if in.At.IsZero() && s.Status.LastUpdated.After(start) {
			start = s.Status.LastUpdated.Time
		}
	}
	elapsed := since(start, v.now)
	switch {
	case v.live || v.isGone(in.Plan.UID, in.Plan.Name), !start.IsZero() && elapsed >= v.config.MissingGrace:
		a.again = ResolvePlanGone
	case start.IsZero():
		a.wait = v.config.MissingRecheck
	default:
		a.wait = min(v.config.MissingRecheck, v.config.MissingGrace-elapsed)
	}
}

// wishOfFailure returns what ResolutionFailed says of a failure.
func wishOfFailure(f *olmcore.ResolutionFailure) wish {
	switch {
	case f.Unsatisfiable:
		const prefix = "constraints not satisfiable: "
		message := f.Message
		if !strings.HasPrefix(message, prefix) {
			message = prefix + message
		}
		return wish{conditionType: v1alpha1.SubscriptionResolutionFailed, reason: ReasonConstraintsNotSatisfiable, message: message}
	case f.Transient:
		return wish{keep: true}
	}
	return wish{conditionType: v1alpha1.SubscriptionResolutionFailed, reason: ReasonErrorPreventedResolution, message: f.Message}
}

// retry plans the next try after a failure. For contradicting constraints there
// is none: only a change can help, and a change drops the answer.
func (v *view) retry(a *answer, in *Resolved, f *olmcore.ResolutionFailure) {
	if f.Unsatisfiable || in.At.IsZero() {
		return
	}
	pause := lastRetry
	switch {
	case f.Transient:
		pause = transientRetry
	case in.Attempts < 16:
		pause = min(firstRetry<<in.Attempts, lastRetry)
	}
	v.retryAfter(a, in, pause)
}

// retryAfter asks again once a pause has passed since the answer.
func (v *view) retryAfter(a *answer, in *Resolved, pause time.Duration) {
	if in.At.IsZero() {
		return
	}
	left := in.At.Add(pause).Sub(v.now)
	if left <= 0 || left > 2*pause { // the clock went back: what is left would be a pause for ever
		a.again = ResolveRetry
	} else if a.wait == 0 || left < a.wait {
		a.wait = left
	}
}

// isFresh reports whether the Subscriptions are those that the resolution looked
// at, apart from what carrying it out has changed already.
func (v *view) isFresh(observed []olmcore.SubscriptionFingerprint, a *answer, in *Resolved) bool {
	if len(observed) != len(v.subs) {
		return false
	}
	for i, s := range v.subs {
		o := &observed[i]
		if isAs(s, o) {
			continue
		}
		if o.Name != s.Name || o.UID != s.UID || o.Generation != s.Generation || o.InstalledCSV != s.Status.InstalledCSV {
			return false
		}
		if c := a.decisionFor(s.Name); c == nil || !c.Changed || c.CurrentCSV != s.Status.CurrentCSV || !in.hasReached(s) {
			return false
		}
	}
	return true
}

// hasReached reports whether a Subscription that has the version of a decision can
// have it from this answer: another one may bring the same version by another plan.
func (in *Resolved) hasReached(s *v1alpha1.Subscription) bool {
	ref := s.Status.InstallPlanRef
	return len(in.Resolution.Operators) == 0 || ref != nil && in.Plan.Name != "" && samePlan(ref, in.Plan.UID, in.Plan.Name)
}

func isAs(s *v1alpha1.Subscription, o *olmcore.SubscriptionFingerprint) bool {
	return o.Name == s.Name && o.UID == s.UID && o.Generation == s.Generation &&
		o.InstalledCSV == s.Status.InstalledCSV && o.CurrentCSV == s.Status.CurrentCSV
}

// hasUndone reports whether a decision is not carried out yet.
func (v *view) hasUndone(decisions []olmcore.SubscriptionDecision, plan olmcore.Ref) bool {
	for i := range decisions {
		if !decisions[i].Changed {
			continue
		}
		s := v.subscription(decisions[i].Name)
		if s == nil || s.Status.CurrentCSV != decisions[i].CurrentCSV && s.Status.InstalledCSV != decisions[i].CurrentCSV {
			return true
		}
		if ref := s.Status.InstallPlanRef; plan.Name != "" && s.Status.InstalledCSV != decisions[i].CurrentCSV &&
			(ref == nil || ref.Name != plan.Name) {
			return true
		}
	}
	return false
}

// applyAnswer writes what the resolution means for one Subscription.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: the reference is written before the plan has
// content, so no plan runs ahead of it; the conditions go from every
// Subscription as soon as the resolution succeeded.
func (v *view) applyAnswer(d *verdict) {
	a := &v.answer
	switch {
	case v.blocked != "":
		d.resolution = wish{conditionType: v1alpha1.SubscriptionResolutionFailed, reason: ReasonErrorPreventedResolution, message: v.blocked}
		return
	case a.hasFailed:
		d.resolution = a.failed
		if decision := a.decisionFor(d.sub.Name); decision != nil && decision.Failure != nil {
			d.resolution = wishOfFailure(decision.Failure) // says more than the namespace's
		}
		return
	case a.succeeded:
		d.resolution.keep, d.unpack.keep = false, a.unpack.keep
		if a.unpack.conditionType != "" { // it is rarely worth a copy
			d.unpack = a.unpack
		}
	default:
		d.unblock()
	}
	if !a.speaks {
		if a.plan != nil {
			v.catchUp(d)
		}
		return
	}
	decision := a.decisionFor(d.sub.Name)
	if decision == nil {
		return
	}
	if decision.Failure != nil {
		d.resolution = wishOfFailure(decision.Failure)
		return
	}
	if !a.apply || d.sub.DeletionTimestamp != nil || !decision.Changed || decision.CurrentCSV == "" {
		v.catchUp(d)
		return
	}
	if a.plan == nil {
		d.currentCSV = decision.CurrentCSV
		return
	}
	s := &d.sub.Status
	if s.CurrentCSV == decision.CurrentCSV && s.InstallPlanRef != nil && samePlan(s.InstallPlanRef, a.plan.UID, a.plan.Name) {
		return // carried out
	}
	d.currentCSV, d.state = decision.CurrentCSV, v1alpha1.SubscriptionStateUpgradePending
	d.setReference(a.plan)
	d.generation = max(d.generation, a.plan.Spec.Generation)
	d.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + a.plan.Name + " brings " + d.currentCSV}
}

// catchUp moves a Subscription that waits for a version to the plan of the answer when
// that one brings the version too and the plan that it refers to does not run: one that
// never got its content, one that waits for its approval, one that failed. No later
// resolution decides about it again, and of two plans that wait the newer one has what
// the older one may not have any more: the versions of all others.
func (v *view) catchUp(d *verdict) {
	a := &v.answer
	ref := d.sub.Status.InstallPlanRef
	if a.plan == nil || !a.apply || ref == nil || d.currentCSV == "" || d.sub.DeletionTimestamp != nil ||
		samePlan(ref, a.plan.UID, a.plan.Name) || !slices.Contains(a.plan.Spec.ClusterServiceVersionNames, d.currentCSV) {
		return
	}
	old := v.plan(ref.Name)
	if old == nil || !samePlan(ref, old.UID, old.Name) {
		return
	}
	why := "never got its steps"
	if !isStatusless(old) {
		if !a.speaks || isTerminal(a.plan) || a.plan.Spec.Generation <= old.Spec.Generation || v.csv(d.currentCSV) != nil {
			return
		}
		switch stageOf(old) {
		case StageNotYetReconciled, StageRequiresApproval:
			why = "is older and waits for its approval"
			if old.Spec.Approved {
				return // and about to run
			}
		case StageFailed:
			why = "failed"
		default:
			return
		}
	}
	d.state = v1alpha1.SubscriptionStateUpgradePending
	d.setReference(a.plan)
	d.generation = max(d.generation, a.plan.Spec.Generation)
	d.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + a.plan.Name + " brings " + d.currentCSV +
		" instead of " + ref.Name + ", which " + why}
}

func (a *answer) decisionFor(name string) *olmcore.SubscriptionDecision {
	i, found := slices.BinarySearchFunc(a.decisions, name, func(c olmcore.SubscriptionDecision, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !found {
		return nil
	}
	return &a.decisions[i]
}

// unblock takes back what was said while the number of OperatorGroups was wrong;
// nobody else would while the Subscription waits for its plan.
func (d *verdict) unblock() {
	have := d.sub.Status.Conditions
	if i := first(have, v1alpha1.SubscriptionResolutionFailed); i >= 0 && have[i].Reason == ReasonErrorPreventedResolution &&
		strings.HasPrefix(have[i].Message, "found ") && strings.HasSuffix(have[i].Message, " operatorGroups, expected 1") {
		d.resolution.keep = false
	}
}

func sortedFingerprints(list []olmcore.SubscriptionFingerprint) []olmcore.SubscriptionFingerprint {
	sorted := true
	for i := 1; i < len(list) && sorted; i++ {
		sorted = list[i-1].Name < list[i].Name
	}
	if sorted {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b olmcore.SubscriptionFingerprint) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	return list
}

func sortedDecisions(list []olmcore.SubscriptionDecision) []olmcore.SubscriptionDecision {
	sorted := true
	for i := 1; i < len(list) && sorted; i++ {
		sorted = list[i-1].Name < list[i].Name
	}
	if sorted {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b olmcore.SubscriptionDecision) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.CurrentCSV, b.CurrentCSV))
	})
	return list
}
