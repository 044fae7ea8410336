// SPDX-License-Identifier: Apache-2.0

package subscription

import "github.com/olmcore/olm/subscription/internal/planhistory"

// Reasons of the condition ResolutionFailed. OLM writes all of them except ReasonOperatorGroupCount.
const (
	// ReasonConstraintsNotSatisfiable means that the Subscriptions, the installed operators and the catalogs contradict
	// each other. Change an object that the message names.
	ReasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	// ReasonErrorPreventedResolution means that an error prevented the resolution. The message contains the error. The
	// resolution is retried.
	ReasonErrorPreventedResolution = "ErrorPreventedResolution"
)

// Reasons of the conditions BundleUnpacking and BundleUnpackFailed, as OLM writes them.
const (
	// ReasonUnpackingInProgress means that bundle images are being unpacked. The message reports an image that cannot be
	// pulled. Wait until all bundle images are unpacked.
	ReasonUnpackingInProgress = "UnpackingInProgress"
	// ReasonBundleUnpackFailed means that a bundle image could not be unpacked. The message contains the bundle, the cause
	// and the time of the next attempt.
	ReasonBundleUnpackFailed = "BundleUnpackFailed"
	// ReasonErrorPreventedUnpacking means that a bundle cannot be unpacked or installed. Correct the bundle, or fix the
	// problem that the message reports. A Diagnostic with this reason means that the unpacking is retried.
	ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"
	// ReasonEnsureInstallPlanFailed means that the InstallPlan could not be written. The write is retried.
	ReasonEnsureInstallPlanFailed = "EnsureInstallPlanFailed"
)

// Reasons of Transitions that no condition has.
const (
	// ReasonInstallPlanComplete means that the InstallPlan is complete. There is nothing to do.
	ReasonInstallPlanComplete = planhistory.ReasonInstallPlanComplete
	// ReasonPlanReplaced means that the Subscription now references another InstallPlan. There is nothing to do.
	ReasonPlanReplaced = planhistory.ReasonPlanReplaced
	// ReasonPlanRestored means that an InstallPlan exists again after it was reported as missing. There is nothing to do.
	ReasonPlanRestored = planhistory.ReasonPlanRestored
	// ReasonReferenceCleared means that the Subscription no longer references an InstallPlan. The namespace is resolved
	// again, so there is nothing to do.
	ReasonReferenceCleared = planhistory.ReasonReferenceCleared
)

// Reasons of actions.
const (
	// ReasonStatusObserved means that the status is updated to the observed state.
	ReasonStatusObserved = "StatusObserved"
	// ReasonReferenceWritten means that the Subscription references the InstallPlan of its resolution.
	ReasonReferenceWritten = "InstallPlanReferenceWritten"
	// ReasonPlanAdopted means that a step of an InstallPlan created the Subscription, and the Subscription now references
	// that InstallPlan.
	ReasonPlanAdopted = "InstallPlanAdopted"
	// ReasonInstalledFollowed means that the InstallPlan of the Subscription installed a version that no Subscription
	// followed. The Subscription now follows that version.
	ReasonInstalledFollowed = "InstalledFollowed"
	// ReasonReplacementFollowed means that the InstallPlan of another Subscription installed a version that replaced the
	// version of this Subscription. The Subscription now follows the new version.
	ReasonReplacementFollowed = "ReplacementFollowed"
	// ReasonSubscriptionDeleted means that a Subscription is being deleted. Its InstallPlans are deleted, too, if no other
	// Subscription needs them.
	ReasonSubscriptionDeleted = "SubscriptionDeleted"
)

