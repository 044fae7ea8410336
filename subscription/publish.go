// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Types of the Transitions that this package reports, besides those of the
// conditions themselves (ResolutionFailed, BundleUnpackFailed,
// CatalogSourcesUnhealthy ...), whose From and To are the condition's status:
// empty where there is none.
const (
	// TransitionInstallPlan: From and To are Stages of the plan that the
	// Subscription refers to; Reason and Message are those of the InstallPlan
	// condition that shows the stage.
	TransitionInstallPlan = "InstallPlan"
	// TransitionState: From and To are values of status.state.
	TransitionState = "State"
)

// origin is where a chain of transitions starts.
type origin struct {
	stage    Stage
	at       time.Time
	uid      types.UID
	name     string
	lastDone time.Time
	knows    bool
}

// recorded returns what the status says of the plan's stage, or the history when
// the status says nothing. A condition that is older than the plan is about
// another one.
func (v *view) recorded(d *verdict) (from origin, shown bool) {
	s := &d.sub.Status
	ref := s.InstallPlanRef
	if ref == nil || d.seen.invalid {
		return origin{stage: StageNoPlan}, false
	}
	from = origin{stage: StageNoPlan, uid: ref.UID, name: ref.Name}
	stage, since, ok := shownStage(s.Conditions)
	if ok && d.seen.plan != nil && !since.IsZero() && since.Before(d.seen.plan.CreationTimestamp.Time) {
		return from, false
	}
	switch {
	case ok:
		from.stage, from.at = stage, since
	case d.remembers && v.memo.history.Published != "" && v.memo.history.isAbout(ref.UID, ref.Name):
		from.stage, from.at = v.memo.history.Published, v.memo.history.PublishedAt
	case s.State == v1alpha1.SubscriptionStateAtLatest:
		from.stage, from.at = StageComplete, s.LastUpdated.Time
	}
	return from, ok
}

// known returns where the last report of transitions ended.
func (v *view) known(d *verdict) origin {
	if !d.remembers {
		from, _ := v.recorded(d)
		return from
	}
	h := &v.memo.history
	return origin{stage: h.LastStage, at: h.LastAt, uid: h.PlanUID, name: h.PlanName, lastDone: h.LastInstalledUpdate, knows: true}
}

// path reconstructs what happened to the plan since origin: every version that a
// watch delivered, then the one that is there now, and between them what must
// have happened.
func (v *view) path(d *verdict, from origin) chain {
	c := chain{
		target: olmcore.RefOf(d.sub).Unversioned(), now: v.now, from: from.stage, fromAt: from.at,
		installedAt: from.lastDone, knows: from.knows, remembers: from.knows,
	}
	if d.seen.stage == StageNoPlan {
		c.watch(v.window(from.uid, from.name, &c))
		c.replace(ReasonReferenceCleared)
		return c
	}
	uid, name := d.planIdentity()
	if from.uid != "" && uid != "" && from.uid != uid || (from.uid == "" || uid == "") && from.name != name {
		c.watch(v.window(from.uid, from.name, &c))
		if left := v.plan(from.name); left != nil && from.uid != "" && left.UID == from.uid {
			c.lastWords(left)
		}
		c.replace(ReasonPlanReplaced)
	}
	c.watch(v.window(uid, name, &c))
	if d.seen.stage == StageMissing {
		c.vanish(d.seen.proven)
	} else {
		c.reach(d.seen.stage, d.seen.plan, v.now)
	}
	return c
}

// planIdentity returns UID and name of the plan that was looked at. Clearing the
// reference afterwards does not change it.
func (d *verdict) planIdentity() (types.UID, string) {
	if d.seen.plan != nil {
		return d.seen.plan.UID, d.seen.plan.Name
	}
	ref := d.ref
	if ref == nil {
		ref = d.sub.Status.InstallPlanRef
	}
	return ref.UID, ref.Name
}

// window returns the observations of a plan that the chain does not know yet: those from
// the first one on that is news. A window that begins before the chain does, as one may
// that was read by another way than the plan itself, is entered where it shows the
// chain's stage.
func (v *view) window(uid types.UID, name string, c *chain) []Observation {
	if len(v.observations) == 0 || name == "" {
		return nil
	}
	var list []Observation
	for i := range v.observations {
		if o := &v.observations[i]; v.isOf(o, uid, name) && (len(list) > 0 || v.isNews(o, c)) {
			list = append(list, *o)
		}
	}
	if len(list) == 0 || c.from == StageNoPlan || c.from == StageMissing || c.from == StageUnknown {
		return list
	}
	if stage := stageOf(list[0].Plan); stage == c.from || stage == StageUnknown || reachable(c.from, stage) {
		return list
	}
	for i := range list {
		if stageOf(list[i].Plan) == c.from {
			return list[i:]
		}
	}
	return list
}

