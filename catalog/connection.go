// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// States of a gRPC client.
const (
	stateReady      = "READY"
	stateShutdown   = "SHUTDOWN"
	stateIdle       = "IDLE"
	stateConnecting = "CONNECTING"
	stateFailure    = "TRANSIENT_FAILURE"
)

// disconnectedStates contains the states without a connection. In the status, a later state in the list replaces an
// earlier one.
var disconnectedStates = []string{stateShutdown, stateIdle, stateConnecting, stateFailure}

// connectionGrace is how long a client may have no connection to ready Pods before that is reported.
const connectionGrace = time.Minute

// connection is the state of the connection that the status records. The conditions follow from it.
type connection struct {
	address     string // empty if no connection is known
	state       string
	lastConnect metav1.Time
	failure     string        // the message of ConditionConnected; empty if the condition is absent
	changesIn   time.Duration // until the connection may change without an event; 0: never
}

// isConnected reports whether the client works. A client that was connected becomes IDLE when it is not used.
func (c connection) isConnected() bool {
	return c.state == stateReady || c.state == stateIdle && !c.lastConnect.IsZero()
}

// ofClient returns the connection of a client.
func ofClient(client *Connection) connection {
	c := connection{address: client.Address, state: client.State}
	if !client.LastConnect.IsZero() {
		c.lastConnect = olmcore.Timestamp(client.LastConnect)
	}
	return c
}

// problemText returns why the client has no connection, as part of a message.
func problemText(client *Connection) string {
	return clip(strings.ReplaceAll(client.Problem, sentenceSeparator, ", "), 500)
}

// ownClient returns the caller's client if it is one for the present address, else nil.
func (f *facts) ownClient() *Connection {
	c := f.in.Connection
	if c == nil || c.Address != f.address() {
		return nil
	}
	return c
}

// observeConnection returns the connection to the present address. It follows from the caller's client and from the
// recorded connection.
func (f *facts) observeConnection() connection {
	address := f.address()
	client := f.ownClient()
	recorded := f.source.Status.GRPCConnectionState
	if address == "" || recorded == nil && client == nil {
		return connection{}
	}
	sameAddress := recorded != nil && recorded.Address == address
	c := connection{address: address, state: stateIdle}
	if sameAddress {
		c.state = recorded.LastObservedState
		c.lastConnect = recorded.LastConnectTime
	}
	switch {
	case sameAddress && client != nil:
		c = mergeConnections(c, client, f.now)
	case client != nil:
		c = ofClient(client)
	}
	return f.withFailure(c, f.now)
}

// mergeConnections returns the later of the recorded connection and that of this controller's client. Two controllers
// have a client each and write the same status. Each controller keeps what the other one recorded, unless its own
// client connected later, or lost its connection after the recorded client had connected. If neither client is
// connected, the state that is later in disconnectedStates is used. So the controllers do not overwrite each other,
// except if their clients disagree and their clocks differ by more than olmcore.ClockTolerance.
func mergeConnections(recorded connection, client *Connection, now time.Time) connection {
	own := ofClient(client)
	connectedLater := own.lastConnect.After(recorded.lastConnect.Time)
	if connectedLater && own.lastConnect.After(now) { // a time in the future comes from another clock
		recorded.changesIn = own.lastConnect.Sub(now)
		connectedLater = false
	}
	own.changesIn = recorded.changesIn
	if !connectedLater {
		own.lastConnect = recorded.lastConnect
	}

	switch {
	case connectedLater || own.state == recorded.state:
		return own
	case own.state == stateReady:
		// Another client lost its connection, or the status was edited. The own client may be next, so both get the
		// grace period.
		graceLeft := recorded.lastConnect.Add(connectionGrace).Sub(now)
		if graceLeft > 0 && !isFuture(recorded.lastConnect.Time, now) {
			recorded.changesIn = olmcore.Nearest(recorded.changesIn, graceLeft)
			return recorded
		}
		own.lastConnect = olmcore.Timestamp(now)
		return own
	case recorded.state == stateReady:
		lost := client.LastTransition
		lostBefore := !lost.IsZero() && lost.Truncate(time.Second).Before(recorded.lastConnect.Time)
		if lostBefore && !isFuture(recorded.lastConnect.Time, now) {
			return recorded
		}
		return own
	case slices.Index(disconnectedStates, own.state) > slices.Index(disconnectedStates, recorded.state):
		return own
	}
	return recorded
}

