// SPDX-License-Identifier: Apache-2.0

package sweep

// Reasons of actions and diagnostics. If Reconcile repairs the problem, there is nothing to do for the user. Repairs of
// a plan are written with installplan.ReasonRelationRepaired and installplan.ReasonManualOwner.
const (
	// ReasonNotRead means that the objects of a kind were not read, so they are neither checked nor deleted. Give the
	// Reader access to the kind in the message.
	ReasonNotRead = "NotRead"
	// ReasonPlanHistory means that an old plan is deleted, because there are more plans than are kept and no
	// Subscription needs it. Nothing to do.
	ReasonPlanHistory = "PlanHistory"
	// ReasonPlanWithoutStatus means that the plan has no steps long after its creation. The plan is deleted if no
	// Subscription references it. Otherwise, check that the controllers run, or delete the plan.
	ReasonPlanWithoutStatus = "PlanWithoutStatus"
	// ReasonTooManyActivePlans means that too many plans wait for approval or are being installed. The limit is
	// installplan.Config.MaxInstallPlans. Approve or delete the plans that wait.
	ReasonTooManyActivePlans = "TooManyActivePlans"
	// ReasonOwnerReferenceMissing means that a plan lacks an owner reference to one of its Subscriptions. The reference
	// is added. Nothing to do.
	ReasonOwnerReferenceMissing = "OwnerReferenceMissing"
	// ReasonOwnerReferenceStale means that a plan has an owner reference to a deleted Subscription. Another Subscription
	// has the same name now. The garbage collector of Kubernetes removes the reference once an existing Subscription owns
	// the plan. Nothing to do.
	ReasonOwnerReferenceStale = "OwnerReferenceStale"
	// ReasonOwnerReferenceDuplicate means that a plan has the same owner reference twice. One of them is removed.
	// Nothing to do.
	ReasonOwnerReferenceDuplicate = "OwnerReferenceDuplicate"
	// ReasonGeneratedOwnerMissing means that a plan lacks an owner reference to a Subscription that it created. The
	// reference is added. Nothing to do.
	ReasonGeneratedOwnerMissing = "GeneratedOwnerMissing"
	// ReasonPlanWithoutOwner means that no Subscription owns the plan. Subscriptions that belong to the plan according to
	// its status or labels become its owners. If there are none, delete the plan.
	ReasonPlanWithoutOwner = "PlanWithoutOwner"
	// ReasonComponentLabelMissing means that a plan lacks the label of a package that it installs. The label is added.
	// Nothing to do.
	ReasonComponentLabelMissing = "ComponentLabelMissing"
	// ReasonComponentLabelUnused means that a plan has the label of a package that no Subscription of the namespace
	// follows. The label is harmless. You may remove it.
	ReasonComponentLabelUnused = "ComponentLabelUnused"
	// ReasonPlanReferenceDangling means that the plan that a Subscription references does not exist. Package
	// subscription resolves again. Nothing to do.
	ReasonPlanReferenceDangling = "PlanReferenceDangling"
	// ReasonGeneratedByDangling means that the plan that created a Subscription does not exist. OLM would wait for that
	// plan, so the annotation that names the plan is removed from the Subscription. Nothing to do.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonCurrentCSVNotInPlan means that status.currentCSV of a Subscription is not a version of its plan. Package
	// subscription handles this. Nothing to do.
	ReasonCurrentCSVNotInPlan = "CurrentCSVNotInPlan"
	// ReasonPlansCollide means that several plans have the same spec.generation, or several unfinished plans have the
	// same content. Separate plans of one generation are reported only if they share a package. Delete the plans that no
	// Subscription references.
	ReasonPlansCollide = "PlansCollide"
	// ReasonUnpackedBundleUnused means that an unpacked bundle is deleted because no plan references it. Nothing to do.
	ReasonUnpackedBundleUnused = "UnpackedBundleUnused"
	// ReasonStepObjectAbsent means that an object of a Complete plan does not exist any more, although a Subscription
	// references the plan. To install the object again, delete the ClusterServiceVersion and the Subscription, and create
	// the Subscription again.
	ReasonStepObjectAbsent = "StepObjectAbsent"
)
