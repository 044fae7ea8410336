// SPDX-License-Identifier: Apache-2.0

package model

// RuleKind says what a Rule demands.
type RuleKind string

// Kinds of rules.
const (
	// SubscriptionExists: a Subscription must be satisfied.
	SubscriptionExists RuleKind = "SubscriptionExists"
	// SubscriptionImpossible: nothing matches a Subscription.
	SubscriptionImpossible RuleKind = "SubscriptionImpossible"
	// SubscriptionRequires: a Subscription needs one of its candidates.
	SubscriptionRequires RuleKind = "SubscriptionRequires"
	// CSVExists: an existing ClusterServiceVersion must stay.
	CSVExists RuleKind = "CSVExists"
	// BundleRequires: a bundle or CSV needs an operator of some kind.
	BundleRequires RuleKind = "BundleRequires"
	// Conflicts: an upgrade and what it replaces exclude each other.
	Conflicts RuleKind = "Conflicts"
	// OnePerPackage: at most one operator of a package.
	OnePerPackage RuleKind = "OnePerPackage"
	// OnePerAPI: at most one operator that provides an API.
	OnePerAPI RuleKind = "OnePerAPI"
	// OnePerName: at most one operator of a name, whatever packages they are of: both would be one ClusterServiceVersion.
	OnePerName RuleKind = "OnePerName"
	// BundleDeprecated: a bundle with the property olm.deprecated.
	BundleDeprecated RuleKind = "BundleDeprecated"
	// BundleInvalid: a bundle with a requirement that cannot be read.
	BundleInvalid RuleKind = "BundleInvalid"
	// BundleExcluded: a bundle that Input.Exclude or a version range of a Subscription forbids.
	BundleExcluded RuleKind = "BundleExcluded"
	// KeepsCandidate: an earlier Subscription keeps the candidate that it prefers.
	KeepsCandidate RuleKind = "KeepsCandidate"
	// CatalogUnavailable: a catalog that the answer may depend on has no content.
	CatalogUnavailable RuleKind = "CatalogUnavailable"
)

// HeldBackCode is the kind of a HeldBack's reason.
type HeldBackCode string

// Reasons to hold a Subscription back.
const (
	// RequirementUnmet: the candidate needs something that is not offered.
	RequirementUnmet HeldBackCode = "RequirementUnmet"
	// ProvidedByOther: another operator provides an API of the candidate.
	ProvidedByOther HeldBackCode = "ProvidedByOther"
	// PackageConflict: another operator of the candidate's package stays.
	PackageConflict HeldBackCode = "PackageConflict"
	// NameConflict: another package's operator has the candidate's name.
	NameConflict HeldBackCode = "NameConflict"
	// CandidateDeprecated, CandidateInvalid, CandidateExcluded: the candidate must not be selected.
	CandidateDeprecated HeldBackCode = "CandidateDeprecated"
	CandidateInvalid    HeldBackCode = "CandidateInvalid"
	CandidateExcluded   HeldBackCode = "CandidateExcluded"
	// BlockedBySubscription: an earlier Subscription keeps a candidate that excludes this one.
	BlockedBySubscription HeldBackCode = "BlockedBySubscription"
	// NoUpgradeEdge: the installed operator is not the head of its channel, and nothing upgrades from it.
	NoUpgradeEdge HeldBackCode = "NoUpgradeEdge"
	// CatalogMissing, PackageMissing, ChannelMissing: what the Subscription follows is gone; the installed operator stays.
	CatalogMissing HeldBackCode = "CatalogMissing"
	PackageMissing HeldBackCode = "PackageMissing"
	ChannelMissing HeldBackCode = "ChannelMissing"
	// ReplacementInProgress: an upgrade is under way.
	ReplacementInProgress HeldBackCode = "ReplacementInProgress"
	// ChannelMalformed: the channel's upgrade graph gives no order.
	ChannelMalformed HeldBackCode = "ChannelMalformed"
	// Pinned: a version range of the Subscription does not allow the candidate.
	Pinned HeldBackCode = "Pinned"
	// PinInvalid: a version range of the Subscription cannot be read, so it stays.
	PinInvalid HeldBackCode = "PinInvalid"
	// Unknown: the step budget ran out before a reason was found.
	Unknown HeldBackCode = "Unknown"
)

// Stats are deterministic measures of the work done, in steps: looks at a candidate, or what takes as long.
type Stats struct {
	// Reading is for reading the input and writing the answer: it grows with both, and nothing bounds it. Steps are for
	// deciding, Explaining for reasons; Policy.MaxSteps bounds both.
	Reading, Steps, Explaining int
	// Expanded are the entries whose requirements were looked up.
	Expanded int
	// Candidates are the candidates of all Subscriptions.
	Candidates int
}
