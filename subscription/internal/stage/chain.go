// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// What can never be known, whatever is recorded: edits that return to the same
// phase and leave startTime and conditions as they were; how many rounds of
// Failed and Installing passed between two observations (each changed
// lastUpdateTime proves one); when exactly approval was asked for or given; the
// last stage of a plan that was deleted or replaced unseen; the order of what
// happened within one second, beyond that of the graph; a plan that came and
// went without ever being referenced or observed; whether a Manual plan waited
// for its approval when that was given before the plan had any content.

// chain is a contiguous list of transitions of one Subscription's plan, from the
// stage that was known to the one that is observed.
type chain struct {
	target olmcore.Ref
	now    time.Time
	from   Stage
	// fromAt is the time of the stage from, zero when it is not known.
	fromAt time.Time
	// installedAt is the plan's last known Installed.lastUpdateTime; knows says
	// whether anything is known of it.
	installedAt time.Time
	knows       bool
	remembers   bool // the chain goes on where the last one ended
	superseded  bool // the plan will never be executed: it has no later stage

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

// step adds an edge.
func (c *chain) step(to Stage, m moment, certainty olmcore.Certainty, w Condition) *olmcore.Transition {
	if !m.at.IsZero() && m.at.Before(c.latest) {
		c.gap(gapClockSkew, "the time recorded for "+string(to)+" is before that of an earlier stage")
		m = moment{}
	}
	switch {
	case m.at.IsZero():
		m = moment{}
	case m.recorded && m.bound != olmcore.NotBefore:
		c.latest = m.at
		c.tighten(m.at)
	}
	t := olmcore.Transition{
		Target: c.target, Type: Transition, From: string(c.from), To: string(to),
		Status: metav1.ConditionFalse, Reason: w.Reason, Message: w.Message, Bound: m.bound, Certainty: certainty,
	}
	if w.Type != "" {
		t.Status = metav1.ConditionTrue
	}
	if !m.at.IsZero() {
		t.At = olmcore.Timestamp(m.at)
	}
	c.list = append(c.list, t)
	c.from = to
	return &c.list[len(c.list)-1]
}

// tighten lowers the times at which earlier stages of the plan were merely seen:
// they were entered before what is recorded of a later one.
func (c *chain) tighten(at time.Time) {
	for i := len(c.list) - 1; i >= 0 && c.list[i].Bound != olmcore.Exact && c.list[i].At.Time.After(at) && Stage(c.list[i].To) != NoPlan; i-- {
		c.list[i].At = olmcore.Timestamp(at)
	}
}

// gap reports what is not known. That something happened more often than can be
// known is no hole in the chain.
func (c *chain) gap(kind, why string) {
	severity := olmcore.Warning
	if kind == gapAtLeastOnce {
		severity = olmcore.Info
	}
	c.gaps = append(c.gaps, olmcore.Diagnostic{
		Severity: severity, Reason: olmcore.ReasonHistoryGap, Message: kind + ": " + why, Target: c.target.Unversioned(),
	})
}

// lastWords extends the chain by what has become of a plan that the Subscription
// does not follow any more, as far as it is newer than what is known.
func (c *chain) lastWords(left *v1alpha1.InstallPlan) {
	to := Of(left)
	switch {
	case to == c.from, to == Unknown, c.from == Unknown, c.from == Missing, !Reachable(c.from, to):
	case (to == Complete || to == Failed) && !InstalledAt(left).After(c.installedAt):
	default:
		c.reach(to, left, c.now)
	}
}

// replace ends the chain of an old plan: the Subscription follows another one.
func (c *chain) replace(reason string) {
	if c.from == NoPlan {
		return
	}
	if reason == ReasonPlanReplaced && c.from != Complete && c.from != Missing && !c.superseded {
		c.gap(gapReplacedPlan, "the end of the old plan, last seen as "+string(c.from)+", was not observed")
	}
	c.step(NoPlan, seen(c.now), olmcore.CertaintyObserved, Condition{Reason: reason})
	c.fromAt, c.installedAt, c.knows, c.remembers, c.superseded, c.latest = time.Time{}, time.Time{}, false, false, false, time.Time{}
}

// vanish adds the edge to Missing.
func (c *chain) vanish(proven bool) {
	switch c.from {
	case Missing:
		return
	case Complete, Failed:
	case Unknown:
		c.gap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
	default:
		c.gap(gapDeletedBeforeObserved, "the plan was deleted; its last stage after "+string(c.from)+" was not observed")
	}
	certainty := olmcore.CertaintyInferred
	if proven {
		certainty = olmcore.CertaintyObserved
	}
	c.step(Missing, seen(c.now), certainty, ConditionOf(Missing, nil))
}

// watch extends the chain by versions that a watch delivered.
func (c *chain) watch(window []Observation) {
	newest := int64(0)
	for _, o := range window {
		if g := o.Plan.Generation; g > 0 && g < newest {
			c.gap(gapClockSkew, "the observed generations go back, so the order of the observations is not known")
		}
		newest = max(newest, o.Plan.Generation)
		c.reach(Of(o.Plan), o.Plan, o.At)
	}
}

// reach extends the chain to an observed version of the plan, seen at the given
// time.
func (c *chain) reach(to Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) {
	switch {
	case c.from == to:
		c.again(to, plan, seenAt)
	case c.from == Missing:
		c.end(to, plan, seenAt).Reason = ReasonPlanRestored
	case c.from == Unknown:
		c.gap(gapUnknownPhase, "what the plan went through in an unknown phase is not known")
		c.end(to, plan, seenAt)
	case to == Unknown:
		c.end(to, plan, seenAt)
	case !Reachable(c.from, to):
		c.gap(gapOutOfBandEdit, "no controller takes a plan from "+string(c.from)+" to "+string(to))
		c.end(to, plan, seenAt).OutOfBand = true
	case to == Failed && isSuperseded(plan):
		c.end(to, plan, seenAt)
		c.superseded = true
	default:
		c.fill(to, plan)
		skips := (to == Complete || to == Failed) && c.from != Installing
		c.end(to, plan, seenAt).OutOfBand = skips
	}
	c.fromAt = olmcore.Timestamp(seenAt).Time
	if n := len(c.list); n > 0 && c.list[n-1].Bound == olmcore.Exact {
		c.fromAt = c.list[n-1].At.Time
	}
	c.installedAt, c.knows = InstalledAt(plan), true
}

// end adds the edge to an observed stage.
func (c *chain) end(to Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) *olmcore.Transition {
	w := ConditionOf(to, plan)
	switch to {
	case Complete:
		w.Reason = ReasonInstallPlanComplete
	case Unknown:
		w.Reason = string(plan.Status.Phase)
	}
	if w.Message == "" {
		w.Message = plan.Status.Message
	}
	m := seen(seenAt)
	fresh := c.from == NoPlan || c.from == NotYetReconciled || c.from == Planning || c.from == RequiresApproval
	switch {
	case c.from == Missing:
	case to == NotYetReconciled && c.from == NoPlan && !plan.CreationTimestamp.IsZero():
		m = exactly(plan.CreationTimestamp.Time)
	case to == RequiresApproval && fresh && !plan.CreationTimestamp.IsZero():
		m = notBefore(plan.CreationTimestamp.Time)
	case to == Installing && fresh && plan.Status.StartTime != nil:
		m = notAfter(plan.Status.StartTime.Time)
	case ended(plan, to) && !InstalledAt(plan).IsZero():
		m = exactly(InstalledAt(plan))
	}
	return c.step(to, m, olmcore.CertaintyObserved, w)
}

// fill adds the stages that lie between where the chain stands and an observed
// stage that a controller can have reached from there.
func (c *chain) fill(to Stage, plan *v1alpha1.InstallPlan) {
	if c.from == NoPlan && to != NotYetReconciled {
		c.fromAt = plan.CreationTimestamp.Time
		c.step(NotYetReconciled, exactly(plan.CreationTimestamp.Time), olmcore.CertaintyProven, ConditionOf(NotYetReconciled, nil))
	}
	ends := to == Complete || to == Failed
	if (ends || to == Installing) && (c.from == NotYetReconciled || c.from == Planning) {
		c.fillApproval(plan)
	}
	switch {
	case ends && c.from == Failed:
		m := moment{}
		if ended(plan, to) {
			m = notAfter(InstalledAt(plan))
		}
		c.step(Installing, m, olmcore.CertaintyProven, ConditionOf(Installing, nil))
	case ends && c.from != Installing:
		if certainty, ok := c.executed(to, plan); ok {
			c.step(Installing, startOf(plan), certainty, ConditionOf(Installing, nil))
		} else {
			c.gap(gapNoExecutionEvidence, "the plan is "+string(to)+" without a trace of having been installed")
		}
	case to == Installing && hasFailed(plan) &&
		(c.from != Failed || !c.installedAt.IsZero() && InstalledAt(plan).After(c.installedAt)): // it has failed once more
		c.step(Installing, startOf(plan), olmcore.CertaintyProven, ConditionOf(Installing, nil))
		c.retried(plan)
	}
}

// fillApproval adds RequiresApproval where the plan must have waited for it.
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
	c.step(RequiresApproval, notBefore(plan.CreationTimestamp.Time), certainty,
		ConditionOf(RequiresApproval, nil))
}

