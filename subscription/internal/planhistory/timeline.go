// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// timeline contains the transitions from a known position to the observed stage. reconstruct builds it, and nothing
// changes it afterwards.
type timeline struct {
	transitions []olmcore.Transition
	gaps        []olmcore.Diagnostic // what is not known about the stages

	end        position  // where the timeline ends so far
	continues  bool      // the timeline starts where the last report ended
	superseded bool      // the InstallPlan will never be executed
	latest     time.Time // the latest recorded time of a transition
	now        time.Time
	target     olmcore.Ref
}

// reconstruct returns the timeline from a position to the observed stage: the stages that Observations show, and those
// that the InstallPlan must have gone through between them.
func (s *Snapshot) reconstruct(p *Past, seen *Seen, from position) timeline {
	t := timeline{
		end: from, continues: from.knowsInstalledAt, now: s.Now, target: olmcore.RefOf(p.Subscription).Unversioned(),
	}
	// 1. The Subscription references no InstallPlan any more.
	if seen.Stage == StageNoPlan {
		t.addObservations(s.news(&p.History, &t, from.planUID, from.planName))
		t.leavePlan(ReasonReferenceCleared)
		return t
	}
	// 2. Or it references another one.
	if !relation.Same(from.planUID, from.planName, seen.UID, seen.Name) {
		t.addObservations(s.news(&p.History, &t, from.planUID, from.planName))
		t.addLeftPlan(s.Plans[from.planName], from.planUID)
		t.leavePlan(ReasonPlanReplaced)
	}
	// 3. Then the stages of the InstallPlan.
	t.addObservations(s.news(&p.History, &t, seen.UID, seen.Name))
	if seen.Stage == StageMissing {
		t.add(deletion(t.end.stage, seen.Proven, s.Now))
	} else {
		t.addVersion(version{seen.Stage, seen.Plan, s.Now})
	}
	return t
}

// news returns the Observations of an InstallPlan that the timeline does not contain yet: all from the first new one
// on. If the window begins earlier than the timeline, the first Observations may contradict it. They are left out.
func (s *Snapshot) news(h *History, t *timeline, planUID types.UID, planName string) []Observation {
	if planName == "" {
		return nil
	}
	var list []Observation
	for i := range s.Window.observations {
		o := &s.Window.observations[i]
		if s.Window.shows(o, planUID, planName) && (len(list) > 0 || t.isNews(o, h)) {
			list = append(list, *o)
		}
	}
	if len(list) == 0 || !contradicts(t.end.stage, StageOf(list[0].Plan)) {
		return list
	}
	i := slices.IndexFunc(list, func(o Observation) bool { return StageOf(o.Plan) == t.end.stage })
	return list[max(0, i):]
}

// contradicts reports whether no controller takes an InstallPlan from one stage to the next one.
func contradicts(stage, next Stage) bool {
	if stage == StageNoPlan || stage == StageMissing || stage == StageUnknown {
		return false
	}
	return next != stage && next != StageUnknown && !CanReach(stage, next)
}

// isNews reports whether an Observation may show something that the timeline does not contain: a later version than the
// last one that was used. Times decide if the versions cannot be compared.
func (t *timeline) isNews(o *Observation, h *History) bool {
	remembers := t.continues && h.isAbout(o.Plan.UID, o.Plan.Name)
	order, isOrdered := compareVersions(o.Plan.ResourceVersion, h.LastVersion)
	if remembers && isOrdered && order != 0 {
		return order > 0
	}
	installedAt := relation.InstalledAt(o.Plan)
	if t.continues && !installedAt.IsZero() && installedAt.Before(t.end.installedAt) {
		return false
	}
	if remembers && !h.LastObserved.IsZero() {
		return o.At.After(h.LastObserved)
	}
	return !o.At.Before(t.end.since)
}

// addObservations adds the versions that a watch delivered.
func (t *timeline) addObservations(list []Observation) {
	newest := int64(0)
	for _, o := range list {
		generation := o.Plan.Generation
		if generation > 0 && generation < newest {
			t.addGap(gapClockSkew, "the observed generations decrease, so the order of the observations is not known")
		}
		newest = max(newest, generation)
		t.addVersion(version{StageOf(o.Plan), o.Plan, o.At})
	}
}

