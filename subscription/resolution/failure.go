// SPDX-License-Identifier: Apache-2.0

package resolution

import "k8s.io/apimachinery/pkg/types"

// Core is one reason why there is no solution: rules that contradict each other.
type Core struct {
	// Subscriptions are the names of those that the rules are about, sorted.
	Subscriptions []string
	// Rules are the rules, sorted by text. When Minimal, leaving any one out would
	// make the others satisfiable; otherwise the step budget ran out before.
	Rules   []Rule
	Minimal bool
	// Error: this is not a contradiction but something that prevented an answer;
	// trying again later may help.
	Error bool
	// Message is the text that OLM would write for these rules.
	Message string
	// Summary says the same for a person.
	Summary  string
	Remedies []Remedy
}

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
	// OnePerName: at most one operator of a name, whatever packages they are of:
	// both would be one ClusterServiceVersion.
	OnePerName RuleKind = "OnePerName"
	// BundleDeprecated: a bundle with the property olm.deprecated.
	BundleDeprecated RuleKind = "BundleDeprecated"
	// BundleInvalid: a bundle with a requirement that cannot be read.
	BundleInvalid RuleKind = "BundleInvalid"
	// BundleExcluded: a bundle that Input.Exclude forbids.
	BundleExcluded RuleKind = "BundleExcluded"
	// KeepsCandidate: an earlier Subscription keeps the candidate that it prefers.
	KeepsCandidate RuleKind = "KeepsCandidate"
	// CatalogUnavailable: a catalog that the answer may depend on has no content.
	CatalogUnavailable RuleKind = "CatalogUnavailable"
)

// Rule is one demand.
type Rule struct {
	Kind RuleKind
	// Text is OLM's text for it.
	Text string
	// Subscription, Bundle, Package, Channel and Catalog say what it is about, as
	// far as it is about one.
	Subscription                      string
	Bundle, Package, Channel, Version string
	Catalog                           types.NamespacedName
	// Objects are the identifiers of the candidates, or of what excludes each
	// other.
	Objects []string
	// Need says in words what a BundleRequires rule looks for; FailureMessage is
	// what the bundle's author says about it.
	Need, FailureMessage string
}

// Remedy is a hint at what would help.
type Remedy struct {
	Code RemedyCode
	// Object is the name of what it is about: a ClusterServiceVersion, a
	// Subscription, a package or a catalog.
	Object string
	// Message says it for a person.
	Message string
}

// RemedyCode is what kind of help a Remedy is.
type RemedyCode string

// Remedies.
const (
	AddCatalog                    RemedyCode = "AddCatalog"
	ChangeChannel                 RemedyCode = "ChangeChannel"
	ChangePackage                 RemedyCode = "ChangePackage"
	RepairCatalog                 RemedyCode = "RepairCatalog"
	DeleteOrphanCSV               RemedyCode = "DeleteOrphanCSV"
	RemoveConflictingSubscription RemedyCode = "RemoveConflictingSubscription"
	ApproveOrFixFailed            RemedyCode = "ApproveOrFixFailed"
)
