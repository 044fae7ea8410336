// SPDX-License-Identifier: Apache-2.0

package audit

// Reasons of Findings, besides those of the Diagnostics of Reconcile that Find repeats.
const (
	// RelationRepaired is the reason of actions: what an audit found is put right.
	RelationRepaired = "RelationRepaired"

	// RefMissingPlan: the referenced plan is not there. The reference is cleared, or a condition says so.
	RefMissingPlan = "RefMissingPlan"
	// RefWrongNamespace: status.installPlanRef names a plan of another namespace. Clear it.
	RefWrongNamespace = "RefWrongNamespace"
	// OwnerMissing: a plan lacks the owner reference to a Subscription that it is for. installplan repairs it.
	OwnerMissing = "OwnerMissing"
	// OwnerStaleUID: a plan's owner reference names an earlier Subscription of that name. installplan adds the current
	// one, and Kubernetes' garbage collector removes the earlier one.
	OwnerStaleUID = "OwnerStaleUID"
	// OwnerMalformed: an owner reference of a plan has wrong fields. installplan repairs it.
	OwnerMalformed = "OwnerMalformed"
	// OwnerDuplicate: a plan has two references to one owner. installplan repairs it.
	OwnerDuplicate = "OwnerDuplicate"
	// OwnerDangling: a plan is owned by a Subscription that is not there. Garbage collection deals with it.
	OwnerDangling = "OwnerDangling"
	// LabelMissing: an object lacks the component label of its operator. The label is added.
	LabelMissing = "LabelMissing"
	// LabelStale: a Subscription carries the label of its earlier package. The label is removed.
	LabelStale = "LabelStale"
	// LabelKeyCollision: two packages with long names have one label key. Use shorter names.
	LabelKeyCollision = "LabelKeyCollision"
	// AssociationDisagree: label and owner references of a plan name different Subscriptions. Look whom it is for.
	AssociationDisagree = "AssociationDisagree"
	// GenerationMismatch: status.installPlanGeneration is lower than the plan's. It is raised.
	GenerationMismatch = "GenerationMismatch"
	// GenerationDuplicate: several plans have one generation, so their order is not known. Nothing to do.
	GenerationDuplicate = "GenerationDuplicate"
	// ContentDuplicate: two plans in progress bring the same versions. Delete the one that no Subscription refers to.
	ContentDuplicate = "ContentDuplicate"
	// StatuslessPlan: a plan was created and never given its steps. Delete it.
	StatuslessPlan = "StatuslessPlan"
	// SupersededPlan: a plan in progress brings only what is there, or all refer to a newer one. Delete it.
	SupersededPlan = "SupersededPlan"
	// OrphanPlan: no Subscription refers to a plan in progress or owns it. Delete it.
	OrphanPlan = "OrphanPlan"
	// StateContradiction: AtLatestKnown contradicts the CSVs that are there. The state is written again.
	StateContradiction = "StateContradiction"
	// ConditionContradiction: conditions contradict each other or the plan. They are written again.
	ConditionContradiction = "ConditionContradiction"
	// ApprovalDrift: a plan waits for an approval that no Subscription asks for any more. Approve or delete it. Or it
	// runs, and by now one asks for approvals: that counts for the next one.
	ApprovalDrift = "ApprovalDrift"
	// ApprovalForcedBy: an Automatic Subscription waits because another one is Manual. Approve the plan. If they do not
	// depend on each other, give one a namespace of its own, or set installPlan.separatePlans of the controllers.
	ApprovalForcedBy = "ApprovalForcedBy"
	// SamePackage: two Subscriptions follow one package. Delete one.
	SamePackage = "SamePackage"
)
