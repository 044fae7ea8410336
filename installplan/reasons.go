// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
)

// Finalizer holds a plan until what it leaves behind is cleaned up; see Reconcile.
const Finalizer = relation.Finalizer

// AnnotationGeneratedBy is on a Subscription that a plan made: the plan's name.
const AnnotationGeneratedBy = relation.GeneratedBy

// ConditionRetrying is True on a plan that is Installing if the time for its refused steps started anew at the
// transition time of the condition. It is True on a plan that is Failed if the API server rejected a write. The open
// steps of the failed plan are then tried every 10 minutes as long as a Subscription references the plan, and the plan
// starts again once the writes are accepted. The open steps of a plan that OLM failed, which does not have the
// condition, are tried as well.
const ConditionRetrying v1alpha1.InstallPlanConditionType = "Retrying"

// ConditionProgressing is False on a plan that does not progress. The reason is StepRefused, StepFailed or StepWaits,
// or InstallCheckFailed on a plan that failed of the check. The condition is removed as soon as the plan progresses.
// The next call reads the reason, so that no decision depends on the text of a message.
const ConditionProgressing v1alpha1.InstallPlanConditionType = "Progressing"

// Reasons of actions. Where a reason does not say what the user does, there is nothing to do.
const (
	// ReasonRelationRepaired: an owner reference, component label or finalizer of the plan was missing or stale.
	ReasonRelationRepaired = report.RelationRepaired
	// ReasonManualOwner: a Subscription that owns the plan wants manual approval, so the plan waits for one. The user
	// approves the plan.
	ReasonManualOwner = report.ManualOwner
	// ReasonPlanProgressed: the plan's phase, steps, conditions or message follow what was observed.
	ReasonPlanProgressed = "PlanProgressed"
	// ReasonPlanDone: every step of the plan is applied, so that it needs its finalizer no more.
	ReasonPlanDone = "PlanDone"
	// ReasonStepAbsent: the object of a step does not exist.
	ReasonStepAbsent = report.StepAbsent
	// ReasonStepDiffers: the object of a step exists and is not what the step describes.
	ReasonStepDiffers = report.StepDiffers
	// ReasonStepImmutable: the object of a step differs in a field that cannot change; it is deleted and created anew.
	ReasonStepImmutable = report.StepImmutable
	// ReasonPlanDeleted: the plan is being deleted and this is what it left behind.
	ReasonPlanDeleted = "PlanDeleted"
)

