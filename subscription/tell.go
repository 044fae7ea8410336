// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// tell reports the transitions: all that are new to a caller who remembers, else
// those up to what the status is made to show by this very result. To a caller who
// remembers, a plan is told of once it is seen to be referred to: the write of the
// reference may be lost, and a cache be behind it.
func (v *view) tell(d *verdict) {
	v.tellStages(d)
	if d.changed {
		v.tellWrites(d)
	}
}

func (v *view) tellStages(d *verdict) {
	if d.seen.stage == StageUnverified {
		return
	}
	remembering := v.keepsHistory()
	if !remembering && !(d.changed && (d.changedReference() || d.state != d.sub.Status.State || v.showsNew(d))) {
		return
	}
	from := v.known(d)
	if remembering && d.ref != nil && d.changedReference() {
		if !d.remembers {
			h := v.note()
			h.LastStage, h.LastAt, h.PlanUID, h.PlanName = from.stage, instant(from.at), from.uid, from.name
		}
		return
	}
	if remembering && d.remembers && v.isQuiet(d, from) {
		v.tellMessage(d)
		return
	}
	c := v.path(d, from)
	if !remembering && d.shown != d.seen.stage && d.seen.stage != StageMissing {
		c.cutAt(d.shown)
	}
	d.transitions, d.diagnostics = c.list, append(d.diagnostics, c.gaps...)
	if remembering {
		v.remember(d, &c)
		v.tellMessage(d)
	}
}

// tellMessage reports, to a caller who remembers, that the plan itself has
// something new to say; the conditions do not show status.message.
func (v *view) tellMessage(d *verdict) {
	plan := d.seen.plan
	if plan == nil || digest(plan.Status.Message) == v.memo.next.LastMessage {
		return
	}
	message := plan.Status.Message
	v.note().LastMessage = digest(message)
	if n := len(d.transitions); message != "" && (n == 0 || d.transitions[n-1].Message != message) {
		d.report(info, ReasonPlanMessage, "status.installPlanRef", "InstallPlan ", plan.Name, ": ", message)
	}
}

// digest is a short form of a message, 0 for none.
func digest(message string) uint32 {
	if message == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(message)) // never fails
	return h.Sum32()
}

// isQuiet reports, without building a chain, that nothing happened.
func (v *view) isQuiet(d *verdict, from origin) bool {
	if from.stage != d.seen.stage || len(v.observations) > 0 {
		return false
	}
	if from.stage == StageNoPlan {
		return true
	}
	uid, name := d.planIdentity()
	return from.uid == uid && from.name == name && (d.seen.plan == nil || installedAt(d.seen.plan).Equal(from.lastDone))
}

// showsNew reports whether the conditions are made to show another stage.
func (v *view) showsNew(d *verdict) bool {
	from, _ := v.recorded(d)
	return d.shown != StageUnverified && d.shown != from.stage
}

// cutAt drops what lies beyond the stage that is shown.
func (c *chain) cutAt(shown Stage) {
	for i := range c.list {
		if Stage(c.list[i].To) == shown {
			c.list = c.list[:i+1]
			return
		}
	}
	c.list, c.gaps = nil, nil
}

func (v *view) remember(d *verdict, c *chain) {
	h := v.note()
	if n := len(c.list); n > 0 || h.LastStage == "" {
		h.Seq += int64(n)
		h.LastAt = instant(olmcore.Timestamp(v.now).Time)
		if n > 0 && c.list[n-1].Bound == olmcore.Exact {
			h.LastAt = instant(c.list[n-1].At.Time)
		}
	}
	isStaleVersion := d.seen.plan != nil && h.LastStage == d.seen.stage && isOlderVersion(d.seen.plan.ResourceVersion, h.LastVersion)
	h.LastStage = d.seen.stage
	if d.seen.stage == StageNoPlan {
		h.PlanUID, h.PlanName, h.LastInstalledUpdate, h.LastVersion, h.LastObserved, h.LastMessage = "", "", time.Time{}, "", time.Time{}, 0
		return
	}
	uid, name := d.planIdentity()
	if !h.isAbout(uid, name) {
		h.LastVersion, h.LastObserved, h.LastMessage = "", time.Time{}, 0
	}
	h.PlanUID, h.PlanName = uid, name
	if at := v.lastObserved(uid, name); at.After(h.LastObserved) {
		h.LastObserved = instant(at)
	}
	if d.seen.plan != nil {
		h.LastInstalledUpdate = instant(installedAt(d.seen.plan))
		if !isStaleVersion {
			h.LastVersion = d.seen.plan.ResourceVersion
		}
	}
}

// tellWrites reports what a status write changes besides the plan's stage.
func (v *view) tellWrites(d *verdict) {
	if d.state != d.sub.Status.State {
		v.tellState(d)
	}
	want := d.conditions(v.now)
	for _, t := range ourTypes {
		if groupOf(t) == groupPlan {
			continue // the stage says so
		}
		have := d.sub.Status.Conditions
		before, after := newest(have, t), first(want, t)
		if before < 0 && after < 0 || before >= 0 && after >= 0 && says(&have[before], &want[after]) {
			continue
		}
		tr := olmcore.Transition{
			Target: olmcore.RefOf(d.sub).Unversioned(), Type: string(t),
			At: olmcore.Timestamp(v.now), Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
		}
		if before >= 0 {
			tr.From = string(have[before].Status)
		}
		if after >= 0 {
			c := &want[after]
			tr.To, tr.Status, tr.Reason, tr.Message = string(c.Status), metav1.ConditionStatus(c.Status), c.Reason, c.Message
		}
		d.transitions = append(d.transitions, tr)
	}
}

// says reports whether two conditions of one type say the same.
func says(a, b *v1alpha1.SubscriptionCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// announce says once for the namespace that its resolution failed, when the
// Subscriptions are made to say so.
func (v *view) announce(out *Outcome) {
	failed := &v.answer.failed
	if failed.conditionType == "" || v.blocked != "" {
		return
	}
	if slices.ContainsFunc(out.Transitions, func(t olmcore.Transition) bool {
		return t.Type == string(failed.conditionType) && t.Status == metav1.ConditionTrue && t.Message == failed.message
	}) {
		out.Diagnostics = append(out.Diagnostics, v.namespaceDiagnostic(warning, ReasonResolutionFailed, failed.message))
	}
}

func (v *view) tellState(d *verdict) {
	d.transitions = append(d.transitions, olmcore.Transition{
		Target: olmcore.RefOf(d.sub).Unversioned(), Type: TransitionState,
		From: string(d.sub.Status.State), To: string(d.state), Status: metav1.ConditionTrue,
		Reason: d.why().Reason, At: olmcore.Timestamp(v.now), Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	})
}

// why returns what the status write is for.
func (d *verdict) why() olmcore.Cause {
	if d.cause.Reason != "" {
		return d.cause
	}
	message := "the InstallPlan is " + string(d.seen.stage)
	switch {
	case d.resolution.conditionType != "":
		message = "the namespace cannot be resolved"
	case d.seen.stage == StageNoPlan:
		message = "no InstallPlan is referenced"
	}
	return olmcore.Cause{Reason: ReasonStatusObserved, Message: message}
}
