// SPDX-License-Identifier: Apache-2.0

package subscription

// Reasons of the ResolutionFailed condition, as OLM writes them.
const (
	// ReasonConstraintsNotSatisfiable: the Subscriptions, the installed operators
	// and the catalogs contradict each other. Change one of them; the message says
	// which.
	ReasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	// ReasonErrorPreventedResolution: something kept the namespace from being
	// resolved at all. Read the message; it is tried again by itself.
	ReasonErrorPreventedResolution = "ErrorPreventedResolution"
)

// Reasons of the conditions BundleUnpacking and BundleUnpackFailed, as OLM writes
// them.
const (
	// ReasonUnpackingInProgress: bundle images are being unpacked. Wait; the message
	// says when an image cannot be pulled.
	ReasonUnpackingInProgress = "UnpackingInProgress"
	// ReasonBundleUnpackFailed: a bundle image could not be unpacked. The message
	// says which, the usual causes, and when it is tried again.
	ReasonBundleUnpackFailed = "BundleUnpackFailed"
	// ReasonErrorPreventedUnpacking: nothing could be unpacked at all. Change what
	// the message names; as a Diagnostic it is tried again by itself.
	ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"
	// ReasonEnsureInstallPlanFailed: the InstallPlan could not be written. It is
	// tried again by itself.
	ReasonEnsureInstallPlanFailed = "EnsureInstallPlanFailed"
)

// reasonSuperseded is the reason of condition Installed of a plan that package
// installplan never executes, because a later one took its place.
const reasonSuperseded = "Superseded"

// conditionRetrying is the condition of a plan that failed of what passes, and that
// package installplan executes again by itself.
const conditionRetrying = "Retrying"

// Reasons of Transitions that no condition gives.
const (
	// ReasonInstallPlanComplete: the plan is done; nothing to do.
	ReasonInstallPlanComplete = "InstallPlanComplete"
	// ReasonPlanReplaced: the Subscription follows another plan from here on;
	// nothing to do.
	ReasonPlanReplaced = "PlanReplaced"
	// ReasonPlanRestored: a plan reported as missing is there again; nothing to do.
	ReasonPlanRestored = "PlanRestored"
	// ReasonReferenceCleared: the Subscription refers to no plan any more; nothing
	// to do, the namespace is resolved again.
	ReasonReferenceCleared = "InstallPlanReferenceCleared"
)

// Reasons of actions.
const (
	// ReasonStatusObserved: the status follows what was observed.
	ReasonStatusObserved = "StatusObserved"
	// ReasonReferenceWritten: the Subscription gets the plan that a resolution
	// made for it.
	ReasonReferenceWritten = "InstallPlanReferenceWritten"
	// ReasonPlanAdopted: a generated Subscription gets the plan that generated it.
	ReasonPlanAdopted = "InstallPlanAdopted"
	// ReasonReplacementFollowed: the Subscription gets the version that replaced its
	// own, which a plan that was not made for it brought.
	ReasonReplacementFollowed = "ReplacementFollowed"
	// ReasonComponentLabelStale: a Subscription carries the component label of a
	// package that it does not follow any more.
	ReasonComponentLabelStale = "ComponentLabelStale"
	// ReasonSubscriptionDeleted: a Subscription is being deleted, and what only it
	// wanted goes with it.
	ReasonSubscriptionDeleted = "SubscriptionDeleted"
	// ReasonOperatorMissing: something carries a component label whose Operator
	// object does not exist.
	ReasonOperatorMissing = "OperatorMissing"
	// ReasonRelationRepaired: what an audit found is put right.
	ReasonRelationRepaired = "RelationRepaired"
	// ReasonComponentLabelMissing: an object of an operator lacks the operator's
	// component label.
	ReasonComponentLabelMissing = "ComponentLabelMissing"
)

