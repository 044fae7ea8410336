// SPDX-License-Identifier: Apache-2.0

package subscription

import "github.com/olmcore/olm/subscription/internal/stage"

// Stage is a Subscription's view of its InstallPlan's phase.
type Stage = stage.Stage

// Stages. The first eight are the states of Graph; the last two are what an
// observation may be instead of a state.
const (
	// StageNoPlan: the Subscription refers to no plan.
	StageNoPlan = stage.NoPlan
	// StageNotYetReconciled: the plan has no phase yet.
	StageNotYetReconciled = stage.NotYetReconciled
	// StagePlanning: a phase of old plans, not produced any more.
	StagePlanning = stage.Planning
	// StageRequiresApproval: the plan waits for its approval.
	StageRequiresApproval = stage.RequiresApproval
	// StageInstalling: the plan's steps are being applied.
	StageInstalling = stage.Installing
	// StageComplete: the plan is done.
	StageComplete = stage.Complete
	// StageFailed: the plan failed.
	StageFailed = stage.Failed
	// StageMissing: the plan was deleted.
	StageMissing = stage.Missing
	// StageUnverified: the plan is not visible or looks out of date; it is not known
	// yet whether that is so.
	StageUnverified = stage.Unverified
	// StageUnknown: the plan's phase is none that is known.
	StageUnknown = stage.Unknown
)

// Graph has the edges that a controller takes between stages. Every stage can also go to
// StageMissing and StageNoPlan. All else is out of band: a status was edited.
var Graph = stage.Graph

// Types of the Transitions that this package reports, besides those of the
// conditions themselves (ResolutionFailed, BundleUnpackFailed,
// CatalogSourcesUnhealthy ...), whose From and To are the condition's status:
// empty where there is none.
const (
	// TransitionInstallPlan: From and To are Stages of the plan that the
	// Subscription refers to; Reason and Message are those of the InstallPlan
	// condition that shows the stage.
	TransitionInstallPlan = stage.Transition
	// TransitionState: From and To are values of status.state.
	TransitionState = "State"
)
