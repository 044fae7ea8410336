// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

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

// version is one version of an InstallPlan, in the stage in which it was observed.
type version struct {
	stage      Stage
	plan       *v1alpha1.InstallPlan
	observedAt time.Time
}

// event means that an InstallPlan entered a stage or, if gap is not empty, that something about its stages is not
// known.
type event struct {
	stage     Stage
	entered   moment
	certainty olmcore.Certainty
	condition v1alpha1.SubscriptionCondition // it shows the stage
	outOfBand bool                           // no controller does this
	// superseded means that the InstallPlan will never be executed.
	superseded bool

	gap, why string
}

// moment is the time at which a stage was entered.
type moment struct {
	at         time.Time // zero if it is not known
	bound      olmcore.Bound
	isRecorded bool // in the InstallPlan; false: the stage was only observed at that time
}

func exactly(t time.Time) moment   { return moment{t, olmcore.Exact, true} }
func notAfter(t time.Time) moment  { return moment{t, olmcore.NotAfter, true} }
func notBefore(t time.Time) moment { return moment{t, olmcore.NotBefore, true} }
func observedAt(t time.Time) moment {
	return moment{olmcore.Timestamp(t).Time, olmcore.NotAfter, false}
}

func unknown(gap, why string) event { return event{gap: gap, why: why} }

// inferred returns the event of a stage that was not observed.
func inferred(stage Stage, entered moment, certainty olmcore.Certainty) event {
	return event{stage: stage, entered: entered, certainty: certainty, condition: Condition(stage, nil)}
}

// observed returns the event of a stage that was observed after another one.
func observed(before Stage, v version) event {
	c := Condition(v.stage, v.plan)
	switch v.stage {
	case StageComplete:
		c.Reason = ReasonInstallPlanComplete
	case StageUnknown:
		c.Reason = string(v.plan.Status.Phase)
	}
	if c.Message == "" {
		c.Message = v.plan.Status.Message
	}
	return event{stage: v.stage, entered: enteredAt(before, v), certainty: olmcore.CertaintyObserved, condition: c}
}

// enteredAt returns when an observed stage was entered after another one, as exactly as the InstallPlan records it.
func enteredAt(before Stage, v version) moment {
	created, started := v.plan.CreationTimestamp.Time, relation.Time(v.plan.Status.StartTime)
	isFirstRun := isBeforeInstalling(before)
	switch {
	case before == StageMissing:
	case v.stage == StageNotYetReconciled && before == StageNoPlan && !created.IsZero():
		return exactly(created)
	case v.stage == StageRequiresApproval && isFirstRun && !created.IsZero():
		return notBefore(created)
	case v.stage == StageInstalling && isFirstRun && v.plan.Status.StartTime != nil:
		return notAfter(started)
	case recordsEnd(v.plan, v.stage) && !relation.InstalledAt(v.plan).IsZero():
		return exactly(relation.InstalledAt(v.plan))
	}
	return observedAt(v.observedAt)
}

func isBeforeApproval(s Stage) bool { return s == StageNotYetReconciled || s == StagePlanning }

func isBeforeInstalling(s Stage) bool {
	return s == StageNoPlan || isBeforeApproval(s) || s == StageRequiresApproval
}

// recordsEnd reports whether the Installed condition is the one that a controller writes when an InstallPlan enters
// StageComplete or StageFailed.
func recordsEnd(plan *v1alpha1.InstallPlan, s Stage) bool {
	switch s {
	case StageComplete:
		return relation.Installed(plan).Status == corev1.ConditionTrue
	case StageFailed:
		return relation.HasFailed(plan)
	}
	return false
}