// addVersion adds the stages that lead to a version of the InstallPlan.
func (t *timeline) addVersion(v version) {
	t.add(eventsUntil(t.end, v))
	t.end.since = olmcore.Timestamp(v.observedAt).Time
	n := len(t.transitions)
	if n > 0 && t.transitions[n-1].Bound == olmcore.Exact {
		t.end.since = t.transitions[n-1].At.Time
	}
	t.end.installedAt, t.end.knowsInstalledAt = relation.InstalledAt(v.plan), true
}

// addLeftPlan adds what is new about an InstallPlan that the Subscription no longer references. plan is nil if the
// InstallPlan is not visible.
func (t *timeline) addLeftPlan(plan *v1alpha1.InstallPlan, uid types.UID) {
	if plan == nil || uid == "" || plan.UID != uid {
		return
	}
	stage, end := StageOf(plan), t.end.stage
	switch {
	case stage == end || stage == StageUnknown || end == StageUnknown || end == StageMissing || !CanReach(end, stage):
		return
	case relation.Over(plan) && !relation.InstalledAt(plan).After(t.end.installedAt):
		return
	}
	t.addVersion(version{stage, plan, t.now})
}

// leavePlan ends the stages of an InstallPlan that the Subscription no longer references.
func (t *timeline) leavePlan(reason string) {
	end := t.end.stage
	if end == StageNoPlan {
		return
	}
	if reason == ReasonPlanReplaced && end != StageComplete && end != StageMissing && !t.superseded {
		t.addGap(gapReplacedPlan, "the end of the old InstallPlan, last observed as "+string(end)+", was not observed")
	}
	left := inferred(StageNoPlan, observedAt(t.now), olmcore.CertaintyObserved)
	left.condition.Reason = reason
	t.addTransition(left)
	t.end, t.latest = position{stage: StageNoPlan}, time.Time{}
	t.continues, t.superseded = false, false
}

// add adds events.
func (t *timeline) add(events []event) {
	for _, e := range events {
		if e.gap != "" {
			t.addGap(e.gap, e.why)
		} else {
			t.addTransition(e)
		}
	}
}

// addGap reports something that is not known. It is only information if a known stage was entered more often.
func (t *timeline) addGap(kind, why string) {
	severity := olmcore.Warning
	if kind == gapAtLeastOnce {
		severity = olmcore.Info
	}
	t.gaps = append(t.gaps, olmcore.Diagnose(severity, olmcore.ReasonHistoryGap, t.target, "", "%s: %s", kind, why))
}

// addTransition adds the transition to a stage.
func (t *timeline) addTransition(e event) {
	entered := e.entered
	if !entered.at.IsZero() && entered.at.Before(t.latest) {
		t.addGap(gapClockSkew, "the time recorded for "+string(e.stage)+" is before that of an earlier stage")
		entered = moment{}
	}
	next := olmcore.Transition{
		Target: t.target, Type: TransitionType, From: string(t.end.stage), To: string(e.stage),
		Status: metav1.ConditionFalse, Reason: e.condition.Reason, Message: e.condition.Message,
		Certainty: e.certainty, OutOfBand: e.outOfBand,
	}
	if e.condition.Type != "" {
		next.Status = metav1.ConditionTrue
	}
	if !entered.at.IsZero() {
		next.At, next.Bound = olmcore.Timestamp(entered.at), entered.bound
	}
	if !entered.at.IsZero() && entered.isRecorded && entered.bound != olmcore.NotBefore {
		t.latest = entered.at
		t.limitEarlierTimes(entered.at)
	}
	t.transitions = append(t.transitions, next)
	t.end.stage = e.stage
	t.superseded = t.superseded || e.superseded
}

// limitEarlierTimes lowers the times at which earlier stages were observed. They were entered before a later stage
// whose time is recorded.
func (t *timeline) limitEarlierTimes(at time.Time) {
	for i := len(t.transitions) - 1; i >= 0; i-- {
		earlier := &t.transitions[i]
		if earlier.Bound == olmcore.Exact || !earlier.At.Time.After(at) || Stage(earlier.To) == StageNoPlan {
			return
		}
		earlier.At = olmcore.Timestamp(at)
	}
}
