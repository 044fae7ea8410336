// SPDX-License-Identifier: Apache-2.0

// Package stage says what the observations prove of the InstallPlan that one
// Subscription refers to: its listed version, the versions that a watch delivered
// ([Window]), what is remembered ([History]) and what the conditions of the
// Subscription show ([Shown]).
//
// [InstallPlans.Look] answers which version of the plan counts and in which stage it is,
// [InstallPlans.Publish] which stage the conditions show, and [InstallPlans.Report] which
// transitions led there. Each takes the memory as it is and returns it as it will be.
package stage

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Stage is a Subscription's view of its InstallPlan's phase.
type Stage string

// Stages. The first eight are the states of the Graph; the last two are what an
// observation may be instead of a state.
const (
	NoPlan           Stage = "NoPlan"
	NotYetReconciled Stage = "NotYetReconciled"
	Planning         Stage = "Planning"
	RequiresApproval Stage = "RequiresApproval"
	Installing       Stage = "Installing"
	Complete         Stage = "Complete"
	Failed           Stage = "Failed"
	Missing          Stage = "Missing"
	Unverified       Stage = "Unverified"
	Unknown          Stage = "Unknown"
)

// Graph has the edges that a controller takes. Every stage can also go to Missing
// (the plan is deleted) and to NoPlan (the reference is cleared or moves on). All else
// is out of band: the status was edited.
var Graph = olmcore.Graph[Stage]{
	{From: NoPlan, To: NotYetReconciled, By: "created"},
	{From: NotYetReconciled, To: Planning, By: "old releases only"},
	{From: NotYetReconciled, To: RequiresApproval, By: "approval Manual"},
	{From: NotYetReconciled, To: Installing, By: "approval Automatic"},
	{From: NotYetReconciled, To: Failed, By: "superseded"},
	{From: Planning, To: RequiresApproval, By: "approval Manual"},
	{From: Planning, To: Installing, By: "approval Automatic"},
	{From: Planning, To: Failed, By: "superseded"},
	{From: RequiresApproval, To: Installing, By: "approved"},
	{From: RequiresApproval, To: Failed, By: "superseded"},
	{From: Installing, To: Complete, By: "all steps are done"},
	{From: Installing, To: Failed, By: "a step failed"},
	{From: Failed, To: Installing, By: "retry"},
}

// Reachable reports whether a controller can take a plan from one stage to another,
// in any number of steps. The one cycle, Failed and Installing, is followed once.
func Reachable(from, to Stage) bool {
	if to == Missing || to == NoPlan {
		return true
	}
	for _, e := range Graph {
		switch {
		case e.From != from:
		case e.To == to, from != Failed && Reachable(e.To, to), from == Failed && Graph.Allows(e.To, to):
			return true
		}
	}
	return false
}

var byPhase = map[v1alpha1.InstallPlanPhase]Stage{
	v1alpha1.InstallPlanPhaseNone:             NotYetReconciled,
	v1alpha1.InstallPlanPhasePlanning:         Planning,
	v1alpha1.InstallPlanPhaseRequiresApproval: RequiresApproval,
	v1alpha1.InstallPlanPhaseInstalling:       Installing,
	v1alpha1.InstallPlanPhaseComplete:         Complete,
	v1alpha1.InstallPlanPhaseFailed:           Failed,
}

// Of returns the stage of a plan that exists; Unknown for a phase that is not known.
func Of(p *v1alpha1.InstallPlan) Stage {
	if s, known := byPhase[p.Status.Phase]; known {
		return s
	}
	return Unknown
}

// recordable reports whether a stage may stand in a History.
func recordable(s Stage) bool {
	return s == NoPlan || s == Missing || s == Unknown || slices.ContainsFunc(Graph, func(e olmcore.Edge[Stage]) bool { return e.To == s })
}

// Condition is the condition of a Subscription that shows a stage. The zero Condition
// is none.
type Condition struct {
	Type            v1alpha1.SubscriptionConditionType
	Reason, Message string
}

