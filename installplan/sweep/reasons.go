// SPDX-License-Identifier: Apache-2.0

package sweep

// Reasons of actions and diagnostics. Where Reconcile repairs what it finds, there is nothing to do for the user.
// Repairs of a plan are written with installplan.ReasonRelationRepaired and installplan.ReasonManualOwner.
const (
	// ReasonNotRead: objects of a kind were not read, so nothing is said or done about them. The user lets the Reader
	// read the kind that is named.
	ReasonNotRead = "NotRead"
	// ReasonPlanHistory: there are more plans than are kept, and this is one of the oldest that no Subscription needs.
	ReasonPlanHistory = "PlanHistory"
	// ReasonPlanWithoutStatus: the plan never got its steps. It is deleted unless a Subscription refers to it.
	ReasonPlanWithoutStatus = "PlanWithoutStatus"
	// ReasonTooManyActivePlans: more plans wait or run than are kept. The user approves or deletes those that wait.
	ReasonTooManyActivePlans = "TooManyActivePlans"
	// ReasonOwnerReferenceMissing: a Subscription belongs to a plan that it does not own; it is made an owner.
	ReasonOwnerReferenceMissing = "OwnerReferenceMissing"
	// ReasonOwnerReferenceStale: a plan is owned by an earlier Subscription of the same name. Kubernetes' garbage collector
	// removes the reference once an existing Subscription owns the plan.
	ReasonOwnerReferenceStale = "OwnerReferenceStale"
	// ReasonOwnerReferenceDuplicate: a plan names one owner twice; it is named once.
	ReasonOwnerReferenceDuplicate = "OwnerReferenceDuplicate"
	// ReasonGeneratedOwnerMissing: a Subscription that a plan made does not own it; it is made an owner.
	ReasonGeneratedOwnerMissing = "GeneratedOwnerMissing"
	// ReasonPlanWithoutOwner: no Subscription owns the plan. Those that its labels prove are made owners; where nothing
	// is proven, the user deletes the plan.
	ReasonPlanWithoutOwner = "PlanWithoutOwner"
	// ReasonComponentLabelMissing: a plan lacks the label of a package that it installs; it is added.
	ReasonComponentLabelMissing = "ComponentLabelMissing"
	// ReasonComponentLabelUnused: no Subscription follows the package of a label. The user removes it if it disturbs.
	ReasonComponentLabelUnused = "ComponentLabelUnused"
	// ReasonPlanReferenceDangling: a Subscription's plan does not exist. Package subscription resolves again.
	ReasonPlanReferenceDangling = "PlanReferenceDangling"
	// ReasonGeneratedByDangling: the plan that made a Subscription does not exist; its name, which OLM waits for, goes.
	ReasonGeneratedByDangling = "GeneratedByDangling"
	// ReasonCurrentCSVNotInPlan: a Subscription's currentCSV is no version of its plan. Package subscription decides.
	ReasonCurrentCSVNotInPlan = "CurrentCSVNotInPlan"
	// ReasonPlansCollide: several plans have one generation, or several active plans one content. The user deletes those
	// that no Subscription refers to.
	ReasonPlansCollide = "PlansCollide"
	// ReasonUnpackedBundleUnused: no plan refers to an unpacked bundle; it is deleted.
	ReasonUnpackedBundleUnused = "UnpackedBundleUnused"
	// ReasonStepObjectAbsent: the plan that a Subscription refers to is Complete and an object that it installed is
	// gone. The user deletes the ClusterServiceVersion and the Subscription to install it anew.
	ReasonStepObjectAbsent = "StepObjectAbsent"
)
