// SPDX-License-Identifier: Apache-2.0

package subscription

import "github.com/olmcore/olm/subscription/internal/planhistory"

// Reasons of the ResolutionFailed condition, as OLM writes them.
const (
	// ReasonConstraintsNotSatisfiable: the Subscriptions, the installed operators and the catalogs contradict each
	// other. Change one of them; the message says which.
	ReasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	// ReasonErrorPreventedResolution: something prevented a resolution. Read the message; it is tried again by itself.
	ReasonErrorPreventedResolution = "ErrorPreventedResolution"
)

// Reasons of the conditions BundleUnpacking and BundleUnpackFailed, as OLM writes them.
const (
	// ReasonUnpackingInProgress: bundle images are being unpacked. Wait; the message says when one cannot be pulled.
	ReasonUnpackingInProgress = "UnpackingInProgress"
	// ReasonBundleUnpackFailed: a bundle image could not be unpacked. The message says which, why, and when it is retried.
	ReasonBundleUnpackFailed = "BundleUnpackFailed"
	// ReasonErrorPreventedUnpacking means that a bundle cannot be unpacked or installed. Correct the bundle, or remove the cause that the
	// message names. A Diagnostic with this reason means that the unpacking is retried.
	ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"
	// ReasonEnsureInstallPlanFailed: the InstallPlan could not be written. It is tried again by itself.
	ReasonEnsureInstallPlanFailed = "EnsureInstallPlanFailed"
)

// Reasons of Transitions that no condition gives.
const (
	// ReasonInstallPlanComplete: the plan is done; nothing to do.
	ReasonInstallPlanComplete = planhistory.ReasonInstallPlanComplete
	// ReasonPlanReplaced: the Subscription follows another plan from here on; nothing to do.
	ReasonPlanReplaced = planhistory.ReasonPlanReplaced
	// ReasonPlanRestored: a plan reported as missing is there again; nothing to do.
	ReasonPlanRestored = planhistory.ReasonPlanRestored
	// ReasonReferenceCleared: the Subscription refers to no plan any more. Nothing to do, the namespace is resolved.
	ReasonReferenceCleared = planhistory.ReasonReferenceCleared
)

// Reasons of actions.
const (
	// ReasonStatusObserved: the status follows what was observed.
	ReasonStatusObserved = "StatusObserved"
	// ReasonReferenceWritten: the Subscription gets the plan that a resolution made for it.
	ReasonReferenceWritten = "InstallPlanReferenceWritten"
	// ReasonPlanAdopted: a generated Subscription gets the plan that generated it.
	ReasonPlanAdopted = "InstallPlanAdopted"
	// ReasonInstalledFollowed: the Subscription gets a version that its plan installed and that belonged to no Subscription.
	ReasonInstalledFollowed = "InstalledFollowed"
	// ReasonReplacementFollowed: the Subscription gets the version that replaced its own, brought by a plan for others.
	ReasonReplacementFollowed = "ReplacementFollowed"
	// ReasonSubscriptionDeleted: a Subscription is being deleted, and what only it wanted goes with it.
	ReasonSubscriptionDeleted = "SubscriptionDeleted"
)