// Reasons of diagnostics of Reconcile; as above.
const (
	// ReasonNamespaceTerminating: the plan's namespace is being deleted, so nothing is installed there.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonPlanWithoutStatus: the plan never got its steps, so it will not run. The user deletes it unless a
	// resolution still needs it.
	ReasonPlanWithoutStatus = "PlanWithoutStatus"
	// ReasonPlanPhaseUnknown: the plan's phase is empty or none that exists. The user sets it to RequiresApproval or
	// deletes the plan.
	ReasonPlanPhaseUnknown = "PlanPhaseUnknown"
	// ReasonInstallCheckFailed: no OperatorGroup, or more than one, manages the namespace, or its ServiceAccount is
	// missing. The user repairs the OperatorGroup; the message says what is wrong.
	ReasonInstallCheckFailed = "InstallCheckFailed"
	// ReasonStepRefused: a step cannot be applied, so no step of the plan is. The message says what stands in the way;
	// the user removes it.
	ReasonStepRefused = "StepRefused"
	// ReasonStepFailed: the API server refused a write. The message is the API server's; the user grants the permission
	// or repairs the object.
	ReasonStepFailed = "StepFailed"
	// ReasonStepWaits means that a step waits for the cluster, for example for a definition to be established. It is a
	// reason of the condition Progressing only. The message says what the step waits for. Nothing to do for the user.
	ReasonStepWaits = "StepWaits"
	// ReasonStepNotVisible: the object of a step was created, or existed, and what was read does not show it, so it is
	// created again. When that stays so, the adapter reads from a cache that leaves it out: the user labels the object
	// olm.managed=true or deletes it.
	ReasonStepNotVisible = "StepNotVisible"
	// ReasonApprovalWithdrawnTooLate: approval was taken back after the first step, which stops nothing. The user
	// deletes what is not wanted.
	ReasonApprovalWithdrawnTooLate = "ApprovalWithdrawnTooLate"
	// ReasonPendingPlanCouldBeAutomatic: the plan waits for approval although no Subscription that owns it asks for
	// that any more. The user approves it.
	ReasonPendingPlanCouldBeAutomatic = "PendingPlanCouldBeAutomatic"
	// ReasonSuperseded means that the plan is not executed, whether it is approved or not. A later plan installs a version
	// of the same package, or the plan never got steps and no Subscription waits for it. The condition Installed has this
	// reason and names the later plan. The user approves that one.
	ReasonSuperseded = report.Superseded
	// ReasonEarlierPlanUnfinished means that the plan waits for an earlier InstallPlan that contains the same package.
	// Plans of one package run one after the other. Nothing to do for the user unless the earlier plan needs something.
	ReasonEarlierPlanUnfinished = report.EarlierPlanUnfinished
	// ReasonSubscriptionExists means that a step would create a Subscription for a dependency, and another Subscription of
	// the namespace names the same package. The step is skipped. Nothing to do for the user.
	ReasonSubscriptionExists = report.SubscriptionExists
	// ReasonUnmanagedObjectUpdated: a step describes an object that was there before and was not handed to OLM; it gets
	// the content, but no owner, so that removing the operator leaves it.
	ReasonUnmanagedObjectUpdated = report.UnmanagedObjectUpdated
	// ReasonAppliedContentAltered: the API server stored something else than what was written, which counts as applied.
	// The user looks at admission webhooks.
	ReasonAppliedContentAltered = report.AppliedContentAltered
	// ReasonSharedObject: another plan wrote the object of a step after this one, with a content or an owner of its own.
	// It stays as that one wants it, and records this plan's version as a co-owner if it is cluster-scoped. The authors of
	// the bundles give their objects names of their own.
	ReasonSharedObject = report.SharedObject
	// ReasonCSVContentDiffers: a ClusterServiceVersion of the step's name exists with another content and is kept. The
	// user deletes it to get the plan's.
	ReasonCSVContentDiffers = report.CSVContentDiffers
	// ReasonNewerCRDKept: a newer version of the operator owns the CustomResourceDefinition, so the plan's older one is
	// not written.
	ReasonNewerCRDKept = report.NewerCRDKept
	// ReasonConvertedElsewhere means that an operator of another namespace converts the custom resources of a definition,
	// so it reads and rewrites those of all namespaces. The plan uses the definition as it is. The user checks that
	// operator. If it should not convert them, the user deletes its ClusterServiceVersion and the conversion in the
	// definition.
	ReasonConvertedElsewhere = report.ConvertedElsewhere
	// ReasonExistingResourceInvalid: a custom resource is invalid under the old and under the new schema. The user
	// repairs it.
	ReasonExistingResourceInvalid = report.ExistingResourceInvalid
	// ReasonOptionalStepSkipped: the API of an optional step is not served, so the step is left out.
	ReasonOptionalStepSkipped = report.OptionalStepSkipped
	// ReasonStepNameDiffers: a step and its manifest name different objects; the manifest wins. The author of the
	// bundle corrects it.
	ReasonStepNameDiffers = report.StepNameDiffers
	// ReasonExtraDocumentsIgnored: a manifest holds several YAML documents, of which the first one counts. The author
	// of the bundle splits it.
	ReasonExtraDocumentsIgnored = report.ExtraDocumentsIgnored
	// ReasonCleanupForbidden: the controller may not remove what the deleted plan left behind. The user grants it
	// update on Subscriptions.
	ReasonCleanupForbidden = "CleanupForbidden"
	// ReasonCleanupIncomplete: the plan's cleanup did not end in time and the plan was let go. The message names what
	// is left; the user removes it.
	ReasonCleanupIncomplete = "CleanupIncomplete"
	// ReasonTruncated: a list was too long and was cut, or there were more custom resources than are judged. Where the
	// message is about the latter, the user looks for resources that the new schema refuses.
	ReasonTruncated = report.Truncated
	// ReasonKeyCase: a manifest spells a key in another case than the API does. OLM reads it all the same, but for
	// CustomResourceDefinitions; an API server would not. The author of the bundle corrects it.
	ReasonKeyCase = report.KeyCase
)
