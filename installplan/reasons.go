// SPDX-License-Identifier: Apache-2.0

package installplan

import "github.com/operator-framework/api/pkg/operators/v1alpha1"

// Finalizer holds a plan until what it leaves behind is cleaned up; see
// Reconcile.
const Finalizer = "operators.coreos.com/installplan-cleanup"

// AnnotationGeneratedBy is on a Subscription that a plan made: the plan's name.
const AnnotationGeneratedBy = "olm.generated-by"

// ConditionRetrying is True on a plan whose steps are tried again although the
// time since status.startTime is over: its transition time is from when the time
// counts. On a plan that is Failed it says that the cause passes by itself: the
// plan starts again Config.TransientTimeout after its transition time, as long as
// a Subscription refers to it.
const ConditionRetrying v1alpha1.InstallPlanConditionType = "Retrying"

// Reasons of actions.
const (
	// ReasonPlanNeeded: a resolution has no plan yet. Nothing to do for the user.
	ReasonPlanNeeded = "PlanNeeded"
	// ReasonPlanReady: every Subscription that the plan changes refers to it, so
	// its steps are written to its status. Nothing to do for the user.
	ReasonPlanReady = "PlanReady"
	// ReasonRelationRepaired: an owner reference, component label or finalizer of
	// the plan was missing or stale. Nothing to do for the user.
	ReasonRelationRepaired = "RelationRepaired"
	// ReasonManualOwner: a Subscription that owns the plan wants manual approval,
	// so the plan waits for one. The user approves the plan.
	ReasonManualOwner = "ManualOwner"
	// ReasonPlanProgressed: the plan's phase, steps, conditions or message follow
	// what was observed. Nothing to do for the user.
	ReasonPlanProgressed = "PlanProgressed"
	// ReasonPlanDone: every step of the plan is applied, so that it needs its finalizer
	// no more. Nothing to do for the user.
	ReasonPlanDone = "PlanDone"
	// ReasonStepAbsent: the object of a step does not exist. Nothing to do for
	// the user.
	ReasonStepAbsent = "StepAbsent"
	// ReasonStepDiffers: the object of a step exists and is not what the step
	// describes. Nothing to do for the user.
	ReasonStepDiffers = "StepDiffers"
	// ReasonStepImmutable: the object of a step differs in a field that cannot
	// change; it is deleted and created anew. Nothing to do for the user.
	ReasonStepImmutable = "StepImmutable"
	// ReasonPlanDeleted: the plan is being deleted and this is what it left
	// behind. Nothing to do for the user.
	ReasonPlanDeleted = "PlanDeleted"
)