// eventsUntil returns the events that lead from a position to a version of the same InstallPlan.
func eventsUntil(from position, v version) []event {
	switch {
	case from.stage == v.stage:
		return roundTrip(from, v)
	case from.stage == StageMissing:
		restored := observed(from.stage, v)
		restored.condition.Reason = ReasonPlanRestored
		return []event{restored}
	case from.stage == StageUnknown:
		return []event{
			unknown(gapUnknownPhase, "the stages of the InstallPlan during its unknown phase were not observed"), observed(from.stage, v),
		}
	case v.stage == StageUnknown:
		return []event{observed(from.stage, v)}
	case !CanReach(from.stage, v.stage):
		edited := observed(from.stage, v)
		edited.outOfBand = true
		return []event{
			unknown(gapOutOfBandEdit, "no controller moves an InstallPlan from "+string(from.stage)+" to "+string(v.stage)), edited,
		}
	case v.stage == StageFailed && relation.IsSuperseded(v.plan):
		superseded := observed(from.stage, v)
		superseded.superseded = true
		return []event{superseded}
	}
	events := stagesBetween(from, v)
	before := lastStage(events, from.stage)
	last := observed(before, v)
	last.outOfBand = relation.Over(v.plan) && before != StageInstalling
	return append(events, last)
}

// lastStage returns the stage after some events.
func lastStage(events []event, stage Stage) Stage {
	for _, e := range events {
		if e.gap == "" {
			stage = e.stage
		}
	}
	return stage
}

// stagesBetween returns the stages through which an InstallPlan must have gone between a position and a version.
func stagesBetween(from position, v version) []event {
	isOver := v.stage == StageComplete || v.stage == StageFailed
	var events []event
	stage, since := from.stage, from.since

	// 1. It was created.
	if stage == StageNoPlan && v.stage != StageNotYetReconciled {
		created := v.plan.CreationTimestamp.Time
		events = append(events, inferred(StageNotYetReconciled, exactly(created), olmcore.CertaintyProven))
		stage, since = StageNotYetReconciled, created
	}
	// 2. It was approved.
	if (isOver || v.stage == StageInstalling) && isBeforeApproval(stage) {
		events = append(events, approval(v.plan)...)
		stage = lastStage(events, stage)
	}
	// 3. It was installing, perhaps more than once.
	switch {
	case isOver && stage == StageFailed:
		return append(events, retry(v))
	case isOver && stage != StageInstalling:
		return append(events, installing(v, since))
	case v.stage == StageInstalling && hasFailedSince(stage, from.installedAt, v.plan):
		started := notAfter(relation.Time(v.plan.Status.StartTime))
		events = append(events, inferred(StageInstalling, started, olmcore.CertaintyProven))
		return append(events, failureAndRetry(v.plan)...)
	}
	return events
}

// approval returns StageRequiresApproval if an InstallPlan must have waited for its approval.
func approval(plan *v1alpha1.InstallPlan) []event {
	waited := func(c olmcore.Certainty) event {
		return inferred(StageRequiresApproval, notBefore(plan.CreationTimestamp.Time), c)
	}
	switch {
	case plan.Spec.Approval != v1alpha1.ApprovalManual && plan.Generation < 2:
		return nil
	case plan.Spec.Approval != v1alpha1.ApprovalManual:
		return []event{unknown(gapApprovalUnknown, "the spec of the InstallPlan was edited, possibly its approval")}
	case !plan.Spec.Approved:
		return []event{unknown(gapOutOfBandEdit, "the InstallPlan was executed although it is not approved"), waited(olmcore.CertaintyAssumed)}
	case plan.Generation == 1:
		return nil // it was created approved
	case plan.Generation >= 2:
		return []event{waited(olmcore.CertaintyInferred)}
	}
	return []event{waited(olmcore.CertaintyAssumed)}
}

// retry returns StageInstalling between a failure and the end of an InstallPlan.
func retry(v version) event {
	entered := moment{}
	if recordsEnd(v.plan, v.stage) {
		entered = notAfter(relation.InstalledAt(v.plan))
	}
	return inferred(StageInstalling, entered, olmcore.CertaintyProven)
}

