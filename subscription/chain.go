// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// What can never be known, whatever is recorded: edits that return to the same phase and leave startTime and conditions
// as they were; how many rounds of Failed and Installing passed between two observations (each changed lastUpdateTime
// proves one); when exactly approval was asked for or given; the last stage of a plan that was deleted or replaced
// unseen; the order of what happened within one second, beyond that of the graph; a plan that came and went without
// ever being referenced or observed; whether a Manual plan waited for its approval when that was given before the plan
// had any content.

// Kinds of gaps: the first word of the message of a Diagnostic with the reason olmcore.ReasonHistoryGap.
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

// chain is a contiguous list of transitions of one Subscription's plan, from the stage that was known to the one that
// is observed. Its origin moves on with it.
type chain struct {
	origin
	target     olmcore.Ref
	now        time.Time
	remembers  bool // the chain goes on where the last one ended
	superseded bool // the plan will never be executed: it has no later stage

	list   []olmcore.Transition
	gaps   []olmcore.Diagnostic
	latest time.Time // of the times in list
}

// moment is when a stage was entered: as recorded in the plan, or as seen.
type moment struct {
	at       time.Time
	bound    olmcore.Bound
	recorded bool
}

func exactly(t time.Time) moment   { return moment{t, olmcore.Exact, true} }
func notAfter(t time.Time) moment  { return moment{t, olmcore.NotAfter, true} }
func notBefore(t time.Time) moment { return moment{t, olmcore.NotBefore, true} }
func seen(t time.Time) moment      { return moment{olmcore.Timestamp(t).Time, olmcore.NotAfter, false} }

// step adds an edge. w is the condition that shows the stage.
func (c *chain) step(to Stage, m moment, certainty olmcore.Certainty, w v1alpha1.SubscriptionCondition) *olmcore.Transition {
	if !m.at.IsZero() && m.at.Before(c.latest) {
		c.gap(gapClockSkew, "the time recorded for "+string(to)+" is before that of an earlier stage")
		m = moment{}
	}
	t := olmcore.Transition{
		Target: c.target, Type: TransitionInstallPlan, From: string(c.stage), To: string(to),
		Status: metav1.ConditionFalse, Reason: w.Reason, Message: w.Message, Certainty: certainty,
	}
	if w.Type != "" {
		t.Status = metav1.ConditionTrue
	}
	if !m.at.IsZero() {
		t.At, t.Bound = olmcore.Timestamp(m.at), m.bound
		if m.recorded && m.bound != olmcore.NotBefore {
			c.latest = m.at
			c.tighten(m.at)
		}
	}
	c.list, c.stage = append(c.list, t), to
	return &c.list[len(c.list)-1]
}

// infer adds an edge that was not observed.
func (c *chain) infer(to Stage, m moment, certainty olmcore.Certainty) *olmcore.Transition {
	return c.step(to, m, certainty, conditionOf(to, nil))
}

// tighten lowers the times at which earlier stages were merely seen: they were entered before the one recorded now.
func (c *chain) tighten(at time.Time) {
	for i := len(c.list) - 1; i >= 0 && c.list[i].Bound != olmcore.Exact && c.list[i].At.Time.After(at) && Stage(c.list[i].To) != StageNoPlan; i-- {
		c.list[i].At = olmcore.Timestamp(at)
	}
}

// gap reports what is not known. That something happened more often than can be known is no hole in the chain.
func (c *chain) gap(kind, why string) {
	severity := olmcore.Warning
	if kind == gapAtLeastOnce {
		severity = olmcore.Info
	}
	c.gaps = append(c.gaps, olmcore.Diagnose(severity, olmcore.ReasonHistoryGap, c.target, "", "%s: %s", kind, why))
}

// lastWords extends the chain by what is new of a plan that the Subscription does not follow any more.
func (c *chain) lastWords(left *v1alpha1.InstallPlan) {
	to := stageOf(left)
	switch {
	case to == c.stage, to == StageUnknown, c.stage == StageUnknown, c.stage == StageMissing, !reachable(c.stage, to):
	case relation.Over(left) && !relation.InstalledAt(left).After(c.installedAt):
	default:
		c.reach(to, left, c.now)
	}
}