// Reasons of Diagnostics. Each says what it means and what the user does.
const (
	// ReasonInvalidSpec: the Subscription has no spec, or lacks package, source or source namespace, or, which only
	// Audit reports, has an unknown approval. Complete or correct it.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonRefInvalid: status.installPlanRef names nothing that can be this Subscription's plan. Clear it.
	ReasonRefInvalid = planhistory.ReasonRefInvalid
	// ReasonRefUIDMismatch: another plan has the name now, e.g. after a restore, and is referred to. Nothing to do.
	ReasonRefUIDMismatch = planhistory.ReasonRefUIDMismatch
	// ReasonRefMirrorMismatch: status.installplan differed from status.installPlanRef and is rewritten. Nothing to do.
	ReasonRefMirrorMismatch = "RefMirrorMismatch"
	// ReasonConditionWithoutRef: an InstallPlan condition without a referenced plan is removed. Nothing to do.
	ReasonConditionWithoutRef = "ConditionWithoutRef"
	// ReasonUnknownPhase: the plan's phase is not known, so what is published stays. Upgrade this library or repair it.
	ReasonUnknownPhase = planhistory.ReasonUnknownPhase
	// ReasonPlanUnverified: the referenced plan is not visible, perhaps because a cache is stale; it is looked for
	// again before it is reported as missing.
	ReasonPlanUnverified = planhistory.ReasonPlanUnverified
	// ReasonSuspectObservation: the plan seems to have gone back, or a cache is stale; it is looked at again.
	ReasonSuspectObservation = planhistory.ReasonSuspectObservation
	// ReasonCopiedCSVReferenced: the CSV that the Subscription names is a copy of another namespace's, which satisfies
	// nothing here. Remove the copy's cause or wait for the real install.
	ReasonCopiedCSVReferenced = "CopiedCSVReferenced"
	// ReasonCSVNotSucceeded: AtLatestKnown only says that the CSV exists; it has not succeeded. Look at the CSV.
	ReasonCSVNotSucceeded = "CSVNotSucceeded"
	// ReasonWedgedUpgradePending: the version that the Subscription installed was removed, so no upgrade will ever come.
	// Delete the InstallPlan, or where it is gone too create the Subscription again; or set Config.ReinstallMissingCSV.
	ReasonWedgedUpgradePending = "WedgedUpgradePending"
	// ReasonFailedPlanWedge: the plan failed and the namespace does not fail forward. Remove the cause that the plan states; if the plan
	// stays Failed, delete it and the ClusterServiceVersions that it left Pending.
	ReasonFailedPlanWedge = "FailedPlanWedge"
	// ReasonGeneratedByDangling: olm.generated-by names a plan that is not there. Nothing to do: it is resolved.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonGeneratedByStale: olm.generated-by names a plan that can bring nothing any more. Remove the annotation.
	ReasonGeneratedByStale = "GeneratedByStale"
	// ReasonStaleResolution: the resolution was computed from other Subscriptions. It is not used and asked for again.
	ReasonStaleResolution = "StaleResolution"
	// ReasonResolutionFailed: the namespace could not be resolved, and its Subscriptions say so. Read the message.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonCatalogsChanged: since the last write catalogs came, went, or changed their health. Nothing to do.
	ReasonCatalogsChanged = "CatalogsChanged"
	// ReasonPlanMessage: the InstallPlan has something else to say than before. Read the message.
	ReasonPlanMessage = planhistory.ReasonPlanMessage
	// ReasonOperatorGroupCount: a namespace needs exactly one OperatorGroup. Create it, or delete the others.
	ReasonOperatorGroupCount = "OperatorGroupCount"
	// ReasonCatalogProbeError: a catalog could not be probed, so its last known health stands. It is probed again.
	ReasonCatalogProbeError = "CatalogProbeError"
	// ReasonDeprecationUnknown: the catalog does not list the installed version any more, so what is said of its
	// deprecation may be out of date. Nothing to do. Assess and package audit say so at any time, Reconcile beside writes.
	ReasonDeprecationUnknown = "DeprecationUnknown"
	// ReasonSharedInstalledCSV: several Subscriptions have one version; the oldest one's spec.config counts. Delete the others.
	ReasonSharedInstalledCSV = "SharedInstalledCSV"
	// ReasonDeletionGivenUp: InstallPlans of a deleted Subscription could not be deleted in time. Delete them.
	ReasonDeletionGivenUp = "DeletionGivenUp"
	// ReasonObservationIgnored: Observations of other namespaces are not used. Hand each to its own namespace.
	ReasonObservationIgnored = "ObservationIgnored"
	// ReasonHistoryInvalid: a History names a stage that does not exist and is not used. Drop what is stored.
	ReasonHistoryInvalid = planhistory.ReasonHistoryInvalid
)

// Reasons of a ResolveRequest.
const (
	// ResolveUnanswered: no resolution was handed in.
	ResolveUnanswered = "Unanswered"
	// ResolveStale: the resolution that was handed in looked at other Subscriptions.
	ResolveStale = "StaleResolution"
	// ResolveRetry: the last resolution failed and it is time to try again.
	ResolveRetry = "Retry"
	// ResolvePlanGone: the plan that was made for the resolution is gone.
	ResolvePlanGone = "InstallPlanGone"
)
