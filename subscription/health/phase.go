// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// Phase is where a Subscription stands together with its InstallPlan and its ClusterServiceVersion.
type Phase string

// Phases; the table phases has their order and says what they mean.
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

// PhaseRow is a row of the table of phases.
type PhaseRow struct {
	Phase   Phase
	Meaning string
}

// phases is the table of phases, the worst first.
var phases = []PhaseRow{
	{Failed, "Nothing that works is installed, and what was tried has failed."},
	{Stuck, "Nothing failed, and yet nothing will ever happen."},
	{Degraded, "An operator is installed, and it has stopped working or cannot be upgraded."},
	{WaitingForApproval, "The InstallPlan has to be approved."},
	{Resolving, "It is not known yet what has to be installed."},
	{Unpacking, "Bundle images are being unpacked."},
	{Installing, "The first version is being installed."},
	{Upgrading, "A newer version is being installed."},
	{Deleting, "The Subscription is being deleted. What it installed stays, and no newer version is looked for."},
	{Installed, "The operator runs, and no newer version is known that could be installed. The message says so when the catalogs cannot be asked, or when a newer version is held back."},
}

// Phases returns the table of phases, the worst first.
func Phases() []PhaseRow { return slices.Clone(phases) }

// Badness is the position of a phase in Phases, counted from the end: 0 for Installed, more for what is worse, and the
// most for a phase that is not in the table.
func (p Phase) Badness() int {
	i := slices.IndexFunc(phases, func(r PhaseRow) bool { return r.Phase == p })
	return len(phases) - 1 - i
}