// Reasons of diagnostics of Reconcile.
const (
	// ReasonNamespaceTerminating: the plan's namespace is being deleted, so
	// nothing is installed there. Nothing to do for the user.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonPlanWithoutStatus: the plan never got its steps, so it will not run.
	// The user deletes it unless a resolution still needs it.
	ReasonPlanWithoutStatus = "PlanWithoutStatus"
	// ReasonPlanPhaseUnknown: the plan's phase is empty or none that exists. The
	// user sets it to RequiresApproval or deletes the plan.
	ReasonPlanPhaseUnknown = "PlanPhaseUnknown"
	// ReasonInstallCheckFailed: no OperatorGroup, or more than one, manages the
	// namespace, or its ServiceAccount is missing. The user repairs the
	// OperatorGroup; the message says what is wrong.
	ReasonInstallCheckFailed = "InstallCheckFailed"
	// ReasonStepRefused: a step cannot be applied, so no step of the plan is. The
	// message says what stands in the way; the user removes it.
	ReasonStepRefused = "StepRefused"
	// ReasonStepFailed: the API server refused a write. The message is the API
	// server's; the user grants the permission or repairs the object.
	ReasonStepFailed = "StepFailed"
	// ReasonStepNotVisible: the object of a step was created, or existed, and what
	// was read does not show it, so it is created again. When that stays so, the
	// adapter reads from a cache that leaves it out: the user labels the object
	// olm.managed=true or deletes it.
	ReasonStepNotVisible = "StepNotVisible"
	// ReasonApprovalWithdrawnTooLate: approval was taken back after the first
	// step, which stops nothing. The user deletes what is not wanted.
	ReasonApprovalWithdrawnTooLate = "ApprovalWithdrawnTooLate"
	// ReasonPendingPlanCouldBeAutomatic: the plan waits for approval although no
	// Subscription that owns it asks for that any more. The user approves it.
	ReasonPendingPlanCouldBeAutomatic = "PendingPlanCouldBeAutomatic"
	// ReasonSuperseded: no Subscription refers to the plan, and those that it was made
	// for refer to later ones, so it is not executed, whether it is approved or not.
	// Its condition Installed has this reason and names the latest. The user approves
	// that one.
	ReasonSuperseded = "Superseded"
	// ReasonUnmanagedObjectUpdated: a step describes an object that was there
	// before and that nobody handed to OLM; it gets the content, but no owner, so
	// that removing the operator leaves it. Nothing to do for the user.
	ReasonUnmanagedObjectUpdated = "UnmanagedObjectUpdated"
	// ReasonAppliedContentAltered: the API server stored something else than what
	// was written, which counts as applied. The user looks at admission webhooks.
	ReasonAppliedContentAltered = "AppliedContentAltered"
	// ReasonSharedObject: another plan wrote the object of a step after this one,
	// with a content or an owner of its own. It stays as that one wants it. The
	// authors of the bundles give their objects names of their own.
	ReasonSharedObject = "SharedObject"
	// ReasonCSVContentDiffers: a ClusterServiceVersion of the step's name exists
	// with another content and is kept. The user deletes it to get the plan's.
	ReasonCSVContentDiffers = "CSVContentDiffers"
	// ReasonNewerCRDKept: a newer version of the operator owns the
	// CustomResourceDefinition, so the plan's older one is not written. Nothing to
	// do for the user.
	ReasonNewerCRDKept = "NewerCRDKept"
	// ReasonExistingResourceInvalid: a custom resource is invalid under the old
	// and under the new schema. The user repairs it.
	ReasonExistingResourceInvalid = "ExistingResourceInvalid"
	// ReasonOptionalStepSkipped: the API of an optional step is not served, so the
	// step is left out. Nothing to do for the user.
	ReasonOptionalStepSkipped = "OptionalStepSkipped"
	// ReasonStepNameDiffers: a step and its manifest name different objects; the
	// manifest wins. The author of the bundle corrects it.
	ReasonStepNameDiffers = "StepNameDiffers"
	// ReasonExtraDocumentsIgnored: a manifest holds several YAML documents, of
	// which the first one counts. The author of the bundle splits it.
	ReasonExtraDocumentsIgnored = "ExtraDocumentsIgnored"
	// ReasonObjectIgnored: an entry of an input list is nil. The adapter is at
	// fault.
	ReasonObjectIgnored = "ObjectIgnored"
	// ReasonLabelImpossible: a package's name gives no valid label key, so the
	// component label is missing. The user finds the plan by its owners.
	ReasonLabelImpossible = "LabelImpossible"
	// ReasonCleanupForbidden: the controller may not remove what the deleted plan
	// left behind. The user grants it update on Subscriptions.
	ReasonCleanupForbidden = "CleanupForbidden"
	// ReasonCleanupIncomplete: the plan's clean-up did not end in time and the
	// plan was let go. The message names what is left; the user removes it.
	ReasonCleanupIncomplete = "CleanupIncomplete"
	// ReasonTruncated: a list was too long and was cut, or there were more custom
	// resources than are judged. Where the message is about the latter, the user
	// looks for resources that the new schema refuses.
	ReasonTruncated = "Truncated"
)

// Reasons of diagnostics of Create and StepsFromBundle.
const (
	// ReasonStaleResolution: the resolution was made for other Subscriptions than
	// those that exist now. The caller resolves again.
	ReasonStaleResolution = "StaleResolution"
	// ReasonBundleNotUnpacked: an operator's bundle is known by its image alone.
	// The caller unpacks it and hands its objects in.
	ReasonBundleNotUnpacked = "BundleNotUnpacked"
	// ReasonBundleInvalid: an operator's bundle cannot be installed; the message
	// says why. The author of the bundle corrects it.
	ReasonBundleInvalid = "BundleInvalid"
	// ReasonPreviousPlanFailed: a plan of the same content failed, and another
	// would fail the same way. The user removes the cause that the plan states, or
	// deletes it.
	ReasonPreviousPlanFailed = "PreviousPlanFailed"
	// ReasonPlanTooLarge: the plan would not fit into one object of the API
	// server. The message names the largest steps; the author makes them smaller
	// or serves the bundle as an image.
	ReasonPlanTooLarge = "PlanTooLarge"
	// ReasonManualBecauseOf: the plan needs approval because of a Subscription
	// that it does not change. The user approves it, or gives that Subscription a
	// namespace of its own.
	ReasonManualBecauseOf = "ManualBecauseOf"
	// ReasonPlanNotVisible: a Subscription refers to the plan that is needed and
	// the plan is not there, or the plan is complete and its versions are not
	// there. It is waited for, then made again. Nothing to do for the user.
	ReasonPlanNotVisible = "PlanNotVisible"
	// ReasonReferencesAwaited: the plan's steps are not written yet, because a
	// Subscription that it changes does not refer to it. Nothing to do for the
	// user.
	ReasonReferencesAwaited = "ReferencesAwaited"
)

