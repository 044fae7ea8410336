// SPDX-License-Identifier: Apache-2.0

package subscription

// Assessment contains the decisions of Reconcile for command lines, metrics and tests.
type Assessment struct {
	// Verdicts has one entry for each Subscription, sorted by name.
	Verdicts []Verdict
	Gate     Gate
	// Blocked says why the namespace cannot be resolved. It is empty if it can.
	Blocked string
}

// Gate says whether the namespace must be resolved.
type Gate string

// Gates.
const (
	// GateNotNeeded means that every Subscription waits for its InstallPlan, or that there is none.
	GateNotNeeded Gate = "NotNeeded"
	// GateNeeded means that the Outcome contains a ResolveRequest.
	GateNeeded Gate = "Needed"
	// GateAnswered means that Input.Resolution is the answer. It is carried out, or waits until its InstallPlan is
	// visible.
	GateAnswered Gate = "Answered"
	// GateDeferred means that statuses must be written first. Call Reconcile again afterwards. Changes that only
	// concern catalogs do not defer the resolution.
	GateDeferred Gate = "Deferred"
	// GateBlocked means that the namespace cannot be resolved. A Diagnostic says why.
	GateBlocked Gate = "Blocked"
)

// Assess returns the decision for each Subscription of the namespace. The error is the *olmcore.InputError of
// Reconcile.
func Assess(in Input) (Assessment, error) {
	n, err := newNamespace(&in, conditionTable)
	if err != nil {
		return Assessment{}, err
	}
	return n.assess(), nil
}

func (n *namespace) assess() Assessment {
	a := Assessment{Verdicts: make([]Verdict, len(n.subs)), Gate: GateNotNeeded, Blocked: n.blocked}
	needed, deferred := false, false
	for i, s := range n.subs {
		v := judge(n, s)
		needed = needed || !v.Waits
		deferred = deferred || v.held
		a.Verdicts[i] = v
	}
	switch {
	case n.blocked != "":
		a.Gate = GateBlocked
	case deferred:
		a.Gate = GateDeferred
	case needed && n.answer.next.reason == "":
		a.Gate = GateAnswered
	case needed:
		a.Gate = GateNeeded
	}
	return a
}