// Reasons of Diagnostics. Each says what it means and what the user does.
const (
	// ReasonInvalidSpec: the Subscription has no spec, or lacks package, source or
	// source namespace, or, which only Audit reports, has an unknown approval. Complete
	// or correct it.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonLabelKeyInvalid: package and namespace give no valid label key, so the
	// operator's objects stay unlabelled. Use another package name.
	ReasonLabelKeyInvalid = "LabelKeyInvalid"
	// ReasonRefInvalid: status.installPlanRef names nothing that can be this
	// Subscription's plan. Clear it.
	ReasonRefInvalid = "RefInvalid"
	// ReasonRefUIDMismatch: the plan was replaced by another of the same name, e.g.
	// by a restore; the reference follows it. Nothing to do.
	ReasonRefUIDMismatch = "RefUIDMismatch"
	// ReasonRefMirrorMismatch: status.installplan disagreed with
	// status.installPlanRef and was rewritten. Nothing to do.
	ReasonRefMirrorMismatch = "RefMirrorMismatch"
	// ReasonConditionWithoutRef: an InstallPlan condition was left although no plan
	// is referenced, and was removed. Nothing to do.
	ReasonConditionWithoutRef = "ConditionWithoutRef"
	// ReasonUnknownPhase: the plan's phase is none that is known, so what was
	// published stays. Upgrade this library or repair the plan's status.
	ReasonUnknownPhase = "UnknownPhase"
	// ReasonPlanUnverified: the referenced plan is not visible, perhaps because a
	// cache is behind; it is looked for again before it is reported as missing.
	ReasonPlanUnverified = "InstallPlanUnverified"
	// ReasonSuspectObservation: the plan seems to have gone back, which a stale
	// cache also looks like; it is looked at again before it is believed.
	ReasonSuspectObservation = "SuspectObservation"
	// ReasonCopiedCSVReferenced: the CSV that the Subscription names is a copy of
	// another namespace's, which satisfies nothing here. Remove the copy's cause or
	// wait for the real install.
	ReasonCopiedCSVReferenced = "CopiedCSVReferenced"
	// ReasonCSVNotSucceeded: AtLatestKnown only says that the CSV exists; it has
	// not succeeded. Look at the CSV.
	ReasonCSVNotSucceeded = "CSVNotSucceeded"
	// ReasonWedgedUpgradePending: the version that the Subscription installed was
	// removed, so no upgrade will ever come. Delete the InstallPlan, or where it is gone
	// too create the Subscription again; or set Config.ReinstallMissingCSV.
	ReasonWedgedUpgradePending = "WedgedUpgradePending"
	// ReasonFailedPlanWedge: the plan failed and the namespace does not fail
	// forward. Delete the InstallPlan to try again.
	ReasonFailedPlanWedge = "FailedPlanWedge"
	// ReasonGeneratedByDangling: olm.generated-by names a plan that is not there.
	// Nothing to do: the Subscription is resolved like any other.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonGeneratedByStale: olm.generated-by names a plan that can bring nothing
	// any more. Remove the annotation.
	ReasonGeneratedByStale = "GeneratedByStale"
	// ReasonStaleResolution: the resolution was computed from other Subscriptions
	// than are there now, and nothing of it is used. It is asked for again.
	ReasonStaleResolution = "StaleResolution"
	// ReasonResolutionFailed: the Subscriptions of the namespace are made to say
	// that it could not be resolved. Do what the message says.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonCatalogsChanged: catalogs came, went, or changed their health since the
	// Subscription was last written. Nothing to do.
	ReasonCatalogsChanged = "CatalogsChanged"
	// ReasonStageHeldBack: the conditions do not show the plan's newest stage yet,
	// so that each one stays visible for Config.ObservationWindow. Nothing to do.
	ReasonStageHeldBack = "StageHeldBack"
	// ReasonStageNotShown: the conditions left out stages, because they would have
	// been behind for longer than Config.MaxPublishLag. Nothing to do.
	ReasonStageNotShown = "StageNotShown"
	// ReasonPlanMessage: the InstallPlan has something else to say than before. Read
	// the message.
	ReasonPlanMessage = "InstallPlanMessage"
	// ReasonOperatorGroupCount: a namespace is resolved with exactly one
	// OperatorGroup. Create the missing one or delete the others.
	ReasonOperatorGroupCount = "OperatorGroupCount"
	// ReasonCatalogProbeError: a catalog could not be probed, so the health that was
	// last known of it stands. It is probed again.
	ReasonCatalogProbeError = "CatalogProbeError"
	// ReasonDeprecationUnknown: the catalog does not list the installed version any
	// more, so what is said of its deprecation may be out of date. Nothing to do.
	ReasonDeprecationUnknown = "DeprecationUnknown"
	// ReasonSharedInstalledCSV: several Subscriptions have installed the same version;
	// the oldest one's spec.config counts. Delete the others.
	ReasonSharedInstalledCSV = "SharedInstalledCSV"
	// ReasonOperatorRefsCut: an Operator object does not list all its components,
	// because there are too many. Select them by their label instead.
	ReasonOperatorRefsCut = "OperatorRefsCut"
	// ReasonDeletionGivenUp: InstallPlans of a deleted Subscription could not be
	// deleted in time, and the Subscription goes without. Delete the plans.
	ReasonDeletionGivenUp = "DeletionGivenUp"
	// ReasonObservationIgnored: Observations of other namespaces were handed in and are
	// not used. Hand each to its own namespace.
	ReasonObservationIgnored = "ObservationIgnored"
	// ReasonHistoryInvalid: a History names a stage that does not exist and is not
	// used. Drop what is stored.
	ReasonHistoryInvalid = "HistoryInvalid"
)

