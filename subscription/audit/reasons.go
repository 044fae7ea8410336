// SPDX-License-Identifier: Apache-2.0

package audit

// These are the reasons of Findings and of their actions. Find also uses some reasons of the Diagnostics of
// subscription.Reconcile.
const (
	// RelationRepaired is the reason of actions that repair a Subscription's status or an InstallPlan.
	RelationRepaired = "RelationRepaired"

	// RefMissingPlan means that status.installPlanRef names an InstallPlan that does not exist or is not visible. The
	// repair clears the reference or sets the condition InstallPlanMissing.
	RefMissingPlan = "RefMissingPlan"
	// RefWrongNamespace means that status.installPlanRef names an InstallPlan of another namespace. Clear the
	// reference.
	RefWrongNamespace = "RefWrongNamespace"
	// OwnerMissing means that an InstallPlan installs an operator for a Subscription but has no owner reference to it.
	// Package installplan adds the owner reference.
	OwnerMissing = "OwnerMissing"
	// OwnerStaleUID means that an owner reference of an InstallPlan has the UID of a deleted Subscription, and a new
	// Subscription has the same name. Package installplan adds an owner reference to the new Subscription, and Kubernetes'
	// garbage collector removes the stale owner reference.
	OwnerStaleUID = "OwnerStaleUID"
	// OwnerMalformed means that an owner reference of an InstallPlan has wrong fields. Package installplan corrects the
	// owner reference.
	OwnerMalformed = "OwnerMalformed"
	// OwnerDuplicate means that an InstallPlan has two owner references with the same UID. Package installplan removes one
	// of them.
	OwnerDuplicate = "OwnerDuplicate"
	// OwnerDangling means that an owner reference of an InstallPlan names a Subscription that does not exist. Kubernetes'
	// garbage collector removes the reference, or the InstallPlan if the InstallPlan has no other owner. There is nothing
	// to do.
	OwnerDangling = "OwnerDangling"
	// LabelMissing means that an object lacks the component label of its operator. The repair adds the label.
	LabelMissing = "LabelMissing"
	// LabelStale means that a Subscription still has the component label of an earlier package. The repair removes the
	// label.
	LabelStale = "LabelStale"
	// LabelKeyCollision means that two packages with long names have the same component label key. Use shorter package
	// names.
	LabelKeyCollision = "LabelKeyCollision"
	// AssociationDisagree means that the labels and the owner references of an InstallPlan name different Subscriptions.
	// Find the Subscription to which the InstallPlan belongs.
	AssociationDisagree = "AssociationDisagree"
	// GenerationMismatch means that status.installPlanGeneration of a Subscription is lower than the generation of its
	// InstallPlan. The repair updates status.installPlanGeneration.
	GenerationMismatch = "GenerationMismatch"
	// GenerationDuplicate means that several InstallPlans have the same spec.generation, so their order is not known.
	// There is nothing to do.
	GenerationDuplicate = "GenerationDuplicate"
	// ContentDuplicate means that two InstallPlans in progress install the same versions. Delete the InstallPlan that
	// no Subscription references.
	ContentDuplicate = "ContentDuplicate"
	// StatuslessPlan means that an InstallPlan was created but its steps were never written. Delete the InstallPlan.
	StatuslessPlan = "StatuslessPlan"
	// SupersededPlan means that an InstallPlan in progress is no longer needed, because its versions exist already or all
	// its Subscriptions reference a newer InstallPlan. Delete the superseded InstallPlan.
	SupersededPlan = "SupersededPlan"
	// OrphanPlan means that an InstallPlan is in progress, but no Subscription references or owns it. Delete the
	// InstallPlan.
	OrphanPlan = "OrphanPlan"
	// StateContradiction means that status.state is AtLatestKnown although status.currentCSV is not installed. The
	// repair writes the status again.
	StateContradiction = "StateContradiction"
	// ConditionContradiction means that the conditions of a Subscription contradict each other or its InstallPlan. The
	// repair writes the conditions again.
	ConditionContradiction = "ConditionContradiction"
	// ApprovalDrift means that an InstallPlan waits for approval, but no Subscription requires approval any more. Approve
	// or delete the InstallPlan. If the severity is Info, an InstallPlan runs without approval although a Subscription is
	// now Manual. The next InstallPlan will need approval.
	ApprovalDrift = "ApprovalDrift"
	// ApprovalForcedBy means that an Automatic Subscription waits for an approval that another Subscription with Manual
	// approval requires. Approve the InstallPlan. If the Subscriptions do not depend on each other, move one to its own
	// namespace, or set installPlan.separatePlans of the controllers.
	ApprovalForcedBy = "ApprovalForcedBy"
	// SamePackage means that two Subscriptions subscribe to the same package. Delete one of them.
	SamePackage = "SamePackage"
)