// replace ends the chain of an old plan: the Subscription follows another one.
func (c *chain) replace(reason string) {
	if c.stage == StageNoPlan {
		return
	}
	if reason == ReasonPlanReplaced && c.stage != StageComplete && c.stage != StageMissing && !c.superseded {
		c.gap(gapReplacedPlan, "the end of the old plan, last seen as "+string(c.stage)+", was not observed")
	}
	c.step(StageNoPlan, seen(c.now), olmcore.CertaintyObserved, v1alpha1.SubscriptionCondition{Reason: reason})
	c.origin, c.remembers, c.superseded, c.latest = origin{stage: StageNoPlan}, false, false, time.Time{}
}

// vanish adds the edge to StageMissing.
func (c *chain) vanish(proven bool) {
	switch c.stage {
	case StageMissing:
		return
	case StageComplete, StageFailed:
	case StageUnknown:
		c.gap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
	default:
		c.gap(gapDeletedBeforeObserved, "the plan was deleted; its last stage after "+string(c.stage)+" was not observed")
	}
	certainty := olmcore.CertaintyInferred
	if proven {
		certainty = olmcore.CertaintyObserved
	}
	c.infer(StageMissing, seen(c.now), certainty)
}

// watch extends the chain by versions that a watch delivered.
func (c *chain) watch(window []Observation) {
	newest := int64(0)
	for _, o := range window {
		if g := o.Plan.Generation; g > 0 && g < newest {
			c.gap(gapClockSkew, "the observed generations go back, so the order of the observations is not known")
		}
		newest = max(newest, o.Plan.Generation)
		c.reach(stageOf(o.Plan), o.Plan, o.At)
	}
}

// reach extends the chain to an observed version of the plan, seen at the given time.
func (c *chain) reach(to Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) {
	switch {
	case c.stage == to:
		c.again(to, plan, seenAt)
	case c.stage == StageMissing:
		c.end(to, plan, seenAt).Reason = ReasonPlanRestored
	case c.stage == StageUnknown:
		c.gap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
		c.end(to, plan, seenAt)
	case to == StageUnknown:
		c.end(to, plan, seenAt)
	case !reachable(c.stage, to):
		c.gap(gapOutOfBandEdit, "no controller takes a plan from "+string(c.stage)+" to "+string(to))
		c.end(to, plan, seenAt).OutOfBand = true
	case to == StageFailed && relation.IsSuperseded(plan):
		c.end(to, plan, seenAt)
		c.superseded = true
	default:
		c.fill(to, plan)
		skips := relation.Over(plan) && c.stage != StageInstalling
		c.end(to, plan, seenAt).OutOfBand = skips
	}
	c.at = olmcore.Timestamp(seenAt).Time
	if n := len(c.list); n > 0 && c.list[n-1].Bound == olmcore.Exact {
		c.at = c.list[n-1].At.Time
	}
	c.installedAt, c.knows = relation.InstalledAt(plan), true
}

// end adds the edge to an observed stage.
func (c *chain) end(to Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) *olmcore.Transition {
	w := conditionOf(to, plan)
	switch to {
	case StageComplete:
		w.Reason = ReasonInstallPlanComplete
	case StageUnknown:
		w.Reason = string(plan.Status.Phase)
	}
	if w.Message == "" {
		w.Message = plan.Status.Message
	}
	m, created := seen(seenAt), plan.CreationTimestamp.Time
	fresh := c.stage == StageNoPlan || c.stage == StageNotYetReconciled || c.stage == StagePlanning || c.stage == StageRequiresApproval
	switch {
	case c.stage == StageMissing:
	case to == StageNotYetReconciled && c.stage == StageNoPlan && !created.IsZero():
		m = exactly(created)
	case to == StageRequiresApproval && fresh && !created.IsZero():
		m = notBefore(created)
	case to == StageInstalling && fresh && plan.Status.StartTime != nil:
		m = notAfter(plan.Status.StartTime.Time)
	case isEnded(plan, to) && !relation.InstalledAt(plan).IsZero():
		m = exactly(relation.InstalledAt(plan))
	}
	return c.step(to, m, olmcore.CertaintyObserved, w)
}

// isEnded reports whether the Installed condition is the one that a controller writes when a plan gets to its end.
func isEnded(plan *v1alpha1.InstallPlan, to Stage) bool {
	return to == StageComplete && relation.Installed(plan).Status == corev1.ConditionTrue || to == StageFailed && relation.HasFailed(plan)
}

