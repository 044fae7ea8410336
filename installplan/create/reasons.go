// SPDX-License-Identifier: Apache-2.0

package create

import "github.com/olmcore/olm/installplan/internal/report"

// Reasons of actions. A Plan that joins an existing plan also writes with installplan.ReasonRelationRepaired and
// installplan.ReasonManualOwner.
const (
	// ReasonPlanNeeded: a resolution has no plan yet. Nothing to do for the user.
	ReasonPlanNeeded = "PlanNeeded"
	// ReasonPlanReady: every Subscription that the plan changes refers to it, so its steps are written to its status.
	// Nothing to do for the user.
	ReasonPlanReady = "PlanReady"
)

// Reasons of diagnostics.
const (
	// ReasonStaleResolution: the resolution was made for other Subscriptions than those that exist now. The caller
	// resolves again.
	ReasonStaleResolution = "StaleResolution"
	// ReasonBundleNotUnpacked: an operator's bundle is known by its image alone. The caller unpacks it; see package
	// unpack.
	ReasonBundleNotUnpacked = report.BundleNotUnpacked
	// ReasonBundleInvalid: an operator's bundle cannot be installed; the message says why. The author of the bundle
	// corrects it.
	ReasonBundleInvalid = report.BundleInvalid
	// ReasonPreviousPlanFailed: a plan of the same content failed, and another would fail the same way. The user
	// removes the cause that the plan states, or deletes it.
	ReasonPreviousPlanFailed = "PreviousPlanFailed"
	// ReasonPlanTooLarge: the plan would not fit into one object of the API server. The message names the largest
	// steps; the author makes them smaller or serves the bundle as an image.
	ReasonPlanTooLarge = "PlanTooLarge"
	// ReasonManualBecauseOf: the plan needs approval because of a Subscription that it does not change. The user
	// approves it, or gives that Subscription a namespace of its own.
	ReasonManualBecauseOf = "ManualBecauseOf"
	// ReasonLabelImpossible: a package's name gives no valid label key, so the component label is missing. The user
	// finds the plan by its owners.
	ReasonLabelImpossible = "LabelImpossible"
	// ReasonPlanNotVisible: a Subscription refers to the plan that is needed and the plan is not there, or the plan is
	// complete and its versions are not there. Plan waits for it, then makes it again. Nothing to do for the user.
	ReasonPlanNotVisible = "PlanNotVisible"
	// ReasonReferencesAwaited: the plan's steps are not written yet, because a Subscription that it changes does not
	// refer to it. Nothing to do for the user.
	ReasonReferencesAwaited = "ReferencesAwaited"
)
