// SPDX-License-Identifier: Apache-2.0

package create

import "github.com/olmcore/olm/installplan/internal/report"

// Reasons of actions, with nothing to do for the user. A Plan that joins an existing plan also writes with
// installplan.ReasonRelationRepaired and installplan.ReasonManualOwner.
const (
	// ReasonPlanNeeded: a resolution has no plan yet.
	ReasonPlanNeeded = "PlanNeeded"
	// ReasonPlanReady: every Subscription that the plan changes refers to it, so its steps are written to its status.
	ReasonPlanReady = "PlanReady"
)

// ReasonErrorPreventedUnpacking means that the bundle of a Subscription cannot be installed. Outcome.Refused has this reason, and so
// has the condition BundleUnpackFailed, as in OLM. The author corrects the bundle that the message names.
const ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"

// Reasons of diagnostics.
const (
	// ReasonStaleResolution: the resolution was made for other Subscriptions than exist now. The caller resolves again.
	ReasonStaleResolution = "StaleResolution"
	// ReasonBundleNotUnpacked: a bundle is known by its image alone. The caller unpacks it; see package unpack.
	ReasonBundleNotUnpacked = report.BundleNotUnpacked
	// ReasonBundleInvalid means that a bundle cannot be installed. The message names the object and the problem, and the Subscriptions
	// have it as the condition BundleUnpackFailed with the reason ErrorPreventedUnpacking. The author of the bundle corrects it.
	ReasonBundleInvalid = report.BundleInvalid
	// ReasonPreviousPlanFailed: a plan of the same content failed, and another would fail the same way. The user
	// removes the cause that the plan states, or deletes it.
	ReasonPreviousPlanFailed = "PreviousPlanFailed"
	// ReasonPlanTooLarge means that the InstallPlan would not fit into one object of the API server. The message names its size and the
	// largest steps, and the Subscriptions have it as the condition BundleUnpackFailed. The author makes the steps smaller or
	// serves the bundle as an image.
	ReasonPlanTooLarge = "PlanTooLarge"
	// ReasonManualBecauseOf: the plan needs approval because of a Subscription that it does not change. The user
	// approves it, gives that Subscription a namespace of its own, or sets Config.SeparatePlans.
	ReasonManualBecauseOf = "ManualBecauseOf"
	// ReasonLabelImpossible: a package's name gives no label key. The user finds the plan by its owners.
	ReasonLabelImpossible = "LabelImpossible"
	// ReasonPlanNotVisible: a Subscription refers to the plan that is needed, or that is complete, and the plan or its
	// versions do not exist. Plan waits for them, then makes the plan again. Nothing to do for the user.
	ReasonPlanNotVisible = "PlanNotVisible"
	// ReasonPlansOfSetsAwaited: another manager, with Config.SeparatePlans, created plans that already install every version. This
	// manager runs without the option and waits up to 5 minutes for them. Nothing to do for the user.
	ReasonPlansOfSetsAwaited = "PlansOfSetsAwaited"
	// ReasonReferencesAwaited: a Subscription that the plan changes does not refer to it, so its steps are not written
	// yet. Nothing to do for the user.
	ReasonReferencesAwaited = "ReferencesAwaited"
)
