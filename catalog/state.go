// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// State is what a CatalogSource is, in one word. It follows from the conditions
// Available and Progressing, so the recorded one can be read from any status.
type State string

// States.
const (
	// StateNew: no condition is recorded yet.
	StateNew State = ""
	// StateStarting: nothing serves yet, the first Pods are starting.
	StateStarting State = "Starting"
	// StateServing: it serves and nothing is under way.
	StateServing State = "Serving"
	// StateUpdating: it serves, and Pods are started or replaced.
	StateUpdating State = "Updating"
	// StateRecovering: nothing serves, and Pods are being replaced.
	StateRecovering State = "Recovering"
	// StateUnavailable: nothing serves, and nothing can be done about it now.
	StateUnavailable State = "Unavailable"
	// StateUnknown: whether it serves is not known.
	StateUnknown State = "Unknown"
	// StateInvalid: nothing serves, and the spec cannot be carried out.
	StateInvalid State = "Invalid"
	// StateDeleting: it is being deleted.
	StateDeleting State = "Deleting"
	// StateNotAssessed: Assess was handed an Input that breaks the contract. No
	// CatalogSource is in this state.
	StateNotAssessed State = "NotAssessed"
)

// edges is the state graph: what one reconcile may find after another. Every
// state is a view of the cluster, and a cluster may have gone anywhere since.
// Only the first state and the last are special.
var edges = map[State][]State{
	StateNew:         {StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid, StateDeleting},
	StateStarting:    {StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid, StateDeleting},
	StateServing:     {StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid, StateDeleting},
	StateUpdating:    {StateServing, StateRecovering, StateUnavailable, StateUnknown, StateInvalid, StateDeleting},
	StateRecovering:  {StateServing, StateUpdating, StateUnavailable, StateUnknown, StateInvalid, StateDeleting},
	StateUnavailable: {StateStarting, StateServing, StateUpdating, StateRecovering, StateUnknown, StateInvalid, StateDeleting},
	StateUnknown:     {StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateInvalid, StateDeleting},
	StateInvalid:     {StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateDeleting},
	StateDeleting:    {},
}

// CanFollow reports whether a reconcile may find state s where another found
// before.
func (s State) CanFollow(before State) bool {
	return slices.Contains(edges[before], s)
}

func stateOf(available metav1.ConditionStatus, why string, progressing metav1.ConditionStatus, how string) State {
	moving := progressing == metav1.ConditionTrue
	switch {
	case why == ReasonDeleting:
		return StateDeleting
	case available == metav1.ConditionTrue && moving:
		return StateUpdating
	case available == metav1.ConditionTrue:
		return StateServing
	case available == metav1.ConditionUnknown:
		return StateUnknown
	case why == ReasonSpecInvalid:
		return StateInvalid
	case moving && how == ReasonInitialRollout:
		return StateStarting
	case moving:
		return StateRecovering
	}
	return StateUnavailable
}

func recordedState(conditions []metav1.Condition) State {
	available := meta.FindStatusCondition(conditions, ConditionAvailable)
	if available == nil {
		return StateNew
	}
	progressing, none := meta.FindStatusCondition(conditions, ConditionProgressing), metav1.Condition{}
	if progressing == nil {
		progressing = &none
	}
	return stateOf(available.Status, available.Reason, progressing.Status, progressing.Reason)
}

// Assessment is the decision of Reconcile without objects: for command lines,
// metrics and tests.
type Assessment struct {
	// Recorded is the state that the status tells, State the one that is observed.
	Recorded, State State
	// Pods are all Pods that are, or pretend to be, the catalog's, by name.
	Pods []PodReport
	// Replicas is the number of Pods asked for, 0 for an address; Ready is how many
	// of Pods serve now.
	Replicas, Ready int
	// Healthy: it serves, or starts for the first time within its deadline.
	// UpstreamHealthy is what OLM would say, which looks at no Pod's readiness.
	Healthy, UpstreamHealthy bool
	// Connected: the gRPC client works; what the gauge catalogsource_ready of OLM
	// tells, without its zero for clients that are idle.
	Connected bool
	// WaitingFor is what is under way, or what holds it up: the Reason and message of
	// ConditionProgressing. Both are empty when nothing is left to do.
	WaitingFor, WaitingText string
	// LastPoll is when the image was polled for the last time, NextPoll when it will
	// be if nothing else is under way then; zero: never.
	LastPoll, NextPoll time.Time
	// Conditions are those that Reconcile would write; their lastTransitionTime is
	// not set.
	Conditions []metav1.Condition
	// Diagnostics say everything that is to be said, also when it is known already.
	Diagnostics []olmcore.Diagnostic
	// NextDeadline is when the decision may change by the clock alone; zero: never.
	NextDeadline time.Time
}

// PodReport is what one Pod is worth and why.
type PodReport struct {
	Name, Node string
	// Serves: it is ready, and has the role that the Service selects. Candidate: it is
	// not selected, and waits to take over.
	Serves, Candidate bool
	Ready             bool
	Class             Class
	// NodeState is what its node looks like, since NodeSince. Both are empty for
	// foreign and terminated Pods.
	NodeState NodeState
	NodeSince time.Time
	// Reason is why a lost Pod is lost, or what holds up an unhealthy one.
	Reason string
}

func notAssessed(in *Input, err error) Assessment {
	d := olmcore.Diagnostic{Severity: olmcore.Error, Reason: ReasonInvalidInput, Message: err.Error()}
	if in.CatalogSource != nil {
		d.Target = olmcore.RefOf(in.CatalogSource).Unversioned()
	}
	return Assessment{Recorded: StateNotAssessed, State: StateNotAssessed, Diagnostics: []olmcore.Diagnostic{d}}
}

// Assess returns what Reconcile sees. An input that Reconcile refuses gives
// StateNotAssessed, and the error as a Diagnostic with ReasonInvalidInput.
func Assess(in Input) Assessment {
	if err := in.validate(); err != nil {
		return notAssessed(&in, err)
	}
	v := observe(&in, &desk{}, nil)
	pl := v.planPods()
	var space room
	wanted := v.conditions(&pl, &space)
	status := v.compareStatus(&wanted)
	a := Assessment{Recorded: status.from, State: status.to, Conditions: export(&wanted, v.cs.Generation)}
	a.Diagnostics = v.diagnostics(a.Conditions)
	for i := range v.pods {
		p := &v.pods[i]
		reason := p.lost
		if reason == "" {
			reason = p.trouble
		}
		a.Pods = append(a.Pods, PodReport{
			Name: p.pod.Name, Node: p.pod.Spec.NodeName, Serves: p.serves(), Candidate: p.role == roleCandidate, Ready: p.ready,
			Class: p.class, NodeState: p.node, NodeSince: p.nodeSince, Reason: reason,
		})
	}
	a.Ready, a.Healthy, a.UpstreamHealthy = v.tally.ready(), v.healthy(a.State), v.upstreamHealthy()
	if v.mode != modeAddress {
		a.Replicas = v.set.replicas
	}
	a.Connected = in.Connection != nil && in.Connection.Address == v.wantedAddress() && linkOf(in.Connection).isConnected()
	if c := a.Conditions[1]; c.Reason != ReasonComplete {
		a.WaitingFor, a.WaitingText = c.Reason, c.Message
	}
	if a.LastPoll = v.poll.last; v.poll.on {
		a.NextPoll = in.Now.Add(max(v.poll.left, 0))
	}
	if d := v.deadline(); d > 0 {
		a.NextDeadline = in.Now.Add(d)
	}
	return a
}