// executed says how certain it is that the plan passed Installing on its way to
// the end it is at.
func (c *chain) executed(to Stage, plan *v1alpha1.InstallPlan) (certainty olmcore.Certainty, ok bool) {
	start, end := plan.Status.StartTime, ended(plan, to)
	from := c.fromAt.Truncate(time.Second)
	if c.fromAt.IsZero() {
		from = plan.CreationTimestamp.Time
	}
	switch {
	case start != nil && (end && !InstalledAt(plan).Before(from) || !start.Time.Before(from)):
		return olmcore.CertaintyProven, true
	case start != nil || end:
		return olmcore.CertaintyInferred, true
	}
	return "", false
}

// again looks for a round trip that ended where it began.
func (c *chain) again(at Stage, plan *v1alpha1.InstallPlan, seenAt time.Time) {
	updated := InstalledAt(plan)
	if !c.knows || !updated.After(c.installedAt) || c.installedAt.IsZero() && at != Installing {
		return
	}
	switch {
	case at == Installing && hasFailed(plan):
		c.retried(plan)
		c.end(at, plan, seenAt)
	case at == Failed && ended(plan, at):
		c.step(Installing, notAfter(updated), olmcore.CertaintyProven, ConditionOf(Installing, nil))
		c.end(at, plan, seenAt)
		c.gap(gapAtLeastOnce, "the plan was tried and failed again at least once")
	case at == Complete && ended(plan, at):
		c.gap(gapOutOfBandEdit, "no controller runs a complete plan again")
		c.gap(gapAtLeastOnce, "the plan ran again at least once")
		c.step(Installing, notAfter(updated), olmcore.CertaintyProven, ConditionOf(Installing, nil)).OutOfBand = true
		c.end(at, plan, seenAt)
	}
}

// retried adds the failure that an Installing plan still carries.
func (c *chain) retried(plan *v1alpha1.InstallPlan) {
	w := ConditionOf(Failed, plan)
	c.step(Failed, exactly(InstalledAt(plan)), olmcore.CertaintyProven, w)
	c.gap(gapAtLeastOnce, "the plan failed and was tried again at least once")
}

func startOf(plan *v1alpha1.InstallPlan) moment {
	if plan.Status.StartTime == nil {
		return moment{}
	}
	return notAfter(plan.Status.StartTime.Time)
}
