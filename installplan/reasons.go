// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/installplan/internal/relation"
)

// Finalizer is the finalizer of InstallPlans. The finalizer keeps a deleted plan until Reconcile has cleaned up its
// bundles and annotations, for at most one minute.
const Finalizer = relation.Finalizer

// AnnotationGeneratedBy is an annotation of a Subscription that an InstallPlan created. Its value is the name of the
// plan.
const AnnotationGeneratedBy = relation.GeneratedBy

// ConditionRetrying is True on an Installing plan if the timeout of its refused steps was restarted. The transition
// time of the condition is then the start of the timeout. The condition is True on a Failed plan if the API server
// rejected a write. The open steps of that plan are tried every 10 minutes while the plan is needed, for example while
// a Subscription references it. The plan starts again once the writes are accepted. If OLM set a plan to Failed, the
// plan does not have the condition, but its open steps are tried too.
const ConditionRetrying v1alpha1.InstallPlanConditionType = "Retrying"

// ConditionProgressing is False on a plan that does not progress. Its reason is StepRefused, StepFailed, StepWaits or
// InstallCheckFailed. The reason is InstallCheckFailed only if that check made the plan fail. The condition is removed
// as soon as the plan progresses. The next call reads the reason, so no decision depends on the text of a message.
const ConditionProgressing v1alpha1.InstallPlanConditionType = "Progressing"

// Reasons of the actions of Reconcile. If a comment contains no instruction, there is nothing to do.
const (
	// ReasonRelationRepaired means that an owner reference, component label or finalizer of the plan was missing or stale,
	// and is corrected.
	ReasonRelationRepaired = reasons.RelationRepaired
	// ReasonManualOwner means that a Subscription that owns the plan requires manual approval, so the plan waits for
	// approval. Approve the InstallPlan.
	ReasonManualOwner = reasons.ManualOwner
	// ReasonPlanProgressed means that the phase, steps, conditions or message of the plan are updated to the observed
	// state.
	ReasonPlanProgressed = "PlanProgressed"
	// ReasonPlanDone means that every step of the plan is applied, so the plan no longer needs its finalizer.
	ReasonPlanDone = "PlanDone"
	// ReasonStepAbsent means that the object of a step does not exist and is created.
	ReasonStepAbsent = reasons.StepAbsent
	// ReasonStepDiffers means that the object of a step differs from the step and is updated.
	ReasonStepDiffers = reasons.StepDiffers
	// ReasonStepImmutable means that the object of a step differs from the step in an immutable field. The object is
	// deleted and created again.
	ReasonStepImmutable = reasons.StepImmutable
	// ReasonPlanDeleted means that the plan is being deleted. The action removes an object or annotation of the plan, or
	// its finalizer.
	ReasonPlanDeleted = "PlanDeleted"
)