// Reasons of Findings, besides those Reasons of Diagnostics that Audit repeats.
const (
	// AuditRefMissingPlan: the referenced plan is not there. The reference is cleared, or the
	// condition InstallPlanMissing says so.
	AuditRefMissingPlan = "RefMissingPlan"
	// AuditRefWrongNamespace: status.installPlanRef names a plan of another namespace. Clear it.
	AuditRefWrongNamespace = "RefWrongNamespace"
	// AuditOwnerMissing: a plan lacks the owner reference to a Subscription that it is
	// for; deletion does not cascade until installplan's repair has run.
	AuditOwnerMissing = "OwnerMissing"
	// AuditOwnerStaleUID: a plan's owner reference names an earlier incarnation of a
	// Subscription that it is for. installplan repairs it.
	AuditOwnerStaleUID = "OwnerStaleUID"
	// AuditOwnerMalformed: an owner reference of a plan has wrong fields. installplan repairs it.
	AuditOwnerMalformed = "OwnerMalformed"
	// AuditOwnerDuplicate: a plan has two references to one owner. installplan repairs it.
	AuditOwnerDuplicate = "OwnerDuplicate"
	// AuditOwnerDangling: a plan is owned by a Subscription that is not there. Garbage
	// collection deals with it.
	AuditOwnerDangling = "OwnerDangling"
	// AuditLabelMissing: an object lacks the component label of its operator. The label is
	// added.
	AuditLabelMissing = "LabelMissing"
	// AuditLabelStale: a Subscription carries the label of its earlier package. The label is
	// removed.
	AuditLabelStale = "LabelStale"
	// AuditLabelKeyCollision: two packages with long names have one label key. Use shorter
	// names, or do not select by the label.
	AuditLabelKeyCollision = "LabelKeyCollision"
	// AuditAssociationDisagree: label and owner references of a plan name different
	// Subscriptions. Look which one the plan is for.
	AuditAssociationDisagree = "AssociationDisagree"
	// AuditGenerationMismatch: status.installPlanGeneration is behind the plan. It is raised.
	AuditGenerationMismatch = "GenerationMismatch"
	// AuditGenerationDuplicate: two plans have one generation, so their order is not known.
	// Nothing to do.
	AuditGenerationDuplicate = "GenerationDuplicate"
	// AuditContentDuplicate: two plans in progress bring the same versions. Delete the one that
	// no Subscription refers to.
	AuditContentDuplicate = "ContentDuplicate"
	// AuditStatuslessPlan: a plan was created and never given its steps. Delete it.
	AuditStatuslessPlan = "StatuslessPlan"
	// AuditSupersededPlan: a plan in progress brings only what is there already, or every
	// Subscription that it is for refers to a newer one. Delete it.
	AuditSupersededPlan = "SupersededPlan"
	// AuditOrphanPlan: nobody refers to a plan in progress or owns it. Delete it.
	AuditOrphanPlan = "OrphanPlan"
	// AuditStateContradiction: AtLatestKnown contradicts the CSVs that are there. The state is
	// written again.
	AuditStateContradiction = "StateContradiction"
	// AuditConditionContradiction: conditions contradict each other or the plan. They are
	// written again.
	AuditConditionContradiction = "ConditionContradiction"
	// AuditApprovalDrift: a plan waits for an approval that nobody asks for any more. Approve
	// or delete it. Or it runs, and by now somebody asks for approvals: that counts for the
	// next one.
	AuditApprovalDrift = "ApprovalDrift"
	// AuditApprovalForcedBy: an Automatic Subscription waits because another one of the namespace
	// is Manual. Approve the plan, or use another namespace.
	AuditApprovalForcedBy = "ApprovalForcedBy"
	// AuditSamePackage: two Subscriptions follow one package. Delete one.
	AuditSamePackage = "SamePackage"
)

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
