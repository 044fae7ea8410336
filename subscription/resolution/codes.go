// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// What a Result says beside the Resolution.
type (
	// Target is where one Subscription ends.
	Target = explain.Target
	// HeldBack says why a Subscription did not get its best candidate.
	HeldBack = explain.HeldBack
	// Core is one reason why there is no solution: rules that contradict each other.
	Core = explain.Core
	// Rule is one demand, Remedy a hint at what would help.
	Rule   = explain.Rule
	Remedy = explain.Remedy
	// Explanation says why a bundle is or is not chosen.
	Explanation = explain.Explanation
	// Stats are deterministic measures of the work done.
	Stats = model.Stats

	// RuleKind says what a Rule demands.
	RuleKind = model.RuleKind
	// HeldBackCode is the kind of a reason not to choose a bundle.
	HeldBackCode = model.HeldBackCode
	// RemedyCode is what kind of help a Remedy is.
	RemedyCode = explain.RemedyCode
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