// Reasons of the diagnostics and conditions of Reconcile. If a comment contains no instruction, there is nothing to do.
const (
	// ReasonNamespaceTerminating means that the namespace of the plan is being deleted, so nothing is installed
	// there.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonPlanWithoutStatus means that the plan has no steps five minutes after its creation, so it cannot run. Delete
	// the InstallPlan, unless a Subscription still waits for it.
	ReasonPlanWithoutStatus = "PlanWithoutStatus"
	// ReasonPlanPhaseUnknown means that the phase of the plan is empty or unknown. Set status.phase to RequiresApproval,
	// or delete the InstallPlan.
	ReasonPlanPhaseUnknown = "PlanPhaseUnknown"
	// ReasonInstallCheckFailed means that no OperatorGroup or more than one OperatorGroup manages the namespace, or the
	// ServiceAccount of the OperatorGroup is missing or has changed. The message reports the problem. Correct the
	// OperatorGroup, or delete the InstallPlan if the message says so.
	ReasonInstallCheckFailed = "InstallCheckFailed"
	// ReasonStepRefused means that a step cannot be applied, so no step of the plan is applied. Remove the obstacle that
	// the message names.
	ReasonStepRefused = "StepRefused"
	// ReasonStepFailed means that the API server rejected a write. The message contains the error of the API server. Grant
	// the missing permission or correct the object.
	ReasonStepFailed = "StepFailed"
	// ReasonStepWaits means that a step waits for the cluster, for example until a CustomResourceDefinition is
	// established. The message says what the step waits for. Only the condition Progressing has this reason. Nothing to do
	// for the user.
	ReasonStepWaits = "StepWaits"
	// ReasonStepNotVisible means that the object of a step was created or exists already, but reads do not return it, so
	// it is created again. If the diagnostic persists, the caller reads from a cache that excludes the object. Label the
	// object olm.managed=true, or delete the object.
	ReasonStepNotVisible = "StepNotVisible"
	// ReasonApprovalWithdrawnTooLate means that the approval was withdrawn after the first step was applied, so the plan
	// continues. Delete the objects that you do not want.
	ReasonApprovalWithdrawnTooLate = "ApprovalWithdrawnTooLate"
	// ReasonPendingPlanCouldBeAutomatic means that the plan waits for approval, although no Subscription that owns it
	// requires manual approval any more. Approve the InstallPlan.
	ReasonPendingPlanCouldBeAutomatic = "PendingPlanCouldBeAutomatic"
	// ReasonSuperseded means that the plan is not executed, even if it is approved. A later plan installs a version of the
	// same package, or the plan never got steps and no Subscription waits for it. The condition Installed has this reason.
	// If its message names a later InstallPlan, approve that one.
	ReasonSuperseded = reasons.Superseded
	// ReasonEarlierPlanUnfinished means that the plan waits for an earlier InstallPlan that contains the same package.
	// Plans of one package run one after the other. Complete the earlier plan, for example by approving it.
	ReasonEarlierPlanUnfinished = reasons.EarlierPlanUnfinished
	// ReasonSubscriptionExists means that a step would create a Subscription for a dependency, but another
	// Subscription of the namespace names the same package. The step is skipped. Nothing to do for the user.
	ReasonSubscriptionExists = reasons.SubscriptionExists
	// ReasonUnmanagedObjectUpdated means that the object of a step existed before and is not managed by OLM. The content
	// of the object is updated. The object gets no owner, so it is not deleted with the operator.
	ReasonUnmanagedObjectUpdated = reasons.UnmanagedObjectUpdated
	// ReasonAppliedContentAltered means that the API server stored other content than was written. The step is still
	// treated as applied. Check the admission webhooks.
	ReasonAppliedContentAltered = reasons.AppliedContentAltered
	// ReasonSharedObject means that another plan wrote the object of a step after this plan, with other content or another
	// owner. The object keeps the content of the other plan. A cluster-scoped object records the version of this plan as a
	// co-owner. Ask the authors of the bundles to choose different names for their objects.
	ReasonSharedObject = reasons.SharedObject
	// ReasonCSVContentDiffers means that a ClusterServiceVersion with the name of the step exists with another spec. The
	// existing ClusterServiceVersion is kept. Delete it to install the one of the plan.
	ReasonCSVContentDiffers = reasons.CSVContentDiffers
	// ReasonNewerCRDKept means that a newer version of the operator owns the CustomResourceDefinition. The existing
	// definition is kept, and the older definition of the plan is not written.
	ReasonNewerCRDKept = reasons.NewerCRDKept
	// ReasonConvertedElsewhere means that an operator of another namespace converts the custom resources of a
	// CustomResourceDefinition. That operator reads and rewrites the custom resources of all namespaces. The plan uses
	// the definition as it is. Check that operator. If it should not convert them, delete its ClusterServiceVersion and
	// the conversion in the definition.
	ReasonConvertedElsewhere = reasons.ConvertedElsewhere
	// ReasonExistingResourceInvalid means that a custom resource is invalid under the new schema, but does not block the
	// plan. Either the custom resource is invalid under the old schema too, or the new definition has a conversion
	// webhook. Correct the custom resource.
	ReasonExistingResourceInvalid = reasons.ExistingResourceInvalid
	// ReasonOptionalStepSkipped means that the API of an optional step is not served, so the step is skipped.
	ReasonOptionalStepSkipped = reasons.OptionalStepSkipped
	// ReasonStepNameDiffers means that a step and its manifest name different objects. The name in the manifest is used.
	// Ask the author of the bundle to correct the name.
	ReasonStepNameDiffers = reasons.StepNameDiffers
	// ReasonExtraDocumentsIgnored means that a manifest contains more than one YAML document. Only the first document is
	// used. Ask the author of the bundle to split the manifest.
	ReasonExtraDocumentsIgnored = reasons.ExtraDocumentsIgnored
	// ReasonCleanupForbidden means that the controller is not allowed to clean up an object of the deleted plan. The
	// message names the object. Grant the controller the permission to update Subscriptions and to delete ConfigMaps.
	ReasonCleanupForbidden = "CleanupForbidden"
	// ReasonCleanupIncomplete means that the cleanup of the deleted plan did not finish in time, so its finalizer was
	// removed. Remove the objects and annotations that the message names.
	ReasonCleanupIncomplete = "CleanupIncomplete"
	// ReasonTruncated means that a list was cut because it was too long, or not all custom resources were validated. If
	// custom resources were not validated, check them against the new schema.
	ReasonTruncated = reasons.Truncated
	// ReasonKeyCase means that a key of a manifest differs from the API field only in upper and lower case, for example
	// MinKubeVersion. OLM reads such a key as the field, except in CustomResourceDefinitions. An API server ignores it.
	// Ask the author of the bundle to correct the key.
	ReasonKeyCase = reasons.KeyCase
)
