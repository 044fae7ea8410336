// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Some things can never be known, whatever is recorded:
//   - edits that return to the same phase and leave startTime and conditions as they were;
//   - how often an InstallPlan failed and was retried between two observations (a new lastUpdateTime proves one retry);
//   - when exactly approval was requested or given;
//   - the last stage of an InstallPlan that was deleted or replaced before it was observed;
//   - the order of events within one second, beyond the order of the graph;
//   - InstallPlans that were created and deleted without ever being referenced or observed;
//   - whether an InstallPlan with manual approval waited, if it was approved before it had any content.

// Kinds of gaps. A kind is the first word of the message of a Diagnostic with the reason olmcore.ReasonHistoryGap.
const (
	gapDeletedBeforeObserved = "DeletedBeforeObserved"
	gapOutOfBandEdit         = "OutOfBandEdit"
	gapApprovalUnknown       = "ApprovalUnknown"
	gapNoExecutionEvidence   = "NoExecutionEvidence"
	gapReplacedPlan          = "ReplacedPlan"
	gapUnknownPhase          = "UnknownPhase"
	gapClockSkew             = "ClockSkew"
	gapAtLeastOnce           = "AtLeastOnce"
)

// path is a list of transitions without holes, from a known stage to the observed one. It is built inside
// reconstruct and not changed afterwards.
type path struct {
	transitions []olmcore.Transition
	gaps        []olmcore.Diagnostic // what is not known about it

	end        position  // where the path ends so far
	continues  bool      // it starts where the last report ended
	superseded bool      // the InstallPlan will never be executed
	latest     time.Time // the latest recorded time of a transition
	now        time.Time
	target     olmcore.Ref
}

// moment is the time at which a stage was entered.
type moment struct {
	at         time.Time
	bound      olmcore.Bound
	isRecorded bool // in the InstallPlan; false: the stage was only observed at that time
}

func exactly(t time.Time) moment   { return moment{t, olmcore.Exact, true} }
func notAfter(t time.Time) moment  { return moment{t, olmcore.NotAfter, true} }
func notBefore(t time.Time) moment { return moment{t, olmcore.NotBefore, true} }
func observedAt(t time.Time) moment {
	return moment{olmcore.Timestamp(t).Time, olmcore.NotAfter, false}
}

// add adds a transition. c is the condition that shows the stage.
func (t *path) add(to Stage, m moment, certainty olmcore.Certainty, c v1alpha1.SubscriptionCondition) *olmcore.Transition {
	if !m.at.IsZero() && m.at.Before(t.latest) {
		t.addGap(gapClockSkew, "the time recorded for "+string(to)+" is before that of an earlier stage")
		m = moment{}
	}
	next := olmcore.Transition{
		Target: t.target, Type: TransitionType, From: string(t.end.stage), To: string(to),
		Status: metav1.ConditionFalse, Reason: c.Reason, Message: c.Message, Certainty: certainty,
	}
	if c.Type != "" {
		next.Status = metav1.ConditionTrue
	}
	if !m.at.IsZero() {
		next.At, next.Bound = olmcore.Timestamp(m.at), m.bound
		if m.isRecorded && m.bound != olmcore.NotBefore {
			t.latest = m.at
			t.limitEarlierTimes(m.at)
		}
	}
	t.transitions = append(t.transitions, next)
	t.end.stage = to
	return &t.transitions[len(t.transitions)-1]
}

// addInferred adds a transition that was not observed.
func (t *path) addInferred(to Stage, m moment, certainty olmcore.Certainty) *olmcore.Transition {
	return t.add(to, m, certainty, Condition(to, nil))
}

// limitEarlierTimes lowers the times at which earlier stages were observed: they were entered before a later stage
// whose time is recorded.
func (t *path) limitEarlierTimes(at time.Time) {
	for i := len(t.transitions) - 1; i >= 0; i-- {
		earlier := &t.transitions[i]
		if earlier.Bound == olmcore.Exact || !earlier.At.Time.After(at) || Stage(earlier.To) == StageNoPlan {
			return
		}
		earlier.At = olmcore.Timestamp(at)
	}
}

