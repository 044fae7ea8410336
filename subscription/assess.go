// SPDX-License-Identifier: Apache-2.0

package subscription

// Assessment is what Reconcile would decide, without the actions: for command lines, metrics and tests.
type Assessment struct {
	// Verdicts has one entry for each Subscription, sorted by name.
	Verdicts []Verdict
	Gate     Gate
	// Blocked says why the namespace cannot be resolved, empty where it can.
	Blocked string
}

// Gate says whether the namespace has to be resolved.
type Gate string

// Gates.
const (
	// GateNotNeeded: every Subscription waits for its plan, or there is none.
	GateNotNeeded Gate = "NotNeeded"
	// GateNeeded: there is a ResolveRequest.
	GateNeeded Gate = "Needed"
	// GateAnswered: the Resolution that was handed in is the answer, and it is carried out or waits for its plan.
	GateAnswered Gate = "Answered"
	// GateDeferred: statuses have to be written first; then call again. What they say of catalogs defers nothing.
	GateDeferred Gate = "Deferred"
	// GateBlocked: the namespace cannot be resolved; a Diagnostic says why.
	GateBlocked Gate = "Blocked"
)

// Assess returns the decision for each Subscription of the namespace. The error is the *olmcore.InputError of Reconcile.
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
		v := &a.Verdicts[i]
		v.Subscription = s
		n.judge(v)
		needed, deferred = needed || !v.Waits, deferred || v.held
	}
	switch {
	case n.blocked != "":
		a.Gate = GateBlocked
	case deferred:
		a.Gate = GateDeferred
	case needed && n.answer.again == "":
		a.Gate = GateAnswered
	case needed:
		a.Gate = GateNeeded
	}
	return a
}
