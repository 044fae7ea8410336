// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

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

// lacksOwnWrite reports whether the conditions still show what they did before the last call changed them: a cache that
// has not seen that write yet.
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

// isQuiet reports whether nothing happened since the last report: then the memory stays as it is, whatever was written
// to the plan meanwhile.
func (t *tracker) isQuiet(from *origin) bool {
	p := &t.Plan
	if from.stage != p.Stage || len(t.window.list) > 0 {
		return false
	}
	return p.Stage == StageNoPlan || from.uid == p.UID && from.name == p.Name &&
		(p.Plan == nil || relation.InstalledAt(p.Plan).Equal(from.installedAt))
}

// reportMessage reports, to a caller who remembers, that the plan itself has something new to say; the conditions do
// not show status.message.
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

// lastObserved returns the time up to which Observations of the plan are known: that of the newest one, or now where
// the list knows more.
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
