// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Recheck is the time between two looks at what a stale cache may show: a plan that is
// not visible within the grace period, one that seems to have gone back, a status that
// does not have our own write.
const Recheck = time.Second

// UnknownRetry is the time after which a plan with an unknown phase is looked at again.
const UnknownRetry = 5 * time.Minute

// InstallPlans is what is known of the InstallPlans of one namespace.
type InstallPlans struct {
	Now       time.Time
	Namespace string
	// Grace is how long a plan may be invisible before it is missing, and how far a
	// cache may be stale.
	Grace time.Duration
	// Live: the list was read from the API server.
	Live   bool
	ByName map[string]*v1alpha1.InstallPlan
	Window Window
}

// PlanState is what is known of the plan that a Subscription refers to.
type PlanState struct {
	// Stage is the one that is believed, Shown the one that the conditions are to show:
	// Unverified and Unknown keep what they show.
	Stage, Shown Stage
	// Plan is nil unless it is visible. UID and Name are those of the plan, else those
	// of the reference.
	Plan *v1alpha1.InstallPlan
	UID  types.UID
	Name string
	// Invalid: the reference cannot name a plan of this Subscription.
	Invalid bool
	// Replaced: the visible plan has another UID than the reference.
	Replaced bool
	// Lasting: the plan has been missing long enough to forget it, or its deletion
	// was witnessed: then the absence is Proven.
	Lasting, Proven bool

	Memory Memory
	// Result has what is reported, and the time to the next look.
	olmcore.Result

	sub *v1alpha1.Subscription
}

// IsOver reports whether the plan brings nothing any more.
func (s *PlanState) IsOver() bool {
	return s.Stage == Complete || s.Stage == Failed || s.Stage == Missing && s.Lasting
}

func (s *PlanState) report(severity olmcore.Severity, reason, path, format string, args ...any) {
	s.Diagnostics = append(s.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(s.sub), path, format, args...))
}

// ValidReference reports whether a reference can name an InstallPlan of a namespace.
func ValidReference(ref *corev1.ObjectReference, namespace string) bool {
	return ref.Name != "" && (ref.Kind == "" || ref.Kind == v1alpha1.InstallPlanKind) && (ref.Namespace == "" || ref.Namespace == namespace)
}

// Look returns what is known of the plan that a reference names; nil is no plan.
func (p *InstallPlans) Look(sub *v1alpha1.Subscription, ref *corev1.ObjectReference, m Memory) PlanState {
	s := PlanState{sub: sub, Memory: m, Stage: NoPlan}
	if ref == nil {
		return s
	}
	if s.Invalid = !ValidReference(ref, sub.Namespace); s.Invalid {
		s.report(olmcore.Warning, ReasonRefInvalid, "status.installPlanRef", "the reference names no InstallPlan of this namespace")
		return s
	}
	s.UID, s.Name = ref.UID, ref.Name
	plan := p.newest(&s, p.ByName[ref.Name])
	other := plan != nil && ref.UID != "" && plan.UID != "" && plan.UID != ref.UID
	if plan == nil || other && plan.DeletionTimestamp != nil {
		p.miss(&s)
		return s
	}
	s.Memory.After.MissingSince = time.Time{}
	s.Plan, s.UID, s.Replaced = plan, plan.UID, other
	if other {
		s.report(olmcore.Warning, ReasonRefUIDMismatch, "status.installPlanRef", "InstallPlan %s is another object than the one referred to", plan.Name)
	}
	s.Stage = p.believe(&s)
	if s.Stage == Unknown {
		s.Requeue(UnknownRetry)
		s.report(olmcore.Warning, ReasonUnknownPhase, "status.conditions", "InstallPlan %s has the unknown phase %s", plan.Name, plan.Status.Phase)
	}
	return s
}

// miss decides what it means that the plan is not visible: nothing yet within the
// grace period, because a cache may be stale; then that it was deleted.
func (p *InstallPlans) miss(s *PlanState) {
	s.Stage = Missing
	if p.Live || p.Window.Gone(s.UID, s.Name) {
		s.Proven, s.Lasting = true, true
		return
	}
	start := s.sub.Status.LastUpdated.Time
	negative := p.Now.Before(start)
	if h := &s.Memory.After; s.Memory.Kept {
		if h.MissingSince.IsZero() || h.MissingSince.After(p.Now) { // the clock went back
			h.MissingSince = instant(p.Now)
		}
		start, negative = h.MissingSince, false
	}
	elapsed := Since(start, p.Now)
	s.Lasting = elapsed >= p.Grace && !negative
	if s.Lasting {
		return
	}
	left := min(p.Grace-elapsed, Recheck)
	if shown, _, _ := Shown(s.sub.Status.Conditions); shown == Missing { // published already: a clock that moved takes nothing back
		if s.sub.Status.State == v1alpha1.SubscriptionStateUpgradePending {
			s.Requeue(left)
		}
		return
	}
	s.Stage = Unverified
	s.Requeue(left)
	s.report(olmcore.Info, ReasonPlanUnverified, "status.installPlanRef", "InstallPlan %s is not visible", s.Name)
}

