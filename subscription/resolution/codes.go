// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/subscription/resolution/internal/content"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Kinds of rules.
const (
	SubscriptionExists     = model.SubscriptionExists
	SubscriptionImpossible = model.SubscriptionImpossible
	SubscriptionRequires   = model.SubscriptionRequires
	CSVExists              = model.CSVExists
	BundleRequires         = model.BundleRequires
	Conflicts              = model.Conflicts
	OnePerPackage          = model.OnePerPackage
	OnePerAPI              = model.OnePerAPI
	OnePerName             = model.OnePerName
	BundleDeprecated       = model.BundleDeprecated
	BundleInvalid          = model.BundleInvalid
	BundleExcluded         = model.BundleExcluded
	KeepsCandidate         = model.KeepsCandidate
	CatalogUnavailable     = model.CatalogUnavailable
)

// Reasons to hold a Subscription back, or not to choose a bundle.
const (
	RequirementUnmet      = model.RequirementUnmet
	ProvidedByOther       = model.ProvidedByOther
	PackageConflict       = model.PackageConflict
	NameConflict          = model.NameConflict
	CandidateDeprecated   = model.CandidateDeprecated
	CandidateInvalid      = model.CandidateInvalid
	CandidateExcluded     = model.CandidateExcluded
	BlockedBySubscription = model.BlockedBySubscription
	NoUpgradeEdge         = model.NoUpgradeEdge
	CatalogMissing        = model.CatalogMissing
	PackageMissing        = model.PackageMissing
	ChannelMissing        = model.ChannelMissing
	ReplacementInProgress = model.ReplacementInProgress
	ChannelMalformed      = model.ChannelMalformed
	Pinned                = model.Pinned
	PinInvalid            = model.PinInvalid
	Unknown               = model.Unknown
	UnknownBundle         = explain.UnknownBundle
	NotFollowed           = explain.NotFollowed
	Skipped               = explain.Skipped
	LessPreferred         = explain.LessPreferred
	Unresolved            = explain.Unresolved
)

// Remedies.
const (
	AddCatalog                    = explain.AddCatalog
	ChangeChannel                 = explain.ChangeChannel
	ChangePackage                 = explain.ChangePackage
	RepairCatalog                 = explain.RepairCatalog
	ChangePin                     = explain.ChangePin
	AdoptOrphanCSV                = explain.AdoptOrphanCSV
	DeleteOrphanCSV               = explain.DeleteOrphanCSV
	RemoveConflictingSubscription = explain.RemoveConflictingSubscription
	ApproveOrFixFailed            = explain.ApproveOrFixFailed
)

// Types of properties that resolution reads. All others are carried along.
const (
	PropertyPackage         = content.PropertyPackage
	PropertyPackageRequired = content.PropertyPackageRequired
	PropertyGVK             = content.PropertyGVK
	PropertyGVKRequired     = content.PropertyGVKRequired
	PropertyConstraint      = content.PropertyConstraint
	PropertyLabel           = content.PropertyLabel
	PropertyLabelRequired   = content.PropertyLabelRequired
	PropertyDeprecated      = content.PropertyDeprecated
	PropertyBundleObject    = content.PropertyBundleObject
	PropertyCSVMetadata     = content.PropertyCSVMetadata
)

// Diagnostic reasons.
const (
	// ReasonInvalidContent: a piece of a catalog breaks its format and is left out or partly ignored. The catalog's
	// author has to repair it.
	ReasonInvalidContent = content.ReasonInvalidContent
	// ReasonDuplicateContent: a catalog says something twice; the first counts.
	ReasonDuplicateContent = content.ReasonDuplicateContent
	// ReasonInvalidBundle: a bundle's requirement cannot be read, so the bundle is never chosen. The catalog's author
	// has to repair it.
	ReasonInvalidBundle = content.ReasonInvalidBundle
	// ReasonMalformedChannel: a channel's upgrade graph gives no order, so nothing in it is chosen. The catalog's
	// author has to repair it.
	ReasonMalformedChannel = content.ReasonMalformedChannel
	// ReasonSkippedObject: an object of the input was left out: nil, of another namespace, or there twice. The
	// caller's reads are inconsistent.
	ReasonSkippedObject = content.ReasonSkippedObject
	// ReasonCatalogUnavailable: a visible catalog has no content, so nothing of it can be chosen. See the
	// CatalogSource's status.
	ReasonCatalogUnavailable = content.ReasonCatalogUnavailable
	// ReasonStaleCatalog: the content of a catalog is that of an earlier read.
	ReasonStaleCatalog = content.ReasonStaleCatalog
	// ReasonInstalledCSVMissing: status.installedCSV names a ClusterServiceVersion that does not exist, is a copy or
	// is being deleted; the Subscription is resolved like a new one.
	ReasonInstalledCSVMissing = content.ReasonInstalledCSVMissing
	// ReasonUnreadableCSV: properties or APIs of an existing ClusterServiceVersion cannot be read; what is readable
	// counts.
	ReasonUnreadableCSV = content.ReasonUnreadableCSV
	// ReasonBrokenReplacementChain: the spec.replaces of existing ClusterServiceVersions form no chain of replacements.
	ReasonBrokenReplacementChain = content.ReasonBrokenReplacementChain
	// ReasonInvalidPin: a version range that holds a Subscription cannot be read, so that nothing is installed or
	// upgraded for it until the range is repaired; or no Subscription has the name that a Pin has.
	ReasonInvalidPin = content.ReasonInvalidPin
	// ReasonUnknownExclusion: the OperatorGroup's annotation that hides global catalogs has a value other than "true"
	// and has no effect.
	ReasonUnknownExclusion = content.ReasonUnknownExclusion
	// ReasonMissingCSV: status.currentCSV is what would be chosen, but it does not exist in the namespace; it is
	// installed again.
	ReasonMissingCSV = content.ReasonMissingCSV
	// ReasonNameCollision: the usual name of a generated Subscription is taken, so it got a longer one.
	ReasonNameCollision = content.ReasonNameCollision
	// ReasonInstallModeUnsupported: a selected operator says that it does not support what the OperatorGroup asks
	// for. It is installed nevertheless and its ClusterServiceVersion will fail.
	ReasonInstallModeUnsupported = content.ReasonInstallModeUnsupported
)
