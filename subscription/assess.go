// SPDX-License-Identifier: Apache-2.0

package subscription

// Assessment contains the decisions of Reconcile for command lines, metrics and tests.
type Assessment struct {
	// Decisions contains one Decision for each Subscription, sorted by name.
	Decisions []Decision
	Gate      Gate
	// Blocked is the reason why the namespace cannot be resolved. It is empty if the namespace can be resolved.
	Blocked string
}

// Gate is the decision whether the namespace must be resolved.
type Gate string

// Gates.
const (
	// GateNotNeeded means that no Subscription needs a resolution, for example because each one waits for its
	// InstallPlan.
	GateNotNeeded Gate = "NotNeeded"
	// GateNeeded means that the Outcome contains a ResolveRequest.
	GateNeeded Gate = "Needed"
	// GateAnswered means that Input.Resolution still applies, so no new resolution is requested.
	GateAnswered Gate = "Answered"
	// GateDeferred means that statuses must be written before the namespace is resolved. Write the statuses, and then call
	// Reconcile again.
	GateDeferred Gate = "Deferred"
	// GateBlocked means that the namespace cannot be resolved. A Diagnostic contains the reason.
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
	a := Assessment{Decisions: make([]Decision, len(n.subs)), Gate: GateNotNeeded, Blocked: n.blocked}
	needed, deferred := false, false
	for i, s := range n.subs {
		v := judge(n, s)
		needed = needed || !v.Waits
		deferred = deferred || v.held
		a.Decisions[i] = v
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