// isNews reports whether an observation may show what the chain does not know yet: a
// later version than the last one that was believed. Where the versions cannot be
// compared, the times have to do.
func (v *view) isNews(o *Observation, c *chain) bool {
	h := &v.memo.history
	remembers := c.remembers && h.isAbout(o.Plan.UID, o.Plan.Name)
	if order, ok := compareVersions(o.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && remembers {
		return order > 0
	}
	if at := installedAt(o.Plan); c.remembers && !at.IsZero() && at.Before(c.installedAt) {
		return false
	}
	if remembers && !h.LastObserved.IsZero() {
		return o.At.After(h.LastObserved)
	}
	return !o.At.Before(c.fromAt)
}

// lastObserved returns the time up to which observations of a plan are old news: that
// of the newest one, or now where the list knows more.
func (v *view) lastObserved(uid types.UID, name string) (at time.Time) {
	last, listed := v.lastSeen(uid, name), v.plan(name)
	switch {
	case last == nil && v.memo.next.LastObserved.IsZero():
	case listed != nil && (last == nil || !v.wasListed(listed) && !isBehind(listed, last.Plan)):
		at = v.now
	case last != nil:
		at = last.At
	}
	return at
}

// publish decides which stage the conditions show. Without a window that is the
// observed one; with one, each stage on the way stays visible for a while. Only
// these conditions are paced, never state or references.
func (v *view) publish(d *verdict) {
	if d.ref == nil || d.seen.invalid {
		d.shown = StageNoPlan
		if d.ref == d.sub.Status.InstallPlanRef {
			if showsPlan(d.sub.Status.Conditions) {
				d.report(info, ReasonConditionWithoutRef, "status.conditions", "an InstallPlan condition was left without a reference")
			}
		}
	} else if d.seen.stage == StageUnverified || d.remembers && v.isBehindOwnWrite(d) {
		d.shown, d.stage.keep = StageUnverified, true
		return
	} else {
		hold := false
		if d.shown = d.seen.stage; v.config.ObservationWindow > 0 {
			d.shown, hold = v.pace(d)
		}
		if hold || d.shown == StageUnknown {
			d.stage.keep = true
			return
		}
		if d.shown != StageComplete { // which no condition shows
			d.stage = wishOf(d.shown, d.seen.plan, d.shown == d.seen.stage)
		}
	}
	if v.keepsHistory() && v.memo.next.Published != d.shown {
		n := v.note()
		n.Published, n.PublishedAt = d.shown, instant(v.now)
	}
}

// isBehindOwnWrite reports whether the conditions of a Subscription that is
// remembered still show what they did before the last call changed them: a cache that
// has not seen that write yet.
func (v *view) isBehindOwnWrite(d *verdict) bool {
	h := &v.memo.history
	if v.live || h.Published == "" || !h.isAbout(d.ref.UID, d.ref.Name) {
		return false
	}
	shown, _, ok := shownStage(d.sub.Status.Conditions)
	if !ok || shown == h.Published || shown == StageUnknown || h.PublishedAt.After(v.now) {
		return false
	}
	left := v.config.MissingRecheck - since(h.PublishedAt, v.now)
	if left <= 0 {
		return false
	}
	d.requeue(left)
	return true
}

// pace returns the stage to show with an observation window, and whether that means
// to wait with what is shown already.
func (v *view) pace(d *verdict) (stage Stage, hold bool) {
	window := v.config.ObservationWindow
	if !v.keepsHistory() {
		v.memo.next = History{} // what the last verdict noted there
	}
	from, shown := v.recorded(d)
	if !shown && !d.remembers && from.stage == StageNoPlan && d.seen.stage == StageComplete {
		// No condition is also what shows a complete plan. Without memory nobody can
		// tell whether the stages before it were shown already.
		return d.seen.stage, false
	}
	c := v.path(d, from)
	var ahead []Stage
	for i, t := range c.list {
		last, to := i == len(c.list)-1, Stage(t.To)
		switch {
		case last:
		case to == StageNoPlan, to == StageNotYetReconciled && t.Certainty != olmcore.CertaintyObserved, t.Certainty == olmcore.CertaintyAssumed:
			continue
		}
		ahead = append(ahead, to)
	}
	if len(ahead) == 0 {
		if !v.memo.next.PendingSince.IsZero() {
			v.note().PendingSince = time.Time{}
		}
		return d.seen.stage, false
	}
	if began := v.memo.next.PendingSince; began.IsZero() || began.After(v.now) { // the clock went back
		v.note().PendingSince = instant(v.now)
	}
	publishedAt := d.sub.Status.LastUpdated.Time
	switch {
	case d.remembers && !v.memo.history.PublishedAt.IsZero() && v.memo.history.Published == from.stage:
		publishedAt = v.memo.history.PublishedAt
	case shown:
		publishedAt = from.at
	}
	if patience := v.config.MaxPublishLag - since(v.memo.next.PendingSince, v.now); patience > 0 {
		if left := window - since(publishedAt, v.now); left > 0 {
			d.requeue(min(left, patience))
			d.report(info, ReasonStageHeldBack, "status.conditions", "the conditions show ", string(from.stage), " while the InstallPlan is ", string(d.seen.stage))
			return from.stage, true
		}
		if len(ahead) > 1 {
			d.requeue(window)
			return ahead[0], false
		}
	} else if len(ahead) > 1 {
		d.report(warning, ReasonStageNotShown, "status.conditions", "the conditions leave out ", string(ahead[0]), ": they are behind the InstallPlan for too long")
	}
	v.note().PendingSince = time.Time{}
	return d.seen.stage, false
}