// installing returns StageInstalling before the end of an InstallPlan, if it left a trace. since is when the stage
// before was entered.
func installing(v version, since time.Time) event {
	certainty := certaintyOfInstalling(v, since)
	if certainty == "" {
		return unknown(gapNoExecutionEvidence, "the InstallPlan is "+string(v.stage)+", but nothing shows that it was executed")
	}
	return inferred(StageInstalling, notAfter(relation.Time(v.plan.Status.StartTime)), certainty)
}

// certaintyOfInstalling returns how certain it is that an InstallPlan was Installing before it ended. It is empty if
// nothing shows it.
func certaintyOfInstalling(v version, since time.Time) olmcore.Certainty {
	start, hasEnd := v.plan.Status.StartTime, recordsEnd(v.plan, v.stage)
	from := since.Truncate(time.Second)
	if since.IsZero() {
		from = v.plan.CreationTimestamp.Time
	}
	switch {
	case start == nil && !hasEnd:
		return ""
	case start == nil:
		return olmcore.CertaintyInferred
	case !start.Time.Before(from) || hasEnd && !relation.InstalledAt(v.plan).Before(from):
		return olmcore.CertaintyProven
	}
	return olmcore.CertaintyInferred
}

// hasFailedSince reports whether an InstallPlan that is Installing has failed since a stage, in which its Installed
// condition had the known lastUpdateTime.
func hasFailedSince(stage Stage, known time.Time, plan *v1alpha1.InstallPlan) bool {
	if !relation.HasFailed(plan) {
		return false
	}
	return stage != StageFailed || !known.IsZero() && relation.InstalledAt(plan).After(known)
}

// failureAndRetry returns the failure that the Installed condition of an Installing InstallPlan still shows.
func failureAndRetry(plan *v1alpha1.InstallPlan) []event {
	failure := event{
		stage: StageFailed, entered: exactly(relation.InstalledAt(plan)), certainty: olmcore.CertaintyProven,
		condition: Condition(StageFailed, plan),
	}
	return []event{failure, unknown(gapAtLeastOnce, "the InstallPlan failed and was retried at least once")}
}

// roundTrip returns the events of an InstallPlan that left a stage and entered it again between two observations. A new
// lastUpdateTime of the Installed condition proves it.
func roundTrip(from position, v version) []event {
	installedAt := relation.InstalledAt(v.plan)
	if !from.knowsInstalledAt || !installedAt.After(from.installedAt) {
		return nil
	}
	if from.installedAt.IsZero() && v.stage != StageInstalling {
		return nil
	}
	again := inferred(StageInstalling, notAfter(installedAt), olmcore.CertaintyProven)
	switch {
	case v.stage == StageInstalling && relation.HasFailed(v.plan):
		return append(failureAndRetry(v.plan), observed(StageFailed, v))
	case v.stage == StageFailed && recordsEnd(v.plan, v.stage):
		return []event{
			again, observed(StageInstalling, v), unknown(gapAtLeastOnce, "the InstallPlan was retried and failed again at least once"),
		}
	case v.stage == StageComplete && recordsEnd(v.plan, v.stage):
		again.outOfBand = true
		return []event{
			unknown(gapOutOfBandEdit, "no controller executes a complete InstallPlan again"),
			unknown(gapAtLeastOnce, "the InstallPlan was executed again at least once"), again, observed(StageInstalling, v),
		}
	}
	return nil
}

// deletion returns the events of an InstallPlan that was deleted after a stage.
func deletion(before Stage, isObserved bool, now time.Time) []event {
	missing := inferred(StageMissing, observedAt(now), olmcore.CertaintyInferred)
	if isObserved {
		missing.certainty = olmcore.CertaintyObserved
	}
	switch before {
	case StageMissing:
		return nil
	case StageComplete, StageFailed:
		return []event{missing}
	case StageUnknown:
		return []event{unknown(gapUnknownPhase, "the stages of the InstallPlan during its unknown phase were not observed"), missing}
	}
	why := "the InstallPlan was deleted; its last stage after " + string(before) + " was not observed"
	return []event{unknown(gapDeletedBeforeObserved, why), missing}
}
