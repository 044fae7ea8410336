// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Stage is a Subscription's view of its InstallPlan's phase.
type Stage string

// Stages. The first eight are the states of Graph; the last two are what an observation may be instead of a state.
const (
	// StageNoPlan: the Subscription refers to no plan.
	StageNoPlan Stage = "NoPlan"
	// StageNotYetReconciled: the plan has no phase yet.
	StageNotYetReconciled Stage = "NotYetReconciled"
	// StagePlanning: a phase of old plans, not produced any more.
	StagePlanning Stage = "Planning"
	// StageRequiresApproval: the plan waits for its approval.
	StageRequiresApproval Stage = "RequiresApproval"
	// StageInstalling: the plan's steps are being applied.
	StageInstalling Stage = "Installing"
	// StageComplete: the plan is done.
	StageComplete Stage = "Complete"
	// StageFailed: the plan failed.
	StageFailed Stage = "Failed"
	// StageMissing: the plan was deleted.
	StageMissing Stage = "Missing"
	// StageUnverified: the plan is not visible or looks out of date; it is not known yet whether that is so.
	StageUnverified Stage = "Unverified"
	// StageUnknown: the plan's phase is none that is known.
	StageUnknown Stage = "Unknown"
)

// Graph has the edges that a controller takes between stages. Every stage can also go to StageMissing (the plan is
// deleted) and StageNoPlan (the reference is cleared or moves on). All else is out of band: a status was edited.
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

// Types of the Transitions that this package reports, besides those of the conditions themselves (ResolutionFailed,
// BundleUnpackFailed, CatalogSourcesUnhealthy ...), whose From and To are the condition's status: empty where there is
// none.
const (
	// TransitionInstallPlan: From and To are Stages of the plan that the Subscription refers to; Reason and Message are
	// those of the InstallPlan condition that shows the stage.
	TransitionInstallPlan = "InstallPlan"
	// TransitionState: From and To are values of status.state.
	TransitionState = "State"
)

// reachable reports whether a controller can take a plan from one stage to another, in any number of steps. The one
// cycle, Failed and Installing, is followed once.
func reachable(from, to Stage) bool {
	if to == StageMissing || to == StageNoPlan {
		return true
	}
	for _, e := range Graph {
		switch {
		case e.From != from:
		case e.To == to, from != StageFailed && reachable(e.To, to), from == StageFailed && Graph.Allows(e.To, to):
			return true
		}
	}
	return false
}

// stageOf returns the stage of a plan that exists; StageUnknown for a phase that is not known.
func stageOf(p *v1alpha1.InstallPlan) Stage {
	switch phase := p.Status.Phase; phase {
	case v1alpha1.InstallPlanPhaseNone:
		return StageNotYetReconciled
	case v1alpha1.InstallPlanPhasePlanning, v1alpha1.InstallPlanPhaseRequiresApproval, v1alpha1.InstallPlanPhaseInstalling,
		v1alpha1.InstallPlanPhaseComplete, v1alpha1.InstallPlanPhaseFailed:
		return Stage(phase)
	}
	return StageUnknown
}

// conditionOf returns the condition that shows a stage; the zero one for NoPlan, Complete, Unverified and Unknown. plan
// is nil when it is not visible; its message is part of the condition.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, CheckInstallPlanStatus and
// InstallPlanNotFound. Differs: an unknown phase keeps what is published instead of counting as installed; an empty
// failure reason becomes InstallPlanFailed.
func conditionOf(s Stage, plan *v1alpha1.InstallPlan) v1alpha1.SubscriptionCondition {
	c := v1alpha1.SubscriptionCondition{Status: corev1.ConditionTrue}
	switch s {
	case StageNotYetReconciled:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.InstallPlanNotYetReconciled
	case StagePlanning, StageRequiresApproval, StageInstalling:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, string(s)
	case StageFailed:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanFailed, relation.FailureReason(plan)
	case StageMissing:
		c.Type, c.Reason, plan = v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.ReferencedInstallPlanNotFound, nil
	default:
		return v1alpha1.SubscriptionCondition{}
	}
	if plan != nil {
		c.Message = relation.Message(plan)
	}
	return c
}

// shownStage reads the stage that the conditions of a Subscription show, and since when; it is empty when they show
// none. The newest of several wins, then Missing, Failed, Pending.
func shownStage(conditions []v1alpha1.SubscriptionCondition) (Stage, time.Time) {
	var best *v1alpha1.SubscriptionCondition
	rank, since := -1, time.Time{}
	for i := range conditions {
		c := &conditions[i]
		r, at := slices.Index(relation.PlanConditions, c.Type), relation.Time(c.LastTransitionTime)
		if r >= 0 && c.Status == corev1.ConditionTrue && (best == nil || cmp.Or(at.Compare(since), cmp.Compare(r, rank)) > 0) {
			best, rank, since = c, r, at
		}
	}
	switch {
	case best == nil:
		return "", since
	case best.Type == v1alpha1.SubscriptionInstallPlanMissing:
		return StageMissing, since
	case best.Type == v1alpha1.SubscriptionInstallPlanFailed:
		return StageFailed, since
	case best.Reason == v1alpha1.InstallPlanNotYetReconciled:
		return StageNotYetReconciled, since
	}
	switch s := Stage(best.Reason); s {
	case StagePlanning, StageRequiresApproval, StageInstalling:
		return s, since
	}
	return StageUnknown, since
}
