// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// These are the kinds of rules. Rule.Kind has one of these values.
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

// These are the reasons why a Subscription is held back, or why a bundle is not chosen.
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
	UnknownBundle         = model.UnknownBundle
	NotFollowed           = model.NotFollowed
	Skipped               = model.Skipped
	LessPreferred         = model.LessPreferred
	Unresolved            = model.Unresolved
)

// These are the kinds of remedies.
const (
	AddCatalog                    = model.AddCatalog
	ChangeChannel                 = model.ChangeChannel
	ChangePackage                 = model.ChangePackage
	RepairCatalog                 = model.RepairCatalog
	ChangePin                     = model.ChangePin
	AdoptOrphanCSV                = model.AdoptOrphanCSV
	DeleteOrphanCSV               = model.DeleteOrphanCSV
	RemoveConflictingSubscription = model.RemoveConflictingSubscription
	ApproveOrFixFailed            = model.ApproveOrFixFailed
)

// These are the types of bundle properties that Resolve uses. Other properties are passed on unchanged.
const (
	PropertyPackage         = model.PropertyPackage
	PropertyPackageRequired = model.PropertyPackageRequired
	PropertyGVK             = model.PropertyGVK
	PropertyGVKRequired     = model.PropertyGVKRequired
	PropertyConstraint      = model.PropertyConstraint
	PropertyLabel           = model.PropertyLabel
	PropertyLabelRequired   = model.PropertyLabelRequired
	PropertyDeprecated      = model.PropertyDeprecated
	PropertyBundleObject    = model.PropertyBundleObject
	PropertyCSVMetadata     = model.PropertyCSVMetadata
)

// These are the reasons of Diagnostics.
const (
	// ReasonInvalidContent means that a part of a catalog is invalid and is completely or partly ignored. The author of
	// the catalog has to correct the catalog.
	ReasonInvalidContent = model.ReasonInvalidContent
	// ReasonDuplicateContent means that a catalog contains a package, channel, bundle, entry or version twice. Usually,
	// the first definition is used. The author of the catalog should remove the other one.
	ReasonDuplicateContent = model.ReasonDuplicateContent
	// ReasonInvalidBundle means that a requirement of a bundle cannot be read, so the bundle is never chosen. The author
	// of the catalog has to correct the bundle.
	ReasonInvalidBundle = model.ReasonInvalidBundle
	// ReasonMalformedChannel means that the upgrade graph of a channel defines no order, so none of its bundles is chosen.
	// The author of the catalog has to correct the channel.
	ReasonMalformedChannel = model.ReasonMalformedChannel
	// ReasonSkippedObject means that an object of the Input was ignored, because it is nil, is in another namespace or
	// occurs twice. The caller should pass each object of the namespace once.
	ReasonSkippedObject = model.ReasonSkippedObject
	// ReasonCatalogUnavailable means that a visible catalog has no content, so none of its bundles can be chosen. See
	// the status of the CatalogSource.
	ReasonCatalogUnavailable = model.ReasonCatalogUnavailable
	// ReasonStaleCatalog means that the catalog could not be read, so the content of an earlier read is used. See the
	// status of the CatalogSource.
	ReasonStaleCatalog = model.ReasonStaleCatalog
	// ReasonInstalledCSVMissing means that status.installedCSV names a ClusterServiceVersion that does not exist, is a
	// copy or is being deleted. The Subscription is resolved like a new one.
	ReasonInstalledCSVMissing = model.ReasonInstalledCSVMissing
	// ReasonUnreadableCSV means that some properties or APIs of an existing ClusterServiceVersion cannot be read. Only the
	// readable ones are used. Correct the ClusterServiceVersion.
	ReasonUnreadableCSV = model.ReasonUnreadableCSV
	// ReasonBrokenReplacementChain means that existing ClusterServiceVersions form no upgrade chain. For example, two of
	// them replace the same one, or one has a successor but is not in the phase Replacing. Check the
	// ClusterServiceVersions that the message names.
	ReasonBrokenReplacementChain = model.ReasonBrokenReplacementChain
	// ReasonInvalidPin means that the version range of a Subscription is invalid, or a Pin names a Subscription that
	// does not exist. Nothing is installed or upgraded for the Subscription until the range is corrected.
	ReasonInvalidPin = model.ReasonInvalidPin
	// ReasonUnknownExclusion means that the OperatorGroup's annotation for hiding global catalogs has no effect, because
	// its value is not "true". Correct the value.
	ReasonUnknownExclusion = model.ReasonUnknownExclusion
	// ReasonMissingCSV means that the resolution selects status.currentCSV, but this ClusterServiceVersion does not exist.
	// The ClusterServiceVersion is installed again.
	ReasonMissingCSV = model.ReasonMissingCSV
	// ReasonNameCollision means that the default name of a generated Subscription is already in use. The Subscription
	// gets a longer name, so there is nothing to do.
	ReasonNameCollision = model.ReasonNameCollision
	// ReasonInstallModeUnsupported means that a selected operator does not support the install mode that the OperatorGroup
	// requires. The operator is installed anyway, but its ClusterServiceVersion will fail. Change the OperatorGroup.
	ReasonInstallModeUnsupported = model.ReasonInstallModeUnsupported
)
