// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

const (
	// recheck is the time between two looks at what a stale cache may show: a plan that is not visible within the grace
	// period, one that seems to have gone back, a status that does not have our own write.
	recheck = time.Second
	// unknownRetry is the time after which a plan with an unknown phase is looked at again.
	unknownRetry = 5 * time.Minute
)

// PlanState is what is known of the InstallPlan that a Subscription refers to.
type PlanState struct {
	// Stage is the one that is believed, Shown the one that the conditions are to show: StageUnverified and
	// StageUnknown keep what they show. Recorded is what the observed conditions show since RecordedAt, empty for none.
	Stage, Shown, Recorded Stage
	RecordedAt             time.Time
	// Plan is nil unless it is visible. UID and Name are those of the plan, else those of the reference.
	Plan *v1alpha1.InstallPlan
	UID  types.UID
	Name string
	// Invalid: the reference cannot name a plan of this Subscription.
	Invalid bool
	// Replaced: the visible plan has another UID than the reference.
	Replaced bool
	// Lasting: the plan has been missing long enough to forget it, or its deletion was witnessed: then the absence is
	// Proven.
	Lasting, Proven bool
	// Outlived: the plan of a version that was installed was missing already before anything else was. To resolve the
	// namespace again would undo what was done to the version on purpose.
	Outlived bool
}

// tracker follows the plan of one Subscription: what its listed version, the Observations, the History and the observed
// conditions prove. look says which version of the plan counts and in which stage it is, publish which stage the
// conditions show, and trace which transitions led there.
type tracker struct {
	*namespace
	*Verdict
	// kept: the caller keeps histories. known: there is one, and it names a stage.
	kept, known   bool
	before, after History
}

// newTracker recalls what is remembered of a Subscription.
func newTracker(n *namespace, v *Verdict) tracker {
	status := &v.Subscription.Status
	v.Plan.Recorded, v.Plan.RecordedAt = shownStage(status.Conditions)
	v.Plan.Outlived = status.CurrentCSV != "" && status.InstalledCSV == status.CurrentCSV &&
		(v.Plan.Recorded == StageMissing || status.State == v1alpha1.SubscriptionStateAtLatest)
	t := tracker{namespace: n, Verdict: v, kept: n.histories != nil, before: n.histories[v.Subscription.UID]}
	if !t.before.isValid() {
		t.report(olmcore.Info, ReasonHistoryInvalid, "", "the stored history names the unknown stage %s", t.before.LastStage)
		t.before = History{}
	}
	t.known, t.after = t.before.LastStage != "", t.before
	return t
}

func (t *tracker) report(severity olmcore.Severity, reason, path, format string, args ...any) {
	t.Diagnostics = append(t.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(t.Subscription), path, format, args...))
}

// look observes the plan that the Subscription is to refer to.
func (t *tracker) look() {
	p, ref := &t.Plan, t.Status.InstallPlanRef
	*p = PlanState{Stage: StageNoPlan, Recorded: p.Recorded, RecordedAt: p.RecordedAt, Outlived: p.Outlived}
	if ref == nil {
		return
	}
	if p.Invalid = ref.Name == "" || ref.Kind != "" && ref.Kind != v1alpha1.InstallPlanKind || ref.Namespace != "" && ref.Namespace != t.name; p.Invalid {
		t.report(olmcore.Warning, ReasonRefInvalid, "status.installPlanRef", "the reference names no InstallPlan of this namespace")
		return
	}
	p.UID, p.Name = ref.UID, ref.Name
	plan := t.newest(t.planNamed[ref.Name])
	other := plan != nil && ref.UID != "" && plan.UID != "" && plan.UID != ref.UID
	if plan == nil || other && plan.DeletionTimestamp != nil {
		t.miss()
		return
	}
	t.after.MissingSince = time.Time{}
	p.Plan, p.UID, p.Replaced = plan, plan.UID, other
	if other {
		t.refer(plan)
		t.report(olmcore.Warning, ReasonRefUIDMismatch, "status.installPlanRef", "InstallPlan %s is another object than the one referred to", plan.Name)
	}
	if p.Stage = t.believe(); p.Stage == StageUnknown {
		t.Requeue(unknownRetry)
		t.report(olmcore.Warning, ReasonUnknownPhase, "status.conditions", "InstallPlan %s has the unknown phase %s", plan.Name, plan.Status.Phase)
	}
	if p.Stage != StageUnverified {
		t.Status.InstallPlanGeneration = max(t.Status.InstallPlanGeneration, plan.Spec.Generation)
	}
}

// miss decides what it means that the plan is not visible: nothing yet within the grace period, because a cache may be
// stale; then that it was deleted.
func (t *tracker) miss() {
	p := &t.Plan
	p.Stage = StageMissing
	if t.live || t.window.gone(p.UID, p.Name) {
		p.Proven, p.Lasting = true, true
		return
	}
	start := t.Subscription.Status.LastUpdated.Time
	if t.kept {
		if t.after.MissingSince.IsZero() || t.after.MissingSince.After(t.now) { // the clock went back
			t.after.MissingSince = instant(t.now)
		}
		start = t.after.MissingSince
	}
	left := t.grace - since(start, t.now)
	switch {
	case left <= 0:
		p.Lasting = true
	case p.Recorded != StageMissing:
		p.Stage = StageUnverified
		t.Requeue(min(left, recheck))
		t.report(olmcore.Info, ReasonPlanUnverified, "status.installPlanRef", "InstallPlan %s is not visible", p.Name)
	case t.Subscription.Status.State == v1alpha1.SubscriptionStateUpgradePending: // published already: a clock that moved takes nothing back
		t.Requeue(min(left, recheck))
	}
}

