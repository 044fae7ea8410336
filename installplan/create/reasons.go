// SPDX-License-Identifier: Apache-2.0

package create

import "github.com/olmcore/olm/installplan/internal/reasons"

// Reasons of actions, with nothing to do for the user. If Plan reuses an existing plan, it also writes with
// installplan.ReasonRelationRepaired and installplan.ReasonManualOwner.
const (
	// ReasonPlanNeeded means that an InstallPlan is created for a resolution. Nothing to do.
	ReasonPlanNeeded = "PlanNeeded"
	// ReasonPlanReady means that every Subscription that the plan changes references it, so its steps are written to
	// its status. Nothing to do.
	ReasonPlanReady = "PlanReady"
)

// ReasonErrorPreventedUnpacking means that the bundle of a Subscription cannot be installed. Outcome.Refused and the
// condition BundleUnpackFailed have this reason, as in OLM. Ask the author to correct the bundle that the message
// names.
const ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"

// Reasons of diagnostics.
const (
	// ReasonStaleResolution means that the resolution was computed from Subscriptions that have changed since. The
	// caller resolves again. Nothing to do for the user.
	ReasonStaleResolution = "StaleResolution"
	// ReasonBundleNotUnpacked means that the image of a bundle must be unpacked before the plan is created. The caller
	// unpacks it with package unpack. Nothing to do for the user.
	ReasonBundleNotUnpacked = reasons.BundleNotUnpacked
	// ReasonBundleInvalid means that a bundle cannot be installed. The message names the object and the problem. The
	// Subscriptions report it in the condition BundleUnpackFailed with the reason ErrorPreventedUnpacking. Ask the
	// author to correct the bundle.
	ReasonBundleInvalid = reasons.BundleInvalid
	// ReasonPreviousPlanFailed means that a plan with the same content failed, and a new plan would fail in the same way.
	// Fix the problem that the message reports, or delete the failed plan.
	ReasonPreviousPlanFailed = "PreviousPlanFailed"
	// ReasonPlanTooLarge means that the InstallPlan would not fit into one object of the API server. The message
	// contains its size and the largest steps. The Subscriptions report it in the condition BundleUnpackFailed. Ask the
	// author to make the manifests smaller or to serve the bundle as an image.
	ReasonPlanTooLarge = "PlanTooLarge"
	// ReasonManualBecauseOf means that the plan needs approval because of a Subscription that the plan does not change.
	// Approve the plan, move that Subscription to another namespace, or set Config.SeparatePlans.
	ReasonManualBecauseOf = "ManualBecauseOf"
	// ReasonLabelImpossible means that the name of a package cannot be part of a label key, so the plan has no label for
	// the package. Find the plan by its owners instead.
	ReasonLabelImpossible = "LabelImpossible"
	// ReasonPlanNotVisible means that a Subscription references a plan with the same content that is not in the cache, or
	// a plan with the same content has just completed and its versions are not in the cache. The cache may be stale, so
	// Plan waits before it creates the plan again. Nothing to do for the user.
	ReasonPlanNotVisible = "PlanNotVisible"
	// ReasonPlansOfSetsAwaited means that a manager with Config.SeparatePlans created plans that install every version of
	// the resolution. This manager runs without SeparatePlans, and waits up to 5 minutes for these plans. Nothing to do
	// for the user.
	ReasonPlansOfSetsAwaited = "PlansOfSetsAwaited"
	// ReasonReferencesAwaited means that a Subscription that the plan changes does not reference the plan yet. The steps
	// of the plan are written once it does. Nothing to do for the user.
	ReasonReferencesAwaited = "ReferencesAwaited"
)
