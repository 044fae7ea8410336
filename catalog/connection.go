// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// States of a gRPC client, those without a connection in the order in which one
// replaces another in the status: see link.
const (
	stateReady      = "READY"
	stateShutdown   = "SHUTDOWN"
	stateIdle       = "IDLE"
	stateConnecting = "CONNECTING"
	stateFailure    = "TRANSIENT_FAILURE"
)

var unconnected = []string{stateShutdown, stateIdle, stateConnecting, stateFailure}

func isConnectionState(state string) bool {
	return state == stateReady || slices.Contains(unconnected, state)
}

// wantedAddress is what the client shall dial; empty while it is unknown.
//
// Differs: an image wins over spec.address, as the API says.
func (v *view) wantedAddress() string {
	switch {
	case v.mode == modeAddress:
		return v.cs.Spec.Address
	case v.runsPods() && v.service() != nil:
		return v.serviceAddress()
	}
	return ""
}

func (v *view) connectionRequest() ConnectionRequest {
	switch {
	case v.mode == modeDeleting, v.mode == modeInvalid && v.tally.ready() == 0, v.mode == modeBlocked && v.blocked == ReasonNameConflict:
		if v.in.Connection != nil {
			return ConnectionRequest{Verb: ConnectionDrop}
		}
		return ConnectionRequest{}
	}
	address := v.wantedAddress()
	if address == "" || v.in.Connection != nil && v.in.Connection.Address == address {
		return ConnectionRequest{}
	}
	return ConnectionRequest{Verb: ConnectionConnect, Address: address}
}

// link is the connection that the status tells and the conditions follow from. Two
// controllers have a client each and one status, so each takes over what the other
// wrote unless its own client knows better: it connected later, or lost its
// connection later than the recorded one was made. Where neither is connected the
// later one of unconnected counts. So the status only moves forward, and they do not
// write against each other, unless their clients disagree and their clocks do: then
// for as long as those differ.
type link struct {
	// address is empty while nothing is known of a connection.
	address, state string
	connected      metav1.Time
}

// isConnected reports whether a client works. One that was connected goes IDLE
// when nobody asks.
func (l link) isConnected() bool {
	return l.state == stateReady || l.state == stateIdle && !l.connected.IsZero()
}

// linkOf returns the connection of a client.
func linkOf(c *Connection) link {
	l := link{address: c.Address, state: c.State}
	if !c.LastConnect.IsZero() {
		l.connected = olmcore.Timestamp(c.LastConnect)
	}
	return l
}

// observeLink finds the connection that counts.
func (v *view) observeLink() link {
	address, own := v.wantedAddress(), v.in.Connection
	recorded := v.cs.Status.GRPCConnectionState
	if own != nil && own.Address != address {
		own = nil
	}
	switch {
	case address == "":
		return link{}
	case recorded == nil && own == nil:
		return link{}
	case recorded == nil || recorded.Address != address:
		if own == nil {
			return link{address: address, state: stateIdle}
		}
		return linkOf(own)
	}
	have := link{address: address, state: recorded.LastObservedState, connected: recorded.LastConnectTime}
	if own == nil {
		return have
	}
	return v.laterLink(have, own)
}

// laterLink returns the recorded connection or that of the own client.
func (v *view) laterLink(have link, own *Connection) link {
	mine := linkOf(own)
	later := mine.connected.After(have.connected.Time)
	if later && mine.connected.After(v.in.Now) { // the future is another clock's
		v.waitFor(mine.connected.Sub(v.in.Now))
		later = false
	}
	if !later {
		mine.connected = have.connected
	}
	switch {
	case later || mine.state == have.state:
		return mine
	case mine.state == stateReady:
		// Another client lost its connection, or the status was changed. The other one
		// may be all there is by now, and this one may go next: both get the grace period.
		left := v.left(have.connected.Time, v.set.connected)
		if left > 0 && !have.connected.After(v.in.Now) {
			v.waitFor(left)
			return have
		}
		mine.connected = olmcore.Timestamp(v.in.Now)
		return mine
	case have.state == stateReady:
		if since := own.LastTransition; !since.IsZero() && since.Truncate(time.Second).Before(have.connected.Time) && !have.connected.After(v.in.Now) {
			return have
		}
		return mine
	case slices.Index(unconnected, mine.state) > slices.Index(unconnected, have.state):
		return mine
	}
	return have
}

// connectionFailure starts what is said of a client that cannot connect.
const connectionFailure = "no connection to "

// appendConnectionFailure says that the Pods are ready and the client is not. Once
// that is said it stays until there is a connection.
func (v *view) appendConnectionFailure(b []byte) []byte {
	if v.link.address == "" || v.link.isConnected() || v.link.state == stateIdle || v.runsPods() && v.tally.ready() == 0 {
		return b
	}
	if !v.saidConnectionFailure() && !v.failsToConnect() {
		return b
	}
	return append(append(b, connectionFailure...), v.link.address...)
}

// failsToConnect reports whether the own client is without a connection for longer
// than the grace period.
func (v *view) failsToConnect() bool {
	c := v.in.Connection
	if c == nil || c.Address != v.link.address || linkOf(c).isConnected() {
		return false
	}
	left := v.left(c.LastTransition, v.set.connected)
	v.waitFor(left)
	return left <= 0
}

func (v *view) saidConnectionFailure() bool {
	c := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionDegraded)
	return c != nil && c.ObservedGeneration == v.cs.Generation && strings.Contains(c.Message, connectionFailure+v.link.address)
}

// wantedConnectionState is status.connectionState; the recorded one itself when
// it is right.
//
// Differs: lastConnect is when this catalog's client connected, not when any
// catalog's client changed.
func (v *view) wantedConnectionState() *v1alpha1.GRPCConnectionState {
	have, want := v.cs.Status.GRPCConnectionState, &v.link
	if want.address == "" || have != nil && have.Address == want.address && have.LastObservedState == want.state && have.LastConnectTime.Equal(&want.connected) {
		return have
	}
	return &v1alpha1.GRPCConnectionState{Address: want.address, LastObservedState: want.state, LastConnectTime: want.connected}
}

// connectionSince is when the own client came into the state that the status tells
// with this write; zero when that is not known.
func (v *view) connectionSince(state *v1alpha1.GRPCConnectionState) time.Time {
	own := v.in.Connection
	if own == nil || own.Address != state.Address || own.State != state.LastObservedState {
		return time.Time{}
	}
	if have := v.cs.Status.GRPCConnectionState; have != nil && have.Address == state.Address && own.LastTransition.Before(have.LastConnectTime.Time) {
		return time.Time{} // it was in that state before the one that is recorded
	}
	return own.LastTransition
}

// notify says who must hear of what changes with this result.
func (v *view) notify(pl *plan, changes *statusChange) (n Notify) {
	before, after := v.cs.Status.GRPCConnectionState, changes.connection
	connects := after != nil && after.LastObservedState == stateReady && (before == nil || before.LastObservedState != stateReady)
	goes := v.mode == modeDeleting && changes.from != StateDeleting
	if !connects && !goes && len(pl.promotes) == 0 {
		return n
	}
	n.InvalidateSnapshot = true
	n.ResolveNamespaces = []string{v.cs.Namespace}
	if v.cs.Namespace == v.set.global {
		n.ResolveNamespaces = append(n.ResolveNamespaces, v.in.Subscribers...)
		slices.Sort(n.ResolveNamespaces)
		n.ResolveNamespaces = slices.Compact(n.ResolveNamespaces)
	}
	return n
}