// newest returns the newest version of the plan that the Subscription refers to: the listed one, unless the window goes
// on after it or shows, for as long as a cache may be stale, a later one; nil for a plan whose deletion was witnessed.
func (t *tracker) newest(listed *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	uid, name := t.Plan.UID, t.Plan.Name
	if listed != nil {
		uid, name = listed.UID, listed.Name
	}
	last := t.window.last(uid, name)
	switch {
	case (listed != nil || uid != "") && t.window.gone(uid, ""), listed == nil && t.window.gone("", name):
		return nil
	case last == nil || listed != nil && sameVersion(last.Plan, listed):
		return listed
	case listed != nil && t.window.holds(listed):
		return last.Plan
	case t.live || listed != nil && !isStale(listed, last.Plan):
		return listed
	}
	left := t.grace - since(last.At, t.now)
	if left <= 0 && (listed == nil || !isOlderVersion(listed.ResourceVersion, last.Plan.ResourceVersion)) {
		return listed
	}
	t.Requeue(left)
	return last.Plan
}

// believe returns the plan's stage, or StageUnverified where a stale cache is the likelier explanation of what is seen.
// Only a caller who keeps a memory and has no ordered window needs to suspect it.
func (t *tracker) believe() Stage {
	plan, stage := t.Plan.Plan, stageOf(t.Plan.Plan)
	if !t.kept {
		return stage
	}
	last := t.lastKnown()
	isOlder, isSuspect, grace := false, false, recheck
	if last != "" && !t.live {
		isOlder, isSuspect = t.before.contradicts(plan, stage, last)
	}
	if isOlder { // or written by another leader, whose clock is slow; or etcd was restored
		grace = t.grace
	}
	switch {
	case !isSuspect || t.isObserved(plan, stage) || !t.waitsFor(stage, grace):
		t.after.SuspectStage, t.after.SuspectSince = "", time.Time{}
		return stage
	case isOlder:
		t.report(olmcore.Info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan %s was seen in an older version than before", plan.Name)
	default:
		t.report(olmcore.Info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan %s seems to have gone from %s to %s", plan.Name, last, stage)
	}
	return StageUnverified
}

// contradicts reports whether a plan is suspect after what is remembered, and whether because this version is older
// than the remembered one.
func (h *History) contradicts(plan *v1alpha1.InstallPlan, stage, last Stage) (isOlder, isSuspect bool) {
	at, isSame := relation.InstalledAt(plan), h.isAbout(plan.UID, plan.Name)
	order, isOrdered := compareVersions(plan.ResourceVersion, h.LastVersion)
	isOrdered = isOrdered && isSame && order != 0
	isOlder = isOrdered && order < 0 && (stage != last || at.Before(h.LastInstalledUpdate)) // else it says nothing else
	if !isOrdered {
		isOlder = isSame && at.Before(h.LastInstalledUpdate) &&
			(!at.IsZero() || last == stage || reachable(last, stage)) // no controller takes the condition away
	}
	switch {
	case isOlder:
		return true, true
	case isOrdered:
		return false, false
	case isSame && last == StageInstalling && stage == StageFailed && !at.IsZero() && at.Equal(h.LastInstalledUpdate):
		return false, true // another failure would have a time of its own
	}
	return false, last != StageMissing && last != StageUnknown && stage != StageUnknown && last != stage && !reachable(last, stage)
}

// waitsFor reports whether a stage has been suspect for less than the grace period, and remembers since when it is.
func (t *tracker) waitsFor(stage Stage, grace time.Duration) bool {
	left := grace
	if t.before.SuspectStage == stage && !t.before.SuspectSince.After(t.now) {
		left -= since(t.before.SuspectSince, t.now)
	} else {
		t.after.SuspectStage, t.after.SuspectSince = stage, instant(t.now)
	}
	t.Requeue(min(left, recheck))
	return left > 0
}

// isObserved reports whether an ordered watch or a direct read delivered the plan in a stage last, after what is
// remembered of it.
func (t *tracker) isObserved(plan *v1alpha1.InstallPlan, stage Stage) bool {
	last, h := t.window.last(plan.UID, plan.Name), &t.before
	if last == nil || stageOf(last.Plan) != stage {
		return false
	}
	if order, ok := compareVersions(last.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && h.isAbout(plan.UID, plan.Name) {
		return order > 0
	}
	return last.At.After(h.LastObserved) && (!h.LastObserved.IsZero() || !last.At.Before(h.LastAt))
}

// lastKnown returns the stage of the visible plan that is known already: what is remembered, else what the status says,
// which another writer may have written; empty for none.
func (t *tracker) lastKnown() Stage {
	ref, plan := t.Subscription.Status.InstallPlanRef, t.Plan.Plan
	if t.known && t.before.isAbout(plan.UID, plan.Name) {
		return t.before.LastStage
	}
	if ref != nil && relation.SamePlan(ref, plan.UID, plan.Name) {
		if from := t.recorded(); from.stage != StageNoPlan {
			return from.stage
		}
	}
	return ""
}