// addGap reports something that is not known. It is no hole in the path if something happened more often than known.
func (t *path) addGap(kind, why string) {
	severity := olmcore.Warning
	if kind == gapAtLeastOnce {
		severity = olmcore.Info
	}
	t.gaps = append(t.gaps, olmcore.Diagnose(severity, olmcore.ReasonHistoryGap, t.target, "", "%s: %s", kind, why))
}

// isNews reports whether an Observation may show something that the path does not contain: a later version than the
// last one that was used. Times decide if the versions cannot be compared.
func (t *path) isNews(o *Observation, h *History) bool {
	remembers := t.continues && h.isAbout(o.Plan.UID, o.Plan.Name)
	if order, ok := compareVersions(o.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && remembers {
		return order > 0
	}
	if at := relation.InstalledAt(o.Plan); t.continues && !at.IsZero() && at.Before(t.end.installedAt) {
		return false
	}
	if remembers && !h.LastObserved.IsZero() {
		return o.At.After(h.LastObserved)
	}
	return !o.At.Before(t.end.since)
}

// addObservations adds the versions that a watch delivered.
func (t *path) addObservations(list []Observation) {
	newest := int64(0)
	for _, o := range list {
		if g := o.Plan.Generation; g > 0 && g < newest {
			t.addGap(gapClockSkew, "the observed generations go back, so the order of the observations is not known")
		}
		newest = max(newest, o.Plan.Generation)
		t.addVersion(StageOf(o.Plan), o.Plan, o.At)
	}
}

// addLastStageOf adds what is new about an InstallPlan that the Subscription no longer references.
func (t *path) addLastStageOf(left *v1alpha1.InstallPlan) {
	to, end := StageOf(left), t.end.stage
	switch {
	case to == end || to == StageUnknown || end == StageUnknown || end == StageMissing || !CanReach(end, to):
		return
	case relation.Over(left) && !relation.InstalledAt(left).After(t.end.installedAt):
		return
	}
	t.addVersion(to, left, t.now)
}

// leavePlan ends the path of an InstallPlan that the Subscription no longer references.
func (t *path) leavePlan(reason string) {
	end := t.end.stage
	if end == StageNoPlan {
		return
	}
	if reason == ReasonPlanReplaced && end != StageComplete && end != StageMissing && !t.superseded {
		t.addGap(gapReplacedPlan, "the end of the old plan, last seen as "+string(end)+", was not observed")
	}
	t.add(StageNoPlan, observedAt(t.now), olmcore.CertaintyObserved, v1alpha1.SubscriptionCondition{Reason: reason})
	t.end, t.continues, t.superseded, t.latest = position{stage: StageNoPlan}, false, false, time.Time{}
}

// addDeletion adds the transition to StageMissing.
func (t *path) addDeletion(isObserved bool) {
	switch end := t.end.stage; end {
	case StageMissing:
		return
	case StageComplete, StageFailed:
	case StageUnknown:
		t.addGap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
	default:
		t.addGap(gapDeletedBeforeObserved, "the plan was deleted; its last stage after "+string(end)+" was not observed")
	}
	certainty := olmcore.CertaintyInferred
	if isObserved {
		certainty = olmcore.CertaintyObserved
	}
	t.addInferred(StageMissing, observedAt(t.now), certainty)
}

// addVersion adds the transitions to a version of the InstallPlan that was observed at the given time.
func (t *path) addVersion(to Stage, plan *v1alpha1.InstallPlan, at time.Time) {
	end := t.end.stage
	switch {
	case end == to:
		t.addRoundTrip(to, plan, at)
	case end == StageMissing:
		t.addObserved(to, plan, at).Reason = ReasonPlanRestored
	case end == StageUnknown:
		t.addGap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
		t.addObserved(to, plan, at)
	case to == StageUnknown:
		t.addObserved(to, plan, at)
	case !CanReach(end, to):
		t.addGap(gapOutOfBandEdit, "no controller takes a plan from "+string(end)+" to "+string(to))
		t.addObserved(to, plan, at).OutOfBand = true
	case to == StageFailed && relation.IsSuperseded(plan):
		t.addObserved(to, plan, at)
		t.superseded = true
	default:
		t.addStagesBefore(to, plan)
		skipsInstalling := relation.Over(plan) && t.end.stage != StageInstalling
		t.addObserved(to, plan, at).OutOfBand = skipsInstalling
	}
	t.end.since = olmcore.Timestamp(at).Time
	if n := len(t.transitions); n > 0 && t.transitions[n-1].Bound == olmcore.Exact {
		t.end.since = t.transitions[n-1].At.Time
	}
	t.end.installedAt, t.end.knowsInstalledAt = relation.InstalledAt(plan), true
}

// addObserved adds the transition to an observed stage.
func (t *path) addObserved(to Stage, plan *v1alpha1.InstallPlan, at time.Time) *olmcore.Transition {
	c := Condition(to, plan)
	switch to {
	case StageComplete:
		c.Reason = ReasonInstallPlanComplete
	case StageUnknown:
		c.Reason = string(plan.Status.Phase)
	}
	if c.Message == "" {
		c.Message = plan.Status.Message
	}
	return t.add(to, t.entered(to, plan, at), olmcore.CertaintyObserved, c)
}

// entered returns when an observed stage was entered, as exactly as the InstallPlan records it.
func (t *path) entered(to Stage, plan *v1alpha1.InstallPlan, at time.Time) moment {
	created, started := plan.CreationTimestamp.Time, relation.Time(plan.Status.StartTime)
	end := t.end.stage
	isFirstRun := isBeforeInstalling(end)
	switch {
	case end == StageMissing:
	case to == StageNotYetReconciled && end == StageNoPlan && !created.IsZero():
		return exactly(created)
	case to == StageRequiresApproval && isFirstRun && !created.IsZero():
		return notBefore(created)
	case to == StageInstalling && isFirstRun && plan.Status.StartTime != nil:
		return notAfter(started)
	case hasEnded(plan, to) && !relation.InstalledAt(plan).IsZero():
		return exactly(relation.InstalledAt(plan))
	}
	return observedAt(at)
}

func isBeforeApproval(s Stage) bool { return s == StageNotYetReconciled || s == StagePlanning }

func isBeforeInstalling(s Stage) bool {
	return s == StageNoPlan || isBeforeApproval(s) || s == StageRequiresApproval
}

// hasEnded reports whether the Installed condition is the one that a controller writes with the phase of the stage.
func hasEnded(plan *v1alpha1.InstallPlan, s Stage) bool {
	switch s {
	case StageComplete:
		return relation.Installed(plan).Status == corev1.ConditionTrue
	case StageFailed:
		return relation.HasFailed(plan)
	}
	return false
}

// addStagesBefore adds the stages through which the InstallPlan must have gone before an observed stage.
func (t *path) addStagesBefore(to Stage, plan *v1alpha1.InstallPlan) {
	isOver := to == StageComplete || to == StageFailed

	// 1. It was created.
	if t.end.stage == StageNoPlan && to != StageNotYetReconciled {
		created := plan.CreationTimestamp.Time
		t.end.since = created
		t.addInferred(StageNotYetReconciled, exactly(created), olmcore.CertaintyProven)
	}
	// 2. It was approved.
	if (isOver || to == StageInstalling) && isBeforeApproval(t.end.stage) {
		t.addApproval(plan)
	}
	// 3. It was installing, perhaps more than once.
	switch {
	case isOver && t.end.stage == StageFailed:
		m := moment{}
		if hasEnded(plan, to) {
			m = notAfter(relation.InstalledAt(plan))
		}
		t.addInferred(StageInstalling, m, olmcore.CertaintyProven)
	case isOver && t.end.stage != StageInstalling:
		t.addInstalling(to, plan)
	case to == StageInstalling && t.hasFailedAgain(plan):
		t.addInferred(StageInstalling, notAfter(relation.Time(plan.Status.StartTime)), olmcore.CertaintyProven)
		t.addFailure(plan)
	}
}

// hasFailedAgain reports whether an InstallPlan that is Installing failed since the end of the path.
func (t *path) hasFailedAgain(plan *v1alpha1.InstallPlan) bool {
	if !relation.HasFailed(plan) {
		return false
	}
	known := t.end.installedAt
	return t.end.stage != StageFailed || !known.IsZero() && relation.InstalledAt(plan).After(known)
}

// addInstalling adds StageInstalling before the end of an InstallPlan, if it left a trace.
func (t *path) addInstalling(to Stage, plan *v1alpha1.InstallPlan) {
	certainty := t.certaintyOfInstalling(to, plan)
	if certainty == "" {
		t.addGap(gapNoExecutionEvidence, "the plan is "+string(to)+" without a trace of having been installed")
		return
	}
	t.addInferred(StageInstalling, notAfter(relation.Time(plan.Status.StartTime)), certainty)
}

// certaintyOfInstalling returns how certain it is that the InstallPlan was Installing before it ended. It is empty if
// nothing shows it.
func (t *path) certaintyOfInstalling(to Stage, plan *v1alpha1.InstallPlan) olmcore.Certainty {
	start, isEnd := plan.Status.StartTime, hasEnded(plan, to)
	from := t.end.since.Truncate(time.Second)
	if t.end.since.IsZero() {
		from = plan.CreationTimestamp.Time
	}
	switch {
	case start == nil && !isEnd:
		return ""
	case start == nil:
		return olmcore.CertaintyInferred
	case !start.Time.Before(from) || isEnd && !relation.InstalledAt(plan).Before(from):
		return olmcore.CertaintyProven
	}
	return olmcore.CertaintyInferred
}

// addApproval adds StageRequiresApproval if the InstallPlan must have waited for its approval.
func (t *path) addApproval(plan *v1alpha1.InstallPlan) {
	certainty := olmcore.CertaintyAssumed
	switch {
	case plan.Spec.Approval != v1alpha1.ApprovalManual:
		if plan.Generation >= 2 {
			t.addGap(gapApprovalUnknown, "the plan's spec was edited, perhaps its approval mode")
		}
		return
	case !plan.Spec.Approved:
		t.addGap(gapOutOfBandEdit, "the plan ran although it is not approved")
	case plan.Generation == 1:
		return // it was created approved
	case plan.Generation >= 2:
		certainty = olmcore.CertaintyInferred
	}
	t.addInferred(StageRequiresApproval, notBefore(plan.CreationTimestamp.Time), certainty)
}

// addRoundTrip adds the transitions of an InstallPlan that left a stage and entered it again between two
// observations. A new lastUpdateTime of the Installed condition proves it.
func (t *path) addRoundTrip(stage Stage, plan *v1alpha1.InstallPlan, at time.Time) {
	installedAt, known := relation.InstalledAt(plan), t.end.installedAt
	if !t.end.knowsInstalledAt || !installedAt.After(known) || known.IsZero() && stage != StageInstalling {
		return
	}
	switch {
	case stage == StageInstalling && relation.HasFailed(plan):
		t.addFailure(plan)
		t.addObserved(stage, plan, at)
	case stage == StageFailed && hasEnded(plan, stage):
		t.addInferred(StageInstalling, notAfter(installedAt), olmcore.CertaintyProven)
		t.addObserved(stage, plan, at)
		t.addGap(gapAtLeastOnce, "the plan was tried and failed again at least once")
	case stage == StageComplete && hasEnded(plan, stage):
		t.addGap(gapOutOfBandEdit, "no controller runs a complete plan again")
		t.addGap(gapAtLeastOnce, "the plan ran again at least once")
		t.addInferred(StageInstalling, notAfter(installedAt), olmcore.CertaintyProven).OutOfBand = true
		t.addObserved(stage, plan, at)
	}
}

// addFailure adds the failure that the Installed condition of an Installing InstallPlan still shows.
func (t *path) addFailure(plan *v1alpha1.InstallPlan) {
	m := exactly(relation.InstalledAt(plan))
	t.add(StageFailed, m, olmcore.CertaintyProven, Condition(StageFailed, plan))
	t.addGap(gapAtLeastOnce, "the plan failed and was tried again at least once")
}
