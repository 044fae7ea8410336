// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// Phase is the combined state of a Subscription, its InstallPlan and its ClusterServiceVersion.
type Phase string

// These are the phases. The table that Phases returns contains their order and their meaning.
const (
	Failed             Phase = "Failed"
	Stuck              Phase = "Stuck"
	Degraded           Phase = "Degraded"
	WaitingForApproval Phase = "WaitingForApproval"
	Resolving          Phase = "Resolving"
	Unpacking          Phase = "Unpacking"
	Installing         Phase = "Installing"
	Upgrading          Phase = "Upgrading"
	Deleting           Phase = "Deleting"
	Installed          Phase = "Installed"
)

// PhaseRow is one row of the table of phases: a phase and its meaning.
type PhaseRow struct {
	Phase   Phase
	Meaning string
}

// phases is the table of phases, the worst first.
var phases = []PhaseRow{
	{Failed, "No version of the operator works, and the last attempt failed."},
	{Stuck, "Nothing failed, but the Subscription makes no progress until something is changed."},
	{Degraded, "An installed operator has stopped working or cannot be upgraded."},
	{WaitingForApproval, "The InstallPlan needs an approval."},
	{Resolving, "The version to install has not been resolved yet."},
	{Unpacking, "Bundle images are being unpacked."},
	{Installing, "The first version is being installed."},
	{Upgrading, "A newer version is being installed."},
	{Deleting, "The Subscription is being deleted. Its operator is kept, but is not upgraded any more."},
	{Installed, "The operator works, and no newer version can be installed. " +
		"If the catalogs are unavailable, or a newer version is held back, the message says so."},
}

// Phases returns the table of phases, ordered from the worst to the best.
func Phases() []PhaseRow { return slices.Clone(phases) }

// Badness returns how bad a phase is: 0 for Installed, and a higher number for each worse phase. An unknown phase has
// the highest number.
func (p Phase) Badness() int {
	i := slices.IndexFunc(phases, func(r PhaseRow) bool { return r.Phase == p })
	return len(phases) - 1 - i
}
