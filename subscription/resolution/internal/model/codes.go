// SPDX-License-Identifier: Apache-2.0

package model

// RuleKind is the kind of a Rule.
type RuleKind string

// These are the kinds of rules.
const (
	// SubscriptionExists means that a Subscription must be satisfied.
	SubscriptionExists RuleKind = "SubscriptionExists"
	// SubscriptionImpossible means that no bundle matches a Subscription.
	SubscriptionImpossible RuleKind = "SubscriptionImpossible"
	// SubscriptionRequires means that a Subscription needs one of its candidates.
	SubscriptionRequires RuleKind = "SubscriptionRequires"
	// CSVExists means that an existing ClusterServiceVersion must remain.
	CSVExists RuleKind = "CSVExists"
	// BundleRequires means that a bundle or ClusterServiceVersion requires another operator.
	BundleRequires RuleKind = "BundleRequires"
	// Conflicts means that an operator and the predecessor that it replaces exclude each other.
	Conflicts RuleKind = "Conflicts"
	// OnePerPackage means that at most one operator of a package may be installed.
	OnePerPackage RuleKind = "OnePerPackage"
	// OnePerAPI means that at most one operator may provide an API.
	OnePerAPI RuleKind = "OnePerAPI"
	// OnePerName means that at most one operator may have a name, even in different packages. Two operators with one name
	// would be the same ClusterServiceVersion.
	OnePerName RuleKind = "OnePerName"
	// BundleDeprecated means that a bundle has the property olm.deprecated and must not be selected.
	BundleDeprecated RuleKind = "BundleDeprecated"
	// BundleInvalid means that a requirement of a bundle cannot be read, so the bundle must not be selected.
	BundleInvalid RuleKind = "BundleInvalid"
	// BundleExcluded means that Input.Exclude or the version range of a Subscription excludes a bundle.
	BundleExcluded RuleKind = "BundleExcluded"
	// KeepsCandidate means that an earlier Subscription keeps its preferred candidate.
	KeepsCandidate RuleKind = "KeepsCandidate"
	// CatalogUnavailable means that a catalog that may affect the result has no content.
	CatalogUnavailable RuleKind = "CatalogUnavailable"
)

// HeldBackCode is the kind of reason in a HeldBack.
type HeldBackCode string

// These are the reasons why a Subscription is held back.
const (
	// RequirementUnmet means that no visible catalog offers an operator that meets a requirement of the candidate. Add a
	// catalog that offers such an operator.
	RequirementUnmet HeldBackCode = "RequirementUnmet"
	// ProvidedByOther means that another operator provides an API of the candidate. Remove one of the two operators.
	ProvidedByOther HeldBackCode = "ProvidedByOther"
	// PackageConflict means that another operator of the candidate's package remains installed. Remove one of the two
	// operators.
	PackageConflict HeldBackCode = "PackageConflict"
	// NameConflict means that an operator of another package has the name of the candidate. Remove one of the two
	// operators.
	NameConflict HeldBackCode = "NameConflict"
	// CandidateDeprecated, CandidateInvalid and CandidateExcluded mean that the candidate must not be selected. See
	// BundleDeprecated, BundleInvalid and BundleExcluded.
	CandidateDeprecated HeldBackCode = "CandidateDeprecated"
	CandidateInvalid    HeldBackCode = "CandidateInvalid"
	CandidateExcluded   HeldBackCode = "CandidateExcluded"
	// BlockedBySubscription means that the candidate of an earlier Subscription excludes this candidate. Change or
	// remove one of the two Subscriptions.
	BlockedBySubscription HeldBackCode = "BlockedBySubscription"
	// NoUpgradeEdge means that the installed operator is not the head of its channel, and that no bundle has an upgrade
	// edge from that operator. Ask the publisher of the catalog for an upgrade.
	NoUpgradeEdge HeldBackCode = "NoUpgradeEdge"
	// CatalogMissing, PackageMissing and ChannelMissing mean that the catalog, package or channel of the Subscription does
	// not exist. The installed operator remains. Correct the Subscription or the catalog.
	CatalogMissing HeldBackCode = "CatalogMissing"
	PackageMissing HeldBackCode = "PackageMissing"
	ChannelMissing HeldBackCode = "ChannelMissing"
	// ReplacementInProgress means that an upgrade is in progress. Wait until the upgrade is complete.
	ReplacementInProgress HeldBackCode = "ReplacementInProgress"
	// ChannelMalformed means that the upgrade graph of the channel defines no order. The author of the catalog has to
	// correct the channel.
	ChannelMalformed HeldBackCode = "ChannelMalformed"
	// Pinned means that a version range of the Subscription excludes the candidate. To allow the candidate, change the
	// range.
	Pinned HeldBackCode = "Pinned"
	// PinInvalid means that a version range of the Subscription is invalid, so the operator of the
	// Subscription is not changed. Correct the range.
	PinInvalid HeldBackCode = "PinInvalid"
	// Unknown means that the limit of steps was reached before a reason was found.
	Unknown HeldBackCode = "Unknown"
)