// fill adds the stages between where the chain stands and an observed stage that can be reached from there.
func (c *chain) fill(to Stage, plan *v1alpha1.InstallPlan) {
	created, started, updated := plan.CreationTimestamp.Time, notAfter(relation.Time(plan.Status.StartTime)), relation.InstalledAt(plan)
	if c.stage == StageNoPlan && to != StageNotYetReconciled {
		c.at = created
		c.infer(StageNotYetReconciled, exactly(created), olmcore.CertaintyProven)
	}
	ends := to == StageComplete || to == StageFailed
	if (ends || to == StageInstalling) && (c.stage == StageNotYetReconciled || c.stage == StagePlanning) {
		c.fillApproval(plan)
	}
	switch {
	case ends && c.stage == StageFailed:
		m := moment{}
		if isEnded(plan, to) {
			m = notAfter(updated)
		}
		c.infer(StageInstalling, m, olmcore.CertaintyProven)
	case ends && c.stage != StageInstalling:
		if certainty := c.executed(to, plan); certainty != "" {
			c.infer(StageInstalling, started, certainty)
		} else {
			c.gap(gapNoExecutionEvidence, "the plan is "+string(to)+" without a trace of having been installed")
		}
	case to == StageInstalling && relation.HasFailed(plan) &&
		(c.stage != StageFailed || !c.installedAt.IsZero() && updated.After(c.installedAt)): // it has failed once more
		c.infer(StageInstalling, started, olmcore.CertaintyProven)
		c.retried(plan)
	}
}

// fillApproval adds StageRequiresApproval where the plan must have waited for it.
func (c *chain) fillApproval(plan *v1alpha1.InstallPlan) {
	certainty := olmcore.CertaintyAssumed
	switch {
	case plan.Spec.Approval != v1alpha1.ApprovalManual:
		if plan.Generation >= 2 {
			c.gap(gapApprovalUnknown, "the plan's spec was edited, perhaps its approval mode")
		}
		return
	case !plan.Spec.Approved:
		c.gap(gapOutOfBandEdit, "the plan ran although it is not approved")
	case plan.Generation == 1:
		return // born approved
	case plan.Generation >= 2:
		certainty = olmcore.CertaintyInferred
	}
	c.infer(StageRequiresApproval, notBefore(plan.CreationTimestamp.Time), certainty)
}

// executed says how certain it is that the plan passed StageInstalling on its way to its end; empty for not.
func (c *chain) executed(to Stage, plan *v1alpha1.InstallPlan) olmcore.Certainty {
	start, end := plan.Status.StartTime, isEnded(plan, to)
	from := c.at.Truncate(time.Second)
	if c.at.IsZero() {
		from = plan.CreationTimestamp.Time
	}
	switch {
	case start != nil && (end && !relation.InstalledAt(plan).Before(from) || !start.Time.Before(from)):
		return olmcore.CertaintyProven
	case start != nil || end:
		return olmcore.CertaintyInferred
	}
	return ""
}

// again looks for a round trip that ended where it began.
func (c *chain) again(at Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) {
	updated := relation.InstalledAt(plan)
	if !c.knows || !updated.After(c.installedAt) || c.installedAt.IsZero() && at != StageInstalling {
		return
	}
	switch {
	case at == StageInstalling && relation.HasFailed(plan):
		c.retried(plan)
		c.end(at, plan, seenAt)
	case at == StageFailed && isEnded(plan, at):
		c.infer(StageInstalling, notAfter(updated), olmcore.CertaintyProven)
		c.end(at, plan, seenAt)
		c.gap(gapAtLeastOnce, "the plan was tried and failed again at least once")
	case at == StageComplete && isEnded(plan, at):
		c.gap(gapOutOfBandEdit, "no controller runs a complete plan again")
		c.gap(gapAtLeastOnce, "the plan ran again at least once")
		c.infer(StageInstalling, notAfter(updated), olmcore.CertaintyProven).OutOfBand = true
		c.end(at, plan, seenAt)
	}
}

// retried adds the failure that an Installing plan still carries.
func (c *chain) retried(plan *v1alpha1.InstallPlan) {
	c.step(StageFailed, exactly(relation.InstalledAt(plan)), olmcore.CertaintyProven, conditionOf(StageFailed, plan))
	c.gap(gapAtLeastOnce, "the plan failed and was tried again at least once")
}