// newest returns the newest version of the plan that the Subscription refers to: the
// listed one, unless the window goes on after it or shows, for as long as a cache may be
// stale, a later one; nil for a plan whose deletion was witnessed.
func (p *InstallPlans) newest(s *PlanState, listed *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	uid, name := s.UID, s.Name
	if listed != nil {
		uid, name = listed.UID, listed.Name
	}
	last := p.Window.last(uid, name)
	switch {
	case (listed != nil || uid != "") && p.Window.Gone(uid, ""), listed == nil && p.Window.Gone("", name):
		return nil
	case last == nil || listed != nil && sameVersion(last.Plan, listed):
		return listed
	case listed != nil && p.Window.holds(listed):
		return last.Plan
	case p.Live || listed != nil && !isStale(listed, last.Plan):
		return listed
	}
	left := p.Grace - Since(last.At, p.Now)
	if left <= 0 && (listed == nil || !isOlderVersion(listed.ResourceVersion, last.Plan.ResourceVersion)) {
		return listed
	}
	s.Requeue(left)
	return last.Plan
}

// believe returns the plan's stage, or Unverified where a stale cache is the likelier
// explanation of what is seen. Only a caller who keeps a memory and has no ordered
// window needs to suspect it.
func (p *InstallPlans) believe(s *PlanState) Stage {
	plan, h := s.Plan, &s.Memory.Before
	stage := Of(plan)
	if !s.Memory.Kept {
		return stage
	}
	last, ok := s.last()
	isOlder, grace, suspect := false, Recheck, false
	if ok && !p.Live {
		isOlder, suspect = h.contradicts(plan, stage, last)
	}
	if isOlder { // or written by another leader, whose clock is slow; or etcd was restored
		grace = p.Grace
	}
	if !suspect || p.observed(h, plan, stage) || !p.waits(s, stage, grace) {
		s.Memory.After.SuspectStage, s.Memory.After.SuspectSince = "", time.Time{}
		return stage
	}
	if isOlder {
		s.report(olmcore.Info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan %s was seen in an older version than before", plan.Name)
	} else {
		s.report(olmcore.Info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan %s seems to have gone from %s to %s", plan.Name, last, stage)
	}
	return Unverified
}

// contradicts reports whether a plan is suspect after what is remembered, and whether
// because this version is older than the remembered one.
func (h *History) contradicts(plan *v1alpha1.InstallPlan, stage, last Stage) (isOlder, suspect bool) {
	at, isSame := InstalledAt(plan), h.isAbout(plan.UID, plan.Name)
	order, isOrdered := compareVersions(plan.ResourceVersion, h.LastVersion)
	isOrdered = isOrdered && isSame && order != 0
	isOlder = isOrdered && order < 0 && (stage != last || at.Before(h.LastInstalledUpdate)) // else it says nothing else
	if !isOrdered {
		isOlder = isSame && at.Before(h.LastInstalledUpdate) &&
			(!at.IsZero() || last == stage || Reachable(last, stage)) // no controller takes the condition away
	}
	switch {
	case isOlder:
		return true, true
	case isOrdered:
		return false, false
	case isSame && last == Installing && stage == Failed && !at.IsZero() && at.Equal(h.LastInstalledUpdate):
		return false, true // another failure would have a time of its own
	}
	known := last != Missing && last != Unknown && stage != Unknown
	return false, known && last != stage && !Reachable(last, stage)
}

// waits reports whether a stage has been suspect for less than the grace period, and
// remembers since when it is.
func (p *InstallPlans) waits(s *PlanState, stage Stage, grace time.Duration) bool {
	left, h := grace, &s.Memory.Before
	if h.SuspectStage == stage && !h.SuspectSince.After(p.Now) {
		left -= Since(h.SuspectSince, p.Now)
	} else {
		s.Memory.After.SuspectStage, s.Memory.After.SuspectSince = stage, instant(p.Now)
	}
	s.Requeue(min(left, Recheck))
	return left > 0
}

// observed reports whether an ordered watch or a direct read delivered the plan in a
// stage last, after what is remembered of it.
func (p *InstallPlans) observed(h *History, plan *v1alpha1.InstallPlan, stage Stage) bool {
	last := p.Window.last(plan.UID, plan.Name)
	if last == nil || Of(last.Plan) != stage {
		return false
	}
	if order, ok := compareVersions(last.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && h.isAbout(plan.UID, plan.Name) {
		return order > 0
	}
	return last.At.After(h.LastObserved) && (!h.LastObserved.IsZero() || !last.At.Before(h.LastAt))
}

// last returns the stage of the visible plan that is known already: what is remembered,
// else what the status says, which another writer may have written.
func (s *PlanState) last() (last Stage, ok bool) {
	h, ref := &s.Memory.Before, s.sub.Status.InstallPlanRef
	switch {
	case s.Memory.Known && h.isAbout(s.Plan.UID, s.Plan.Name):
		return h.LastStage, true
	case ref == nil || !SamePlan(ref, s.Plan.UID, s.Plan.Name):
		return "", false
	}
	from := s.recorded()
	return from.stage, from.stage != NoPlan
}
