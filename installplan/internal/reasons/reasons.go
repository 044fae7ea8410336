// SPDX-License-Identifier: Apache-2.0

// Package reasons contains the reasons that several packages for InstallPlans use.
package reasons

// Reasons. The constants of the same name with the prefix Reason in installplan, create and unpack explain them.
const (
	AppliedContentAltered   = "AppliedContentAltered"
	BundleInvalid           = "BundleInvalid"
	BundleNotUnpacked       = "BundleNotUnpacked"
	ConvertedElsewhere      = "ConvertedElsewhere"
	CSVContentDiffers       = "CSVContentDiffers"
	ExistingResourceInvalid = "ExistingResourceInvalid"
	ExtraDocumentsIgnored   = "ExtraDocumentsIgnored"
	KeyCase                 = "KeyCase"
	ManifestSkipped         = "ManifestSkipped"
	ManualOwner             = "ManualOwner"
	NewerCRDKept            = "NewerCRDKept"
	OptionalStepSkipped     = "OptionalStepSkipped"
	RelationRepaired        = "RelationRepaired"
	SharedObject            = "SharedObject"
	EarlierPlanUnfinished   = "EarlierPlanUnfinished"
	SubscriptionExists      = "SubscriptionExists"
	StepAbsent              = "StepAbsent"
	StepDiffers             = "StepDiffers"
	StepImmutable           = "StepImmutable"
	Superseded              = "Superseded"
	StepNameDiffers         = "StepNameDiffers"
	Truncated               = "Truncated"
	UnmanagedObjectUpdated  = "UnmanagedObjectUpdated"
)
