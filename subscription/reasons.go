// SPDX-License-Identifier: Apache-2.0

package subscription

import "github.com/olmcore/olm/subscription/internal/planhistory"

// Reasons of the condition ResolutionFailed. OLM writes all of them except ReasonOperatorGroupCount.
const (
	// ReasonConstraintsNotSatisfiable means that the Subscriptions, the installed operators and the catalogs contradict
	// each other. Change one of them. The message names them.
	ReasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	// ReasonErrorPreventedResolution means that an error prevented the resolution. Read the message. The resolution is
	// retried.
	ReasonErrorPreventedResolution = "ErrorPreventedResolution"
)

// Reasons of the conditions BundleUnpacking and BundleUnpackFailed, as OLM writes them.
const (
	// ReasonUnpackingInProgress means that bundle images are being unpacked. Wait. The message says if an image cannot be
	// pulled.
	ReasonUnpackingInProgress = "UnpackingInProgress"
	// ReasonBundleUnpackFailed means that a bundle image could not be unpacked. The message names the bundle and the
	// cause, and says when it is retried.
	ReasonBundleUnpackFailed = "BundleUnpackFailed"
	// ReasonErrorPreventedUnpacking means that a bundle cannot be unpacked or installed. Correct the bundle, or remove
	// the cause that the message names. A Diagnostic with this reason means that the unpacking is retried.
	ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"
	// ReasonEnsureInstallPlanFailed means that the InstallPlan could not be written. The write is retried.
	ReasonEnsureInstallPlanFailed = "EnsureInstallPlanFailed"
)

// Reasons of Transitions that no condition has.
const (
	// ReasonInstallPlanComplete means that the InstallPlan is complete. Nothing to do.
	ReasonInstallPlanComplete = planhistory.ReasonInstallPlanComplete
	// ReasonPlanReplaced means that the Subscription now references another InstallPlan. Nothing to do.
	ReasonPlanReplaced = planhistory.ReasonPlanReplaced
	// ReasonPlanRestored means that an InstallPlan that was reported as missing exists again. Nothing to do.
	ReasonPlanRestored = planhistory.ReasonPlanRestored
	// ReasonReferenceCleared means that the Subscription no longer references an InstallPlan. Nothing to do, because the
	// namespace is resolved again.
	ReasonReferenceCleared = planhistory.ReasonReferenceCleared
)

// Reasons of actions.
const (
	// ReasonStatusObserved means that the status is changed to what was observed.
	ReasonStatusObserved = "StatusObserved"
	// ReasonReferenceWritten means that the Subscription references the InstallPlan that was created for a resolution.
	ReasonReferenceWritten = "InstallPlanReferenceWritten"
	// ReasonPlanAdopted means that the Subscription references the InstallPlan whose step created it.
	ReasonPlanAdopted = "InstallPlanAdopted"
	// ReasonInstalledFollowed means that the Subscription follows a version that its InstallPlan installed and that no
	// Subscription followed.
	ReasonInstalledFollowed = "InstalledFollowed"
	// ReasonReplacementFollowed means that the Subscription follows the version that replaced its own, which the
	// InstallPlan of another Subscription installed.
	ReasonReplacementFollowed = "ReplacementFollowed"
	// ReasonSubscriptionDeleted means that a Subscription is being deleted. InstallPlans that no other Subscription needs
	// are deleted, too.
	ReasonSubscriptionDeleted = "SubscriptionDeleted"
)

