// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
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
		(v.Plan.Recorded == StageMissing || v.Plan.Recorded != StageFailed && status.State == v1alpha1.SubscriptionStateAtLatest)
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
		t.after.MissingSince, t.after.MissingPlan = time.Time{}, ""
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
	t.after.MissingSince, t.after.MissingPlan = time.Time{}, ""
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

// miss decides about a plan that is not visible: within the grace period a cache may be stale, then it was deleted. The grace
// period starts again when the Subscription references another plan.
func (t *tracker) miss() {
	p := &t.Plan
	p.Stage = StageMissing
	if t.live || t.window.gone(p.UID, p.Name) {
		p.Proven, p.Lasting = true, true
		return
	}
	start := t.Subscription.Status.LastUpdated.Time
	if t.kept {
		missing := cmp.Or(string(p.UID), p.Name)
		if t.after.MissingPlan != missing || t.after.MissingSince.IsZero() || t.after.MissingSince.After(t.now) { // the clock went back
			t.after.MissingSince, t.after.MissingPlan = instant(t.now), missing
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

// contradicts reports whether a plan is suspect, and whether because it is older than the remembered version.
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

// isObserved reports whether an ordered watch or a direct read delivered this stage last, after what is remembered.
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

// publish decides which stage the conditions are to show, and remembers it.
func (t *tracker) publish() {
	p, status, ref := &t.Plan, &t.Subscription.Status, t.Status.InstallPlanRef
	p.Shown = p.Stage
	switch {
	case ref == nil || p.Invalid:
		p.Shown = StageNoPlan
		if ref == status.InstallPlanRef && slices.ContainsFunc(status.Conditions, func(c v1alpha1.SubscriptionCondition) bool {
			return slices.Contains(relation.PlanConditions, c.Type)
		}) {
			t.report(olmcore.Info, ReasonConditionWithoutRef, "status.conditions", "an InstallPlan condition was left without a reference")
		}
	case p.Stage == StageUnverified, t.known && t.lacksOwnWrite(ref):
		p.Shown = StageUnverified
		return
	case p.Stage == StageUnknown:
		return
	}
	if t.kept && t.after.Published != p.Shown {
		t.after.Published, t.after.PublishedAt = p.Shown, instant(t.now)
	}
}

// lacksOwnWrite reports whether the conditions are those of before the last call's write: a stale cache.
func (t *tracker) lacksOwnWrite(ref *corev1.ObjectReference) bool {
	h, shown := &t.before, t.Plan.Recorded
	if t.live || h.Published == "" || !h.isAbout(ref.UID, ref.Name) ||
		shown == "" || shown == h.Published || shown == StageUnknown || h.PublishedAt.After(t.now) {
		return false
	}
	left := recheck - since(h.PublishedAt, t.now)
	t.Requeue(left)
	return left > 0
}

// origin is where a chain of transitions starts.
type origin struct {
	stage Stage
	at    time.Time // zero when it is not known
	uid   types.UID
	name  string
	// installedAt is the plan's last known Installed.lastUpdateTime; knows says whether anything is known of it.
	installedAt time.Time
	knows       bool
}

// recorded returns what the status says of the plan's stage, or the history when the status says nothing. A condition
// that is older than the plan is about another one.
func (t *tracker) recorded() origin {
	status, p, h := &t.Subscription.Status, &t.Plan, &t.before
	ref := status.InstallPlanRef
	if ref == nil || p.Invalid {
		return origin{stage: StageNoPlan}
	}
	from := origin{stage: StageNoPlan, uid: ref.UID, name: ref.Name}
	switch {
	case p.Recorded != "" && p.Plan != nil && !p.RecordedAt.IsZero() && p.RecordedAt.Before(p.Plan.CreationTimestamp.Time):
	case p.Recorded != "":
		from.stage, from.at = p.Recorded, p.RecordedAt
	case t.known && h.Published != "" && h.isAbout(ref.UID, ref.Name):
		from.stage, from.at = h.Published, h.PublishedAt
	case status.State == v1alpha1.SubscriptionStateAtLatest:
		from.stage, from.at = StageComplete, status.LastUpdated.Time
	}
	return from
}

// trace returns the transitions of the plan's stage, and remembers where they end: all that are new to a caller who
// remembers, else those up to what the status is made to show by this very result. To a caller who remembers, a plan is
// reported once it is seen to be referred to: the write of the reference may be lost, and a cache be stale.
func (t *tracker) trace() []olmcore.Transition {
	p, h := &t.Plan, &t.before
	from := t.recorded()
	isNew := t.isMoved() || t.Status.State != t.Subscription.Status.State || p.Shown != StageUnverified && p.Shown != from.stage
	if t.known {
		from = origin{h.LastStage, h.LastAt, h.PlanUID, h.PlanName, h.LastInstalledUpdate, true}
	}
	switch {
	case p.Stage == StageUnverified, !t.kept && !(t.Writes && isNew):
		return nil
	case t.kept && t.isMoved() && t.Status.InstallPlanRef != nil:
		if !t.known {
			t.after.LastStage, t.after.LastAt, t.after.PlanUID, t.after.PlanName = from.stage, instant(from.at), from.uid, from.name
		}
		return nil
	case t.known && t.isQuiet(&from):
		t.reportMessage(nil)
		return nil
	case !t.kept && t.Status.InstallPlanRef == nil && p.Stage != StageNoPlan && p.Stage != StageMissing:
		return nil // the end of the plan that is forgotten was shown before
	}
	c := t.path(from)
	t.Diagnostics = append(t.Diagnostics, c.gaps...)
	if t.kept {
		t.remember(&c)
		t.reportMessage(c.list)
	}
	return c.list
}

// isQuiet reports whether nothing happened since the last report: then the memory stays as it is.
func (t *tracker) isQuiet(from *origin) bool {
	p := &t.Plan
	if from.stage != p.Stage || len(t.window.list) > 0 {
		return false
	}
	return p.Stage == StageNoPlan || from.uid == p.UID && from.name == p.Name &&
		(p.Plan == nil || relation.InstalledAt(p.Plan).Equal(from.installedAt))
}

// reportMessage reports, to a caller who remembers, a new status.message of the plan, which no condition shows.
func (t *tracker) reportMessage(reported []olmcore.Transition) {
	plan := t.Plan.Plan
	if plan == nil || digest(plan.Status.Message) == t.after.LastMessage {
		return
	}
	message, n := plan.Status.Message, len(reported)
	t.after.LastMessage = digest(message)
	if message != "" && (n == 0 || reported[n-1].Message != message) {
		t.report(olmcore.Info, ReasonPlanMessage, "status.installPlanRef", "InstallPlan %s: %s", plan.Name, message)
	}
}

// path reconstructs what happened to the plan since origin: every version that a watch delivered, then the one that is
// there now, and between them what must have happened.
func (t *tracker) path(from origin) chain {
	p := &t.Plan
	c := chain{origin: from, target: olmcore.RefOf(t.Subscription).Unversioned(), now: t.now, remembers: from.knows}
	if p.Stage == StageNoPlan {
		c.watch(t.news(from.uid, from.name, &c))
		c.replace(ReasonReferenceCleared)
		return c
	}
	if !relation.Same(from.uid, from.name, p.UID, p.Name) {
		c.watch(t.news(from.uid, from.name, &c))
		if left := t.planNamed[from.name]; left != nil && from.uid != "" && left.UID == from.uid {
			c.lastWords(left)
		}
		c.replace(ReasonPlanReplaced)
	}
	c.watch(t.news(p.UID, p.Name, &c))
	if p.Stage == StageMissing {
		c.vanish(p.Proven)
	} else {
		c.reach(p.Stage, p.Plan, t.now)
	}
	return c
}

// news returns the Observations of a plan that the chain does not know yet: those from the first one on that is news. A
// window that begins before the chain does, as one may that was read by another way than the plan itself, is entered
// where it shows the chain's stage.
func (t *tracker) news(uid types.UID, name string, c *chain) []Observation {
	var list []Observation
	for i := range t.window.list {
		if o := &t.window.list[i]; name != "" && t.window.shows(o, uid, name) && (len(list) > 0 || c.isNews(o, &t.before)) {
			list = append(list, *o)
		}
	}
	if len(list) == 0 || c.stage == StageNoPlan || c.stage == StageMissing || c.stage == StageUnknown {
		return list
	}
	if stage := stageOf(list[0].Plan); stage == c.stage || stage == StageUnknown || reachable(c.stage, stage) {
		return list
	}
	return list[max(0, slices.IndexFunc(list, func(o Observation) bool { return stageOf(o.Plan) == c.stage })):]
}

// isNews reports whether an Observation may show what the chain does not know yet: a later version than the last one
// that was believed. Where the versions cannot be compared, the times have to do.
func (c *chain) isNews(o *Observation, h *History) bool {
	remembers := c.remembers && h.isAbout(o.Plan.UID, o.Plan.Name)
	if order, ok := compareVersions(o.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && remembers {
		return order > 0
	}
	if at := relation.InstalledAt(o.Plan); c.remembers && !at.IsZero() && at.Before(c.installedAt) {
		return false
	}
	if remembers && !h.LastObserved.IsZero() {
		return o.At.After(h.LastObserved)
	}
	return !o.At.Before(c.at)
}

// remember notes where the report ends.
func (t *tracker) remember(c *chain) {
	p, h := &t.Plan, &t.after
	if n := len(c.list); n > 0 || h.LastStage == "" {
		h.Seq += int64(n)
		h.LastAt = instant(olmcore.Timestamp(t.now).Time)
		if n > 0 && c.list[n-1].Bound == olmcore.Exact {
			h.LastAt = instant(c.list[n-1].At.Time)
		}
	}
	isOld := p.Plan != nil && h.LastStage == p.Stage && isOlderVersion(p.Plan.ResourceVersion, h.LastVersion)
	h.LastStage = p.Stage
	if p.Stage == StageNoPlan || !h.isAbout(p.UID, p.Name) {
		h.LastVersion, h.LastObserved, h.LastMessage = "", time.Time{}, 0
	}
	if h.PlanUID, h.PlanName = p.UID, p.Name; p.Stage == StageNoPlan { // and both are empty
		h.LastInstalledUpdate = time.Time{}
		return
	}
	if at := t.lastObserved(); at.After(h.LastObserved) {
		h.LastObserved = instant(at)
	}
	if p.Plan != nil {
		h.LastInstalledUpdate = instant(relation.InstalledAt(p.Plan))
		if !isOld {
			h.LastVersion = p.Plan.ResourceVersion
		}
	}
}

// lastObserved returns until when Observations of the plan are known: the newest one's time, or now if the list is newer.
func (t *tracker) lastObserved() (at time.Time) {
	last, listed := t.window.last(t.Plan.UID, t.Plan.Name), t.planNamed[t.Plan.Name]
	switch {
	case last == nil && t.after.LastObserved.IsZero():
	case listed != nil && (last == nil || !t.window.holds(listed) && !isStale(listed, last.Plan)):
		at = t.now
	case last != nil:
		at = last.At
	}
	return at
}