// withFailure returns a connection with its failure. clientTime is the time at which the caller's client was observed.
func (f *facts) withFailure(c connection, clientTime time.Time) connection {
	failure, failsIn := f.connectionFailure(c, clientTime)
	c.failure = failure
	c.changesIn = olmcore.Nearest(c.changesIn, failsIn)
	return c
}

// connectionFailure returns the message of ConditionConnected if a client has no connection to ready Pods. Otherwise it
// returns the time until that may be reported. A failure that is recorded stays until there is a connection.
func (f *facts) connectionFailure(c connection, clientTime time.Time) (failure string, failsIn time.Duration) {
	unused := f.standing.runsPods() && len(f.pods.serving.ready()) == 0
	if c.address == "" || c.isConnected() || c.state == stateIdle || unused {
		return "", 0
	}
	// The first message stays, so that two controllers with different clients do not overwrite each other.
	recorded := f.recordedForSpec(ConditionConnected)
	if recorded != nil && recorded.Reason == ReasonConnectionFailed {
		return cmp.Or(clip(recorded.Message, maxRecorded), "no connection to "+c.address), 0
	}
	client := f.ownClient()
	if client == nil || ofClient(client).isConnected() {
		return "", 0
	}
	due := client.LastTransition.Add(connectionGrace)
	if due.After(clientTime) {
		return "", max(0, due.Sub(f.now))
	}
	failure = "no connection to " + c.address
	if problem := problemText(client); problem != "" {
		failure += "; the first error was: " + problem
	}
	return failure, 0
}

// connectionRequest returns what the caller should do with its client.
func connectionRequest(f *facts) ConnectionRequest {
	address, client := f.address(), f.in.Connection
	unusable := f.standing.mode == modeInvalid && len(f.pods.serving.ready()) == 0
	switch {
	case f.standing.mode == modeDeleting || unusable || f.standing.reason == ReasonNameConflict:
		if client != nil {
			return ConnectionRequest{Verb: ConnectionDrop}
		}
	case address != "" && (client == nil || client.Address != address):
		return ConnectionRequest{Verb: ConnectionConnect, Address: address}
	}
	return ConnectionRequest{}
}

// connectionTransitions returns the change of the connection that a status records. A change of another controller's
// client is not reported.
func connectionTransitions(f *facts, after *v1alpha1.GRPCConnectionState) []olmcore.Transition {
	before := cmp.Or(f.source.Status.GRPCConnectionState, &v1alpha1.GRPCConnectionState{})
	client := f.in.Connection
	if after == nil || before.LastObservedState == after.LastObservedState || client == nil || client.Address != after.Address {
		return nil
	}
	t := olmcore.Moved(olmcore.RefOf(f.source), "Connection", before.LastObservedState, after.LastObservedState, f.now)
	t.Bound = olmcore.NotAfter
	t.Message = after.Address
	if client.State == after.LastObservedState {
		if problem := problemText(client); problem != "" {
			t.Message += ": " + problem
		}
		// The client may have entered the state before the recorded client connected.
		earlier := before.Address == after.Address && client.LastTransition.Before(before.LastConnectTime.Time)
		if !client.LastTransition.IsZero() && !earlier {
			t.At = olmcore.Timestamp(client.LastTransition)
			t.Bound = olmcore.Exact
		}
	}
	return []olmcore.Transition{t}
}