// Reasons of Diagnostics. Each comment says what the reason means and what the user should do.
const (
	// ReasonInvalidSpec means that the Subscription has no spec, or lacks package, source or source namespace. Package
	// audit also reports an unknown approval. Correct the spec.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonRefInvalid means that status.installPlanRef cannot name an InstallPlan of this Subscription. Clear it.
	ReasonRefInvalid = planhistory.ReasonRefInvalid
	// ReasonRefUIDMismatch means that another InstallPlan has the referenced name, for example after a restore. It is
	// referenced now. Nothing to do.
	ReasonRefUIDMismatch = planhistory.ReasonRefUIDMismatch
	// ReasonRefMirrorMismatch means that status.installplan differed from status.installPlanRef. It is rewritten. Nothing
	// to do.
	ReasonRefMirrorMismatch = "RefMirrorMismatch"
	// ReasonConditionWithoutRef means that a condition about an InstallPlan is removed, because none is referenced.
	// Nothing to do.
	ReasonConditionWithoutRef = "ConditionWithoutRef"
	// ReasonUnknownPhase means that the phase of the InstallPlan is unknown, so the conditions stay as they are. Upgrade
	// this library, or correct the phase.
	ReasonUnknownPhase = planhistory.ReasonUnknownPhase
	// ReasonPlanUnverified means that the referenced InstallPlan is not visible, perhaps because a cache is stale. It is
	// looked up again before it is reported as missing.
	ReasonPlanUnverified = planhistory.ReasonPlanUnverified
	// ReasonSuspectObservation means that the InstallPlan seems to have returned to an earlier stage, perhaps because a
	// cache is stale. It is looked up again.
	ReasonSuspectObservation = planhistory.ReasonSuspectObservation
	// ReasonCopiedCSVReferenced means that the Subscription names a CSV that was copied from another namespace, which
	// installs nothing here. Remove the original CSV, or wait until the operator is installed in this namespace.
	ReasonCopiedCSVReferenced = "CopiedCSVReferenced"
	// ReasonCSVNotSucceeded means that the CSV exists but has not succeeded. AtLatestKnown only means that it exists.
	// Read the status of the CSV.
	ReasonCSVNotSucceeded = "CSVNotSucceeded"
	// ReasonWedgedUpgradePending means that the installed version was deleted, so the operator is not upgraded any more.
	// Delete the InstallPlan. If that is gone, too, create the Subscription again, or set Config.ReinstallMissingCSV.
	ReasonWedgedUpgradePending = "WedgedUpgradePending"
	// ReasonFailedPlanWedge means that the InstallPlan failed and the namespace does not fail forward. Remove the cause
	// that the InstallPlan states. If it stays Failed, delete it and the ClusterServiceVersions that it left Pending.
	ReasonFailedPlanWedge = "FailedPlanWedge"
	// ReasonGeneratedByDangling means that olm.generated-by names an InstallPlan that does not exist. Nothing to do,
	// because the namespace is resolved.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonGeneratedByStale means that olm.generated-by names an InstallPlan that cannot install anything any more.
	// Remove the annotation.
	ReasonGeneratedByStale = "GeneratedByStale"
	// ReasonStaleResolution means that the resolution was computed from other Subscriptions. It is not used, and a new one
	// is requested. Nothing to do.
	ReasonStaleResolution = "StaleResolution"
	// ReasonResolutionFailed means that the namespace could not be resolved. The condition ResolutionFailed of its
	// Subscriptions contains the message. Read it.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonCatalogsChanged means that catalogs were created, were deleted, or changed their health since the last write.
	// Nothing to do.
	ReasonCatalogsChanged = "CatalogsChanged"
	// ReasonPlanMessage means that the InstallPlan has a new message. Read it.
	ReasonPlanMessage = planhistory.ReasonPlanMessage
	// ReasonOperatorGroupCount means that the namespace has no OperatorGroup or more than one. It needs exactly one.
	// Create it, or delete the others. The condition ResolutionFailed has this reason, too.
	ReasonOperatorGroupCount = "OperatorGroupCount"
	// ReasonCatalogProbeError means that a catalog could not be probed, so its last known health counts. The probe is
	// retried.
	ReasonCatalogProbeError = "CatalogProbeError"
	// ReasonDeprecationUnknown means that the catalog no longer lists the installed version, so the conditions about its
	// deprecation may be out of date. Nothing to do. Assess and package audit always report it. Reconcile reports it only
	// when it writes the status.
	ReasonDeprecationUnknown = "DeprecationUnknown"
	// ReasonSharedInstalledCSV means that several Subscriptions have installed one version. The spec.config of the oldest
	// one is used. Delete the others.
	ReasonSharedInstalledCSV = "SharedInstalledCSV"
	// ReasonDeletionGivenUp means that InstallPlans of a deleted Subscription could not be deleted in time. Delete them.
	ReasonDeletionGivenUp = "DeletionGivenUp"
	// ReasonObservationIgnored means that Observations belong to other namespaces. They are not used. Pass each
	// Observation with the Input of its own namespace.
	ReasonObservationIgnored = "ObservationIgnored"
	// ReasonHistoryInvalid means that a History names an unknown stage. It is not used. Delete the stored History.
	ReasonHistoryInvalid = planhistory.ReasonHistoryInvalid
)

// Reasons of a ResolveRequest.
const (
	// ResolveUnanswered means that no resolution was passed.
	ResolveUnanswered = "Unanswered"
	// ResolveStale means that the resolution was computed from other Subscriptions.
	ResolveStale = "StaleResolution"
	// ResolveRetry means that the last resolution failed and is retried.
	ResolveRetry = "Retry"
	// ResolvePlanGone means that the InstallPlan of the resolution does not exist any more.
	ResolvePlanGone = "InstallPlanGone"
)