// Reasons of Diagnostics. Each comment says what the reason means and what the user should do.
const (
	// ReasonInvalidSpec means that the Subscription has no spec, or that the spec lacks the package, the source or the
	// source namespace. Package audit also reports an unknown approval. Correct the spec.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonRefInvalid means that status.installPlanRef names no InstallPlan of this namespace. Clear the reference.
	ReasonRefInvalid = planhistory.ReasonRefInvalid
	// ReasonRefUIDMismatch means that another InstallPlan has the referenced name, for example after a restore. The
	// Subscription now references that InstallPlan. There is nothing to do.
	ReasonRefUIDMismatch = planhistory.ReasonRefUIDMismatch
	// ReasonRefMirrorMismatch means that status.installplan differed from status.installPlanRef. It is written again.
	// There is nothing to do.
	ReasonRefMirrorMismatch = "RefMirrorMismatch"
	// ReasonConditionWithoutRef means that a condition about an InstallPlan is removed, because the Subscription
	// references no InstallPlan. There is nothing to do.
	ReasonConditionWithoutRef = "ConditionWithoutRef"
	// ReasonUnknownPhase means that the phase of the InstallPlan is unknown, so the conditions are not changed. Upgrade
	// this library, or correct the phase.
	ReasonUnknownPhase = planhistory.ReasonUnknownPhase
	// ReasonPlanUnverified means that the referenced InstallPlan is not visible, perhaps because of a stale cache. The
	// InstallPlan is read again until it is visible or is reported as missing.
	ReasonPlanUnverified = planhistory.ReasonPlanUnverified
	// ReasonSuspectObservation means that the InstallPlan seems to have returned to an earlier stage, perhaps because a
	// cache is stale. The InstallPlan is read again.
	ReasonSuspectObservation = planhistory.ReasonSuspectObservation
	// ReasonCopiedCSVReferenced means that the Subscription names a CSV that was copied from another namespace. A copied
	// CSV installs nothing in this namespace. Remove the original CSV, or wait until the operator is installed in this
	// namespace.
	ReasonCopiedCSVReferenced = "CopiedCSVReferenced"
	// ReasonCSVNotSucceeded means that the CSV exists but has not succeeded. The state AtLatestKnown means only that the
	// CSV exists. Read the status of the CSV.
	ReasonCSVNotSucceeded = "CSVNotSucceeded"
	// ReasonWedgedUpgradePending means that the installed version was deleted, so the operator is not upgraded any more.
	// Delete the InstallPlan. If the InstallPlan does not exist either, create the Subscription again, or set
	// Config.ReinstallMissingCSV.
	ReasonWedgedUpgradePending = "WedgedUpgradePending"
	// ReasonFailedPlanWedge means that the InstallPlan failed and the OperatorGroup does not allow upgrades after a
	// failure. Fix the problem that the InstallPlan reports. If the InstallPlan stays Failed, delete it, and delete its
	// ClusterServiceVersions in the phase Pending.
	ReasonFailedPlanWedge = "FailedPlanWedge"
	// ReasonGeneratedByDangling means that the annotation olm.generated-by names an InstallPlan that does not exist. The
	// namespace is resolved, so there is nothing to do.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonGeneratedByStale means that the annotation olm.generated-by names an InstallPlan that cannot install anything
	// any more. Remove the annotation.
	ReasonGeneratedByStale = "GeneratedByStale"
	// ReasonStaleResolution means that the resolution was computed from Subscriptions that have changed. The resolution is
	// not used, and a new one is requested. There is nothing to do.
	ReasonStaleResolution = "StaleResolution"
	// ReasonResolutionFailed means that the namespace could not be resolved. The condition ResolutionFailed of the
	// Subscriptions has the same message. Fix the problem that the message reports.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonCatalogsChanged means that a catalog was created, was deleted, or changed its health since the last write.
	// There is nothing to do.
	ReasonCatalogsChanged = "CatalogsChanged"
	// ReasonPlanMessage means that the InstallPlan has a new message. Read the message.
	ReasonPlanMessage = planhistory.ReasonPlanMessage
	// ReasonOperatorGroupCount means that the namespace has no OperatorGroup or more than one. Create an OperatorGroup, or
	// delete all but one. The condition ResolutionFailed also has this reason.
	ReasonOperatorGroupCount = "OperatorGroupCount"
	// ReasonCatalogProbeError means that the request to a registry failed. The last known health of the catalog is used,
	// and the request is retried.
	ReasonCatalogProbeError = "CatalogProbeError"
	// ReasonDeprecationUnknown means that the catalog no longer lists the installed version. The conditions about its
	// deprecation may be out of date. There is nothing to do. Assess and package audit always report this reason.
	// Reconcile reports it only when it writes the status.
	ReasonDeprecationUnknown = "DeprecationUnknown"
	// ReasonSharedInstalledCSV means that several Subscriptions have installed the same version. The spec.config of the
	// oldest Subscription is used. Delete the other Subscriptions.
	ReasonSharedInstalledCSV = "SharedInstalledCSV"
	// ReasonDeletionGivenUp means that the InstallPlans of a deleted Subscription could not be deleted in time. Delete the
	// InstallPlans.
	ReasonDeletionGivenUp = "DeletionGivenUp"
	// ReasonObservationIgnored means that Observations of other namespaces were passed. They are not used. Pass each
	// Observation with the Input of its own namespace.
	ReasonObservationIgnored = "ObservationIgnored"
	// ReasonHistoryInvalid means that a History names an unknown stage. The History is not used. Delete the stored
	// History.
	ReasonHistoryInvalid = planhistory.ReasonHistoryInvalid
)

// Reasons of a ResolveRequest.
const (
	// ResolveUnanswered means that Input.Resolution is nil.
	ResolveUnanswered = "Unanswered"
	// ResolveStale means that the resolution was computed from Subscriptions that have changed.
	ResolveStale = "StaleResolution"
	// ResolveRetry means that the last resolution failed and is retried.
	ResolveRetry = "Retry"
	// ResolvePlanGone means that the InstallPlan of the resolution does not exist any more.
	ResolvePlanGone = "InstallPlanGone"
)
