// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Stage is the phase of the InstallPlan that a Subscription references. It also has values for a missing reference, a
// missing InstallPlan and a stale cache.
type Stage string

// Stages. The first eight are the states of Graph. StageUnverified and StageUnknown mean that the state is not known.
const (
	// StageNoPlan means that the Subscription references no InstallPlan.
	StageNoPlan Stage = "NoPlan"
	// StageNotYetReconciled means that the InstallPlan has no phase yet.
	StageNotYetReconciled Stage = "NotYetReconciled"
	// StagePlanning means that the InstallPlan has the phase Planning. Only old OLM releases set this phase.
	StagePlanning Stage = "Planning"
	// StageRequiresApproval means that the InstallPlan waits for its approval.
	StageRequiresApproval Stage = "RequiresApproval"
	// StageInstalling means that the steps of the InstallPlan are being applied.
	StageInstalling Stage = "Installing"
	// StageComplete means that all steps of the InstallPlan were applied.
	StageComplete Stage = "Complete"
	// StageFailed means that the InstallPlan failed.
	StageFailed Stage = "Failed"
	// StageMissing means that the InstallPlan was deleted.
	StageMissing Stage = "Missing"
	// StageUnverified means that the InstallPlan is not visible, or that its visible version seems to be older than a
	// known version. The cause may be a stale cache.
	StageUnverified Stage = "Unverified"
	// StageUnknown means that the InstallPlan has an unknown phase.
	StageUnknown Stage = "Unknown"
)

// TransitionType is the type of the Transitions between stages.
const TransitionType = "InstallPlan"

// Graph contains the edges between stages that a controller takes. Every stage can also change to StageMissing (the
// InstallPlan is deleted) and StageNoPlan (the reference is cleared, or names another InstallPlan). Every other edge is
// out of band: a user edited a status.
var Graph = olmcore.Graph[Stage]{
	{From: StageNoPlan, To: StageNotYetReconciled, By: "created"},
	{From: StageNotYetReconciled, To: StagePlanning, By: "old releases only"},
	{From: StageNotYetReconciled, To: StageRequiresApproval, By: "approval Manual"},
	{From: StageNotYetReconciled, To: StageInstalling, By: "approval Automatic"},
	{From: StageNotYetReconciled, To: StageFailed, By: "superseded"},
	{From: StagePlanning, To: StageRequiresApproval, By: "approval Manual"},
	{From: StagePlanning, To: StageInstalling, By: "approval Automatic"},
	{From: StagePlanning, To: StageFailed, By: "superseded"},
	{From: StageRequiresApproval, To: StageInstalling, By: "approved"},
	{From: StageRequiresApproval, To: StageFailed, By: "superseded"},
	{From: StageInstalling, To: StageComplete, By: "all steps are done"},
	{From: StageInstalling, To: StageFailed, By: "a step failed"},
	{From: StageFailed, To: StageInstalling, By: "retry"},
}

// CanReach reports whether an InstallPlan can get from one stage to another along edges of Graph. It follows the cycle
// between Failed and Installing once.
func CanReach(from, to Stage) bool {
	if to == StageMissing || to == StageNoPlan {
		return true
	}
	for _, e := range Graph {
		switch {
		case e.From != from:
		case e.To == to:
			return true
		case from == StageFailed && Graph.Allows(e.To, to):
			return true
		case from != StageFailed && CanReach(e.To, to):
			return true
		}
	}
	return false
}

// StageOf returns the stage of an existing InstallPlan. It returns StageUnknown if the phase is unknown.
func StageOf(p *v1alpha1.InstallPlan) Stage {
	switch phase := p.Status.Phase; phase {
	case v1alpha1.InstallPlanPhaseNone:
		return StageNotYetReconciled
	case v1alpha1.InstallPlanPhasePlanning, v1alpha1.InstallPlanPhaseRequiresApproval, v1alpha1.InstallPlanPhaseInstalling,
		v1alpha1.InstallPlanPhaseComplete, v1alpha1.InstallPlanPhaseFailed:
		return Stage(phase)
	}
	return StageUnknown
}

// Condition returns the condition that shows a stage. It returns the zero condition for NoPlan, Complete, Unverified
// and Unknown, because no condition shows these stages. plan is nil if the InstallPlan is not visible.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, CheckInstallPlanStatus and
// InstallPlanNotFound. Differs: OLM treats an unknown phase as installed, and this library does not change the
// conditions for it. If the InstallPlan has no failure reason, this library uses InstallPlanFailed.
func Condition(s Stage, plan *v1alpha1.InstallPlan) v1alpha1.SubscriptionCondition {
	c := v1alpha1.SubscriptionCondition{Status: corev1.ConditionTrue}
	switch s {
	case StageNotYetReconciled:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.InstallPlanNotYetReconciled
	case StagePlanning, StageRequiresApproval, StageInstalling:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, string(s)
	case StageFailed:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanFailed, relation.FailureReason(plan)
	case StageMissing:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.ReferencedInstallPlanNotFound
		plan = nil
	default:
		return v1alpha1.SubscriptionCondition{}
	}
	if plan != nil {
		c.Message = relation.Message(plan)
	}
	return c
}

// ShownStage returns the stage that the conditions of a Subscription show, and the time of the transition to that
// stage. The stage is empty if the conditions show none. If several InstallPlan conditions are True, ShownStage uses
// the one with the latest transition. If the times are equal, Missing is preferred to Failed, and Failed to Pending.
func ShownStage(conditions []v1alpha1.SubscriptionCondition) (Stage, time.Time) {
	var best *v1alpha1.SubscriptionCondition
	var since time.Time
	bestRank := -1
	for i := range conditions {
		c := &conditions[i]
		rank, at := slices.Index(relation.PlanConditions, c.Type), relation.Time(c.LastTransitionTime)
		if rank < 0 || c.Status != corev1.ConditionTrue {
			continue
		}
		if best == nil || cmp.Or(at.Compare(since), cmp.Compare(rank, bestRank)) > 0 {
			best, bestRank = c, rank
			since = at
		}
	}
	if best == nil {
		return "", since
	}
	return stageShownBy(best), since
}

func stageShownBy(c *v1alpha1.SubscriptionCondition) Stage {
	switch {
	case c.Type == v1alpha1.SubscriptionInstallPlanMissing:
		return StageMissing
	case c.Type == v1alpha1.SubscriptionInstallPlanFailed:
		return StageFailed
	case c.Reason == v1alpha1.InstallPlanNotYetReconciled:
		return StageNotYetReconciled
	}
	switch s := Stage(c.Reason); s {
	case StagePlanning, StageRequiresApproval, StageInstalling:
		return s
	}
	return StageUnknown
}