// ConditionOf returns the condition that shows a stage; none for NoPlan, Complete,
// Unverified and Unknown. plan is nil when it is not visible; its message is part of the
// condition.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// CheckInstallPlanStatus and InstallPlanNotFound. Differs: an unknown phase keeps what is
// published instead of counting as installed; an empty failure reason becomes
// InstallPlanFailed.
func ConditionOf(s Stage, plan *v1alpha1.InstallPlan) Condition {
	var c Condition
	switch s {
	case NotYetReconciled:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.InstallPlanNotYetReconciled
	case Planning, RequiresApproval, Installing:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, string(s)
	case Failed:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanFailed, FailureReason(plan)
	case Missing:
		return Condition{Type: v1alpha1.SubscriptionInstallPlanMissing, Reason: v1alpha1.ReferencedInstallPlanNotFound}
	default:
		return c
	}
	if plan != nil {
		c.Message = Message(plan)
	}
	return c
}

// rank orders the conditions about a plan: of several with one time the highest counts.
var rank = map[v1alpha1.SubscriptionConditionType]int{
	v1alpha1.SubscriptionInstallPlanPending: 1,
	v1alpha1.SubscriptionInstallPlanFailed:  2,
	v1alpha1.SubscriptionInstallPlanMissing: 3,
}

// IsAboutPlan reports whether a condition type shows the stage of a plan.
func IsAboutPlan(t v1alpha1.SubscriptionConditionType) bool { return rank[t] > 0 }

// Shown reads the stage that the conditions of a Subscription show, and since when; ok is
// false when they show none. The newest of several wins, then Missing, Failed, Pending.
func Shown(conditions []v1alpha1.SubscriptionCondition) (s Stage, since time.Time, ok bool) {
	var best *v1alpha1.SubscriptionCondition
	for i := range conditions {
		c := &conditions[i]
		if !IsAboutPlan(c.Type) || c.Status != corev1.ConditionTrue {
			continue
		}
		if best == nil || IsEarlier(best.LastTransitionTime, c.LastTransitionTime) ||
			rank[c.Type] > rank[best.Type] && !IsEarlier(c.LastTransitionTime, best.LastTransitionTime) {
			best = c
		}
	}
	if best == nil {
		return "", since, false
	}
	if best.LastTransitionTime != nil {
		since = best.LastTransitionTime.Time
	}
	switch {
	case best.Type == v1alpha1.SubscriptionInstallPlanMissing:
		return Missing, since, true
	case best.Type == v1alpha1.SubscriptionInstallPlanFailed:
		return Failed, since, true
	case best.Reason == v1alpha1.InstallPlanNotYetReconciled:
		return NotYetReconciled, since, true
	}
	switch s := Stage(best.Reason); s {
	case Planning, RequiresApproval, Installing:
		return s, since, true
	}
	return Unknown, since, true
}

// IsEarlier compares transition times; no time is earlier than any.
func IsEarlier(a, b *metav1.Time) bool { return !b.IsZero() && (a.IsZero() || a.Time.Before(b.Time)) }

// Reasons that package subscription documents.
const (
	ReasonRefInvalid          = "RefInvalid"
	ReasonRefUIDMismatch      = "RefUIDMismatch"
	ReasonUnknownPhase        = "UnknownPhase"
	ReasonPlanUnverified      = "InstallPlanUnverified"
	ReasonSuspectObservation  = "SuspectObservation"
	ReasonConditionWithoutRef = "ConditionWithoutRef"
	ReasonPlanMessage         = "InstallPlanMessage"
	ReasonInstallPlanComplete = "InstallPlanComplete"
	ReasonPlanReplaced        = "PlanReplaced"
	ReasonPlanRestored        = "PlanRestored"
	ReasonReferenceCleared    = "InstallPlanReferenceCleared"
)

// Transition is the type of the transitions between stages.
const Transition = "InstallPlan"

// Kinds of gaps: the first word of the message of a Diagnostic with the reason
// olmcore.ReasonHistoryGap.
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
