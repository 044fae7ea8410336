// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
)

// Outcome is the verdict on a namespace.
type Outcome string

// Outcomes.
const (
	// Resolved: there is something to install, to upgrade or to write down.
	Resolved Outcome = "Resolved"
	// Unchanged: all is well as it is.
	Unchanged Outcome = "Unchanged"
	// Unsatisfiable: what is asked for contradicts itself; it stays so until the input changes.
	Unsatisfiable Outcome = "Unsatisfiable"
	// Failed: something in the input stops the namespace, or the step budget ran out.
	Failed Outcome = "Failed"
	// Blocked: the namespace cannot be resolved at all, for want of exactly one OperatorGroup.
	Blocked Outcome = "Blocked"
)

// Result is the answer of Resolve. The embedded Resolution is what other packages act on; the rest explains it.
type Result struct {
	olmcore.Resolution
	Outcome Outcome
	// Targets says where each Subscription ends, sorted by name.
	Targets []Target
	// HeldBack are the Subscriptions whose best candidate was not taken, sorted by name.
	HeldBack []HeldBack
	// Cores are the independent reasons of a failure, in the order of the Subscriptions. With Policy.AllOrNothing off
	// there may be some beside a solution for the other Subscriptions.
	Cores       []Core
	Diagnostics []olmcore.Diagnostic
	Stats       Stats
}

// CoresFor returns the reasons that name a Subscription, and those that name none and so stop all of them.
func (r Result) CoresFor(subscription string) []Core { return explain.CoresFor(r.Cores, subscription) }
