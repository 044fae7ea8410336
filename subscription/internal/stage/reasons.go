// SPDX-License-Identifier: Apache-2.0

package stage

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