// These are the reasons why a bundle is not chosen, in addition to those of HeldBack.
const (
	// UnknownBundle means that no visible catalog contains the bundle.
	UnknownBundle HeldBackCode = "UnknownBundle"
	// NotFollowed means that no Subscription names the bundle's package and channel, and that no selected operator
	// requires the bundle.
	NotFollowed HeldBackCode = "NotFollowed"
	// Skipped means that another bundle of the channel skips the bundle. A skipped bundle is installed only if startingCSV
	// names it.
	Skipped HeldBackCode = "Skipped"
	// LessPreferred means that a better candidate was chosen.
	LessPreferred HeldBackCode = "LessPreferred"
	// Unresolved means that the Subscription has no solution.
	Unresolved HeldBackCode = "Unresolved"
)

// RemedyCode is the kind of a Remedy.
type RemedyCode string

// These are the kinds of remedies.
const (
	AddCatalog                    RemedyCode = "AddCatalog"
	ChangeChannel                 RemedyCode = "ChangeChannel"
	ChangePackage                 RemedyCode = "ChangePackage"
	RepairCatalog                 RemedyCode = "RepairCatalog"
	ChangePin                     RemedyCode = "ChangePin"
	AdoptOrphanCSV                RemedyCode = "AdoptOrphanCSV"
	DeleteOrphanCSV               RemedyCode = "DeleteOrphanCSV"
	RemoveConflictingSubscription RemedyCode = "RemoveConflictingSubscription"
	ApproveOrFixFailed            RemedyCode = "ApproveOrFixFailed"
)

// These are the reasons of Diagnostics. Package resolution documents their meaning.
const (
	ReasonInvalidContent         = "InvalidContent"
	ReasonDuplicateContent       = "DuplicateContent"
	ReasonInvalidBundle          = "InvalidBundle"
	ReasonMalformedChannel       = "MalformedChannel"
	ReasonSkippedObject          = "SkippedObject"
	ReasonCatalogUnavailable     = "CatalogUnavailable"
	ReasonStaleCatalog           = "StaleCatalog"
	ReasonInstalledCSVMissing    = "InstalledCSVMissing"
	ReasonUnreadableCSV          = "UnreadableCSV"
	ReasonBrokenReplacementChain = "BrokenReplacementChain"
	ReasonInvalidPin             = "InvalidPin"
	ReasonUnknownExclusion       = "UnknownExclusion"
	ReasonMissingCSV             = "MissingCSV"
	ReasonNameCollision          = "NameCollision"
	ReasonInstallModeUnsupported = "InstallModeUnsupported"
)

// Stats contains the work of a resolution, measured in steps. One step is about the work to examine one candidate.
// Equal inputs give equal Stats.
type Stats struct {
	// Reading is the number of steps for reading the input and writing the result. It grows with the input and the result,
	// and has no limit. Steps is the number of steps for the decision, and Explaining is the number of steps for the
	// reasons. Policy.MaxSteps and the number of Subscriptions limit Steps and Explaining.
	Reading, Steps, Explaining int
	// Expanded is the number of entries whose requirements were examined.
	Expanded int
	// Candidates is the number of candidates of all Subscriptions.
	Candidates int
}
