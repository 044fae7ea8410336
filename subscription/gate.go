// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strconv"

	"github.com/olmcore/olm/olmcore"
)

// Gate says whether the namespace has to be resolved.
type Gate string

// Gates.
const (
	// GateNotNeeded: every Subscription waits for its plan, or there is none.
	GateNotNeeded Gate = "NotNeeded"
	// GateNeeded: there is a ResolveRequest.
	GateNeeded Gate = "Needed"
	// GateAnswered: the Resolution that was handed in is the answer, and it is
	// carried out or waits for its plan.
	GateAnswered Gate = "Answered"
	// GateDeferred: statuses have to be written first; then call again. What they
	// say of catalogs defers nothing.
	GateDeferred Gate = "Deferred"
	// GateBlocked: the namespace cannot be resolved; a Diagnostic says why.
	GateBlocked Gate = "Blocked"
)

// ResolveRequest asks for the resolution of a namespace: which operators satisfy
// its Subscriptions. Give it to package resolution or another solver, make the
// plan of the answer with create.Plan, and hand both back as
// Input.Resolution.
type ResolveRequest struct {
	Namespace string
	// Subscriptions are what the resolution has to be computed from, sorted by
	// name; the answer repeats them as its Observed.
	Subscriptions []olmcore.SubscriptionFingerprint
	// Fingerprint is the same for equal requests.
	Fingerprint string
	// Reason is one of the Resolve constants.
	Reason string
}

// gate decides whether to ask for a resolution; the verdicts are those about all
// Subscriptions.
func (n *namespace) gate(verdicts []Verdict) Gate {
	needed := slices.ContainsFunc(verdicts, func(v Verdict) bool { return !v.Waits })
	switch {
	case len(verdicts) == 0:
		return GateNotNeeded
	case n.blocked != "":
		return GateBlocked
	case slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.held }):
		return GateDeferred
	case !needed:
		return GateNotNeeded
	case n.answer.again == "":
		return GateAnswered
	}
	return GateNeeded
}

func (n *namespace) request() *ResolveRequest {
	r := &ResolveRequest{Namespace: n.name, Reason: n.answer.again}
	parts := []string{n.name}
	for _, s := range n.subs {
		f := olmcore.FingerprintOf(s)
		r.Subscriptions = append(r.Subscriptions, f)
		parts = append(parts, f.Name, string(f.UID), strconv.FormatInt(f.Generation, 10), f.CurrentCSV, f.InstalledCSV)
	}
	r.Fingerprint = olmcore.NameSuffix(10, parts...)
	return r
}
