// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// Outcome is the verdict on a namespace.
type Outcome string

// Outcomes.
const (
	// Resolved: there is something to install, to upgrade or to write down.
	Resolved Outcome = "Resolved"
	// Unchanged: all is well as it is.
	Unchanged Outcome = "Unchanged"
	// Unsatisfiable: what is asked for contradicts itself; it stays so until the
	// input changes.
	Unsatisfiable Outcome = "Unsatisfiable"
	// Failed: something in the input stops the namespace, or the step budget ran
	// out.
	Failed Outcome = "Failed"
	// Blocked: the namespace cannot be resolved at all, for want of exactly one
	// OperatorGroup.
	Blocked Outcome = "Blocked"
)

// Result is the answer of Resolve. The embedded Resolution is what other
// packages act on; the rest explains it.
type Result struct {
	olmcore.Resolution
	Outcome Outcome
	// Targets says where each Subscription ends, sorted by name.
	Targets []Target
	// HeldBack are the Subscriptions whose best candidate was not taken, sorted by
	// name.
	HeldBack []HeldBack
	// Cores are the independent reasons of a failure, in the order of the
	// Subscriptions. With Policy.AllOrNothing off there may be some beside a
	// solution for the other Subscriptions.
	Cores       []Core
	Diagnostics []olmcore.Diagnostic
	Stats       Stats
}

// CoresFor returns the reasons that name a Subscription, and those that name
// none and so stop all of them.
func (r Result) CoresFor(subscription string) []Core {
	var cores []Core
	for _, c := range r.Cores {
		if len(c.Subscriptions) == 0 || slices.Contains(c.Subscriptions, subscription) {
			cores = append(cores, c)
		}
	}
	return cores
}

// Target is where one Subscription ends.
type Target struct {
	Subscription string
	// Current is the installed operator that it starts from, Target the one that
	// it has after this resolution; "" is none.
	Current, Target string
	// Adopt: Target exists already and becomes the Subscription's. Its Decision
	// names it as the new status.currentCSV; package subscription, which sees that
	// it exists, then writes status.installedCSV.
	Adopt bool
}

// HeldBack says why a Subscription did not get its best candidate.
type HeldBack struct {
	Subscription string
	// Candidate is the bundle that it did not get; "" when there is none.
	Candidate string
	Code      HeldBackCode
	// Blocker is the name of what stands in the way: a Subscription, a
	// ClusterServiceVersion, a package or a catalog.
	Blocker string
	// Summary says it for a person. Rules are why the candidate is impossible.
	Summary string
	Rules   []Rule
}

// HeldBackCode is the kind of a HeldBack's reason.
type HeldBackCode string

// Reasons to hold a Subscription back.
const (
	// RequirementUnmet: the candidate needs something that nobody offers.
	RequirementUnmet HeldBackCode = "RequirementUnmet"
	// ProvidedByOther: another operator provides an API of the candidate.
	ProvidedByOther HeldBackCode = "ProvidedByOther"
	// PackageConflict: another operator of the candidate's package stays.
	PackageConflict HeldBackCode = "PackageConflict"
	// NameConflict: another package's operator has the candidate's name.
	NameConflict HeldBackCode = "NameConflict"
	// CandidateDeprecated, CandidateInvalid, CandidateExcluded: the candidate must not be
	// selected.
	CandidateDeprecated HeldBackCode = "CandidateDeprecated"
	CandidateInvalid    HeldBackCode = "CandidateInvalid"
	CandidateExcluded   HeldBackCode = "CandidateExcluded"
	// BlockedBySubscription: an earlier Subscription keeps a candidate that
	// excludes this one.
	BlockedBySubscription HeldBackCode = "BlockedBySubscription"
	// NoUpgradeEdge: the installed operator is not the head of its channel, and
	// nothing upgrades from it.
	NoUpgradeEdge HeldBackCode = "NoUpgradeEdge"
	// CatalogMissing, PackageMissing, ChannelMissing: what the Subscription follows
	// is gone; the installed operator stays.
	CatalogMissing HeldBackCode = "CatalogMissing"
	PackageMissing HeldBackCode = "PackageMissing"
	ChannelMissing HeldBackCode = "ChannelMissing"
	// ReplacementInProgress: an upgrade is under way.
	ReplacementInProgress HeldBackCode = "ReplacementInProgress"
	// ChannelMalformed: the channel's upgrade graph gives no order.
	ChannelMalformed HeldBackCode = "ChannelMalformed"
	// Unknown: the step budget ran out before a reason was found.
	Unknown HeldBackCode = "Unknown"
)

// Stats are deterministic measures of the work done.
type Stats struct {
	// Steps are the candidates looked at; the budget bounds them.
	Steps int
	// Expanded are the entries whose requirements were looked up.
	Expanded int
	// Candidates are the candidates of all Subscriptions.
	Candidates int
}
