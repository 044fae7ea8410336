// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// tell reports the transitions: all that are new to a caller who remembers, else
// those up to what the status is made to show by this very result.
func (v *view) tell(d *verdict) {
	if d.changed && d.state != d.sub.Status.State {
		defer v.tellState(d)
	}
	if d.seen.stage == StageUnverified {
		return
	}
	remembering := v.keepsHistory()
	if !remembering && !(d.changed && (d.changedReference() || d.state != d.sub.Status.State || v.showsNew(d))) {
		return
	}
	from := v.known(d)
	if remembering && d.remembers && v.isQuiet(d, from) {
		return
	}
	c := v.path(d, from)
	if !remembering && d.shown != d.seen.stage && d.seen.stage != StageMissing {
		c.cutAt(d.shown)
	}
	d.transitions, d.diagnostics = append(d.transitions, c.list...), append(d.diagnostics, c.gaps...)
	if remembering {
		v.remember(d, &c)
	}
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
	h.LastStage = d.seen.stage
	if d.seen.stage == StageNoPlan {
		h.PlanUID, h.PlanName, h.LastInstalledUpdate, h.LastObserved = "", "", time.Time{}, time.Time{}
		return
	}
	uid, name := d.planIdentity()
	if !h.isAbout(uid, name) {
		h.LastObserved = time.Time{}
	}
	h.PlanUID, h.PlanName = uid, name
	if at := v.lastObserved(uid, name); at.After(h.LastObserved) {
		h.LastObserved = instant(at)
	}
	if d.seen.plan != nil {
		h.LastInstalledUpdate = instant(installedAt(d.seen.plan))
	}
}

func (v *view) tellState(d *verdict) {
	d.transitions = append(d.transitions, olmcore.Transition{
		Target: olmcore.RefOf(d.sub).Unversioned(), Type: TransitionState,
		From: string(d.sub.Status.State), To: string(d.state), Status: metav1.ConditionTrue,
		Reason: d.why().Reason, At: olmcore.Timestamp(v.now), Bound: olmcore.NotAfter, Certainty: olmcore.Observed,
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
