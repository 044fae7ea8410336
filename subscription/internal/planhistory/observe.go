// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"cmp"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Seen contains the result of Observe: the state of an InstallPlan and the Diagnostics about it.
type Seen struct {
	State
	// Unconfirmed contains the observations that may come from a stale cache.
	Unconfirmed Unconfirmed
	// Result contains the Diagnostics and the time until the next call.
	Result olmcore.Result
}

// Observe returns the state of the InstallPlan that ref references. If the caller decided that the Subscription should
// reference another InstallPlan, ref differs from the observed status.installPlanRef.
func (s *Snapshot) Observe(p *Past, ref *corev1.ObjectReference) Seen {
	const path = "status.installPlanRef"
	seen := Seen{Unconfirmed: p.History.unconfirmed()}
	seen.State = State{Stage: StageNoPlan, Recorded: p.Shown, RecordedAt: p.ShownSince, Outlived: p.Outlived}

	// 1. Without a usable reference there is nothing to observe.
	if ref == nil {
		seen.Unconfirmed = seen.Unconfirmed.withoutMissing()
		return seen
	}
	if !s.canReference(ref) {
		seen.Invalid = true
		seen.Result = p.diagnose(seen.Result, olmcore.Warning, ReasonRefInvalid, path,
			"the reference names no InstallPlan of this namespace")
		return seen
	}
	// 2. The newest version. Another InstallPlan of the same name is used, unless it is being deleted.
	seen.UID, seen.Name = ref.UID, ref.Name
	plan, recheck := s.newestVersion(ref)
	seen.Result.Requeue(recheck)
	isOther := plan != nil && ref.UID != "" && plan.UID != "" && plan.UID != ref.UID
	if plan == nil || isOther && plan.DeletionTimestamp != nil {
		return s.observeAbsence(p, seen)
	}
	// 3. The InstallPlan is visible.
	seen.Plan, seen.UID = plan, plan.UID
	seen.Replaced = isOther
	seen.Unconfirmed = seen.Unconfirmed.withoutMissing()
	if isOther {
		seen.Result = p.diagnose(seen.Result, olmcore.Warning, ReasonRefUIDMismatch, path,
			"InstallPlan %s has another UID than the referenced one", plan.Name)
	}
	// 4. Its stage, unless a stale cache is the likelier explanation.
	seen = s.observeStage(p, seen)
	if seen.Stage == StageUnknown {
		seen.Result.Requeue(unknownPhaseRecheck)
		seen.Result = p.diagnose(seen.Result, olmcore.Warning, ReasonUnknownPhase, "status.conditions",
			"InstallPlan %s has the unknown phase %s", plan.Name, plan.Status.Phase)
	}
	return seen
}

// canReference reports whether ref can name an InstallPlan of this namespace.
func (s *Snapshot) canReference(ref *corev1.ObjectReference) bool {
	return ref.Name != "" && (ref.Kind == "" || ref.Kind == v1alpha1.InstallPlanKind) &&
		(ref.Namespace == "" || ref.Namespace == s.Namespace)
}

// newestVersion returns the newest version of the referenced InstallPlan: the listed version, unless the window
// contains later ones. It returns nil if the InstallPlan is not visible or its deletion was observed, and the time
// after which a version that contradicts the list is no longer used.
func (s *Snapshot) newestVersion(ref *corev1.ObjectReference) (plan *v1alpha1.InstallPlan, recheck time.Duration) {
	listed := s.Plans[ref.Name]
	uid, name := ref.UID, ref.Name
	if listed != nil {
		uid, name = listed.UID, listed.Name
	}
	if s.isDeleted(listed, ref) {
		return nil, 0
	}
	last := s.Window.last(uid, name)
	switch {
	case last == nil || listed != nil && isSameVersion(last.Plan, listed):
		return listed, 0
	case listed != nil && s.Window.contains(listed):
		return last.Plan, 0
	case s.Live || listed != nil && !isStale(listed, last.Plan):
		return listed, 0
	}
	// The list seems to be stale. An ordered resourceVersion proves that. Other evidence holds for the grace period.
	left := s.Grace - elapsed(last.At, s.Now)
	isProven := listed != nil && isOlderVersion(listed.ResourceVersion, last.Plan.ResourceVersion)
	if left <= 0 && !isProven {
		return listed, 0
	}
	return last.Plan, left
}

// isDeleted reports whether the deletion of the listed or, if none is listed, of the referenced InstallPlan was
// observed.
func (s *Snapshot) isDeleted(listed *v1alpha1.InstallPlan, ref *corev1.ObjectReference) bool {
	switch {
	case listed != nil:
		return s.Window.HasDeletion(listed.UID, "")
	case ref.UID != "" && s.Window.HasDeletion(ref.UID, ""):
		return true
	}
	return s.Window.HasDeletion("", ref.Name)
}