// Reasons of actions and diagnostics of Sweep. Where Sweep repairs what it finds,
// there is nothing to do for the user.
const (
	// ReasonNotRead: objects of a kind were not read, so that nothing is said or done
	// about them. The user lets the Reader read the kind that is named.
	ReasonNotRead = "NotRead"
	// ReasonPlanHistory: the namespace has more plans than are kept, and this is
	// one of the oldest that nobody needs. Nothing to do for the user.
	ReasonPlanHistory = "PlanHistory"
	// ReasonTooManyActivePlans: more plans wait or run than are kept as history.
	// The user approves or deletes those that wait.
	ReasonTooManyActivePlans = "TooManyActivePlans"
	// ReasonOwnerReferenceMissing: a Subscription belongs to a plan that it does
	// not own; it is made an owner.
	ReasonOwnerReferenceMissing = "OwnerReferenceMissing"
	// ReasonOwnerReferenceStale: a plan is owned by an earlier Subscription of the
	// same name; the reference is replaced once the new one belongs to the plan.
	ReasonOwnerReferenceStale = "OwnerReferenceStale"
	// ReasonPlanWithoutOwner: no Subscription owns the plan. What its labels prove
	// is added; where nothing is proven, the user deletes the plan.
	ReasonPlanWithoutOwner = "PlanWithoutOwner"
	// ReasonComponentLabelMissing: a plan lacks the label of a package that it
	// installs; it is added.
	ReasonComponentLabelMissing = "ComponentLabelMissing"
	// ReasonComponentLabelUnused: a plan carries the label of a package that no
	// Subscription follows. It is history; the user removes it if it disturbs.
	ReasonComponentLabelUnused = "ComponentLabelUnused"
	// ReasonPlanReferenceDangling: a Subscription refers to a plan that does not
	// exist. Package subscription resolves again.
	ReasonPlanReferenceDangling = "PlanReferenceDangling"
	// ReasonGeneratedByDangling: a Subscription names a plan that made it and does
	// not exist; the name is removed, as OLM waits for that plan.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonPlansCollide: two plans have one generation, or two active plans one
	// content. The user deletes the one that no Subscription refers to.
	ReasonPlansCollide = "PlansCollide"
	// ReasonGeneratedOwnerMissing: a Subscription that a plan made does not own
	// it; it is made an owner.
	ReasonGeneratedOwnerMissing = "GeneratedOwnerMissing"
	// ReasonOwnerReferenceDuplicate: a plan names one owner twice; it is named
	// once.
	ReasonOwnerReferenceDuplicate = "OwnerReferenceDuplicate"
	// ReasonCurrentCSVNotInPlan: a Subscription's currentCSV is none of the
	// versions of the plan that it refers to. Package subscription decides.
	ReasonCurrentCSVNotInPlan = "CurrentCSVNotInPlan"
	// ReasonUnpackedBundleUnused: no plan refers to an unpacked bundle; it is
	// deleted.
	ReasonUnpackedBundleUnused = "UnpackedBundleUnused"
	// ReasonStepObjectAbsent: the plan that a Subscription refers to is Complete
	// and an object that it installed is gone. The user deletes the
	// ClusterServiceVersion and the Subscription to install it anew.
	ReasonStepObjectAbsent = "StepObjectAbsent"
)

// Reasons of actions, diagnostics and conditions of Unpack and LoadBundle.
const (
	// ReasonUnpackObjectAbsent: an object that unpacks a bundle is missing. Nothing
	// to do for the user.
	ReasonUnpackObjectAbsent = "UnpackObjectAbsent"
	// ReasonUnpackObjectDiffers: an object that unpacks a bundle is not as it
	// should be. Nothing to do for the user.
	ReasonUnpackObjectDiffers = "UnpackObjectDiffers"
	// ReasonUnpackRetried: the bundle could not be unpacked some time ago and is
	// tried again. Nothing to do for the user.
	ReasonUnpackRetried = "UnpackRetried"
	// ReasonUnpackHistory: a Job of an earlier try is deleted. Nothing to do for
	// the user.
	ReasonUnpackHistory = "UnpackHistory"
	// ReasonUnpackSettingInvalid: an annotation of the OperatorGroup is no
	// duration, or the namespace has not exactly one OperatorGroup; the default
	// counts. The user corrects it.
	ReasonUnpackSettingInvalid = "UnpackSettingInvalid"
	// ReasonUnpackImageUnavailable: the bundle's image cannot be pulled. The user
	// checks its name, the mirrors and the CatalogSource's secrets.
	ReasonUnpackImageUnavailable = "UnpackImageUnavailable"
	// ReasonUnpackNameTaken: somebody else's object has the name of one that
	// unpacks the bundle. The user removes it.
	ReasonUnpackNameTaken = "UnpackNameTaken"
	// ReasonBundleEmpty: the Job ended well and its ConfigMap holds no bundle. The
	// author of the bundle corrects the image.
	ReasonBundleEmpty = "BundleEmpty"
	// ReasonManifestSkipped: a file of a bundle cannot be read and is left out. The
	// author of the bundle corrects it.
	ReasonManifestSkipped = "ManifestSkipped"
	// ReasonKeyCase: a manifest spells a key in another case than the API does. OLM
	// reads it all the same, but for CustomResourceDefinitions; an API server would
	// not. The author of the bundle corrects it.
	ReasonKeyCase = "KeyCase"
)

// Reasons of the diagnostics that adapters ask for.
const (
	// ReasonMissingPermissions: the identity of the plan may not do what its steps
	// need. The user grants what the message lists.
	ReasonMissingPermissions = "MissingPermissions"
	// ReasonAppliedWithWarnings: the API server took a step's object and warned,
	// e.g. of a deprecated API. The author of the bundle looks at it.
	ReasonAppliedWithWarnings = "AppliedWithWarnings"
)
