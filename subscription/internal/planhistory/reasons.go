// SPDX-License-Identifier: Apache-2.0

package planhistory

// Reasons of Diagnostics and Transitions. Package subscription documents them.
const (
	ReasonRefInvalid          = "RefInvalid"
	ReasonRefUIDMismatch      = "RefUIDMismatch"
	ReasonUnknownPhase        = "UnknownPhase"
	ReasonPlanUnverified      = "InstallPlanUnverified"
	ReasonSuspectObservation  = "SuspectObservation"
	ReasonHistoryInvalid      = "HistoryInvalid"
	ReasonPlanMessage         = "InstallPlanMessage"
	ReasonInstallPlanComplete = "InstallPlanComplete"
	ReasonPlanReplaced        = "PlanReplaced"
	ReasonPlanRestored        = "PlanRestored"
	ReasonReferenceCleared    = "InstallPlanReferenceCleared"
)