// observeAbsence decides about an InstallPlan that is not visible. A cache may be stale during the grace period.
// After that the InstallPlan was deleted.
func (s *Snapshot) observeAbsence(p *Past, seen Seen) Seen {
	seen.Stage = StageMissing
	if s.Live || s.Window.HasDeletion(seen.UID, seen.Name) {
		seen.Proven, seen.Lasting = true, true
		return seen
	}
	start := p.Subscription.Status.LastUpdated.Time
	if s.KeepsHistories {
		missing, since := cmp.Or(string(seen.UID), seen.Name), p.History.MissingSince
		if p.History.MissingPlan != missing || since.IsZero() || since.After(s.Now) { // after: the clock was set back
			since = stored(s.Now)
		}
		seen.Unconfirmed.MissingSince, seen.Unconfirmed.MissingPlan = since, missing
		start = since
	}
	left := s.Grace - elapsed(start, s.Now)
	switch {
	case left <= 0:
		seen.Lasting = true
	case p.Shown != StageMissing:
		seen.Stage = StageUnverified
		seen.Result.Requeue(min(left, Recheck))
		seen.Result = p.diagnose(seen.Result, olmcore.Info, ReasonPlanUnverified, "status.installPlanRef",
			"InstallPlan %s is not visible", seen.Name)
	case p.Subscription.Status.State == v1alpha1.SubscriptionStateUpgradePending:
		seen.Result.Requeue(min(left, Recheck)) // StageMissing is published already, so it stays
	}
	return seen
}

// doubt says why a stage may come from a stale cache.
type doubt int

const (
	noDoubt doubt = iota
	// olderVersion means that the version is older than the remembered one.
	olderVersion
	// wrongOrder means that no controller takes an InstallPlan from the last known stage to this one.
	wrongOrder
)

// observeStage sets the stage of a visible InstallPlan, or StageUnverified while a stale cache is the likelier
// explanation. Only callers that keep histories can notice that.
func (s *Snapshot) observeStage(p *Past, seen Seen) Seen {
	const path = "status.installPlanRef"
	plan := seen.Plan
	seen.Stage = StageOf(plan)
	if !s.KeepsHistories {
		return seen
	}
	// 1. Does the stage contradict what is known?
	last, why := p.lastKnownStage(plan), noDoubt
	if last != "" && !s.Live {
		why = p.History.doubtAbout(plan, seen.Stage, last)
	}
	if why == noDoubt || s.isDelivered(&p.History, plan) {
		seen.Unconfirmed = seen.Unconfirmed.withStage("", time.Time{})
		return seen
	}
	// 2. It is suspect for the grace period. An older version may also come from another leader or a restored etcd.
	left := Recheck
	if why == olderVersion {
		left = s.Grace
	}
	if p.History.SuspectStage == seen.Stage && !p.History.SuspectSince.After(s.Now) {
		left -= elapsed(p.History.SuspectSince, s.Now)
	} else {
		seen.Unconfirmed = seen.Unconfirmed.withStage(seen.Stage, stored(s.Now))
	}
	if left <= 0 {
		seen.Unconfirmed = seen.Unconfirmed.withStage("", time.Time{})
		return seen
	}
	// 3. Read it again.
	seen.Result.Requeue(min(left, Recheck))
	if why == olderVersion {
		seen.Result = p.diagnose(seen.Result, olmcore.Info, ReasonSuspectObservation, path,
			"InstallPlan %s was observed in an older version than before", plan.Name)
	} else {
		seen.Result = p.diagnose(seen.Result, olmcore.Info, ReasonSuspectObservation, path,
			"InstallPlan %s seems to have changed from %s to %s; the cache may be stale", plan.Name, last, seen.Stage)
	}
	seen.Stage = StageUnverified
	return seen
}

// doubtAbout returns why a stage of an InstallPlan contradicts the history and the last known stage.
func (h *History) doubtAbout(plan *v1alpha1.InstallPlan, stage, last Stage) doubt {
	if h.isAbout(plan.UID, plan.Name) {
		if why, isDecided := h.doubtAboutVersion(plan, stage, last); isDecided {
			return why
		}
	}
	isKnown := last != StageMissing && last != StageUnknown && stage != StageUnknown
	if isKnown && last != stage && !CanReach(last, stage) {
		return wrongOrder
	}
	return noDoubt
}

// doubtAboutVersion compares a version with the remembered version of the same InstallPlan. isDecided is false if that
// shows nothing.
func (h *History) doubtAboutVersion(plan *v1alpha1.InstallPlan, stage, last Stage) (why doubt, isDecided bool) {
	installedAt := relation.InstalledAt(plan)
	isEarlier := installedAt.Before(h.LastInstalledUpdate)
	isSameFailure := !installedAt.IsZero() && installedAt.Equal(h.LastInstalledUpdate)
	order, _ := compareVersions(plan.ResourceVersion, h.LastVersion)
	switch {
	case order > 0:
		return noDoubt, true
	case order < 0 && stage == last && !isEarlier: // an older version that shows the same
		return noDoubt, true
	case order < 0:
		return olderVersion, true
	case isEarlier && (!installedAt.IsZero() || last == stage || CanReach(last, stage)): // no controller removes the condition
		return olderVersion, true
	case last == StageInstalling && stage == StageFailed && isSameFailure: // a new failure would have a new time
		return wrongOrder, true
	}
	return noDoubt, false
}

// isDelivered reports whether the window shows this stage last, in a version that is newer than the remembered one.
func (s *Snapshot) isDelivered(h *History, plan *v1alpha1.InstallPlan) bool {
	last := s.Window.last(plan.UID, plan.Name)
	if last == nil || StageOf(last.Plan) != StageOf(plan) {
		return false
	}
	order, ok := compareVersions(last.Plan.ResourceVersion, h.LastVersion)
	if ok && order != 0 && h.isAbout(plan.UID, plan.Name) {
		return order > 0
	}
	return last.At.After(h.LastObserved) && (!h.LastObserved.IsZero() || !last.At.Before(h.LastAt))
}
