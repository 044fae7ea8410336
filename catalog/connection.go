// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

const stateReady = "READY"

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

// isConnected reports whether a client works. One that was connected goes IDLE
// when nobody asks.
func isConnected(c *Connection) bool {
	return c.State == stateReady || c.State == "IDLE" && !c.LastConnect.IsZero()
}

// appendConnectionFailure says that the Pods are ready and the client is not.
func (v *view) appendConnectionFailure(b []byte) []byte {
	c := v.in.Connection
	if c == nil || isConnected(c) || c.State == "IDLE" || c.Address != v.wantedAddress() {
		return b
	}
	if v.runsPods() && v.tally.ready() == 0 {
		return b
	}
	left := v.left(c.LastTransition, v.set.connected)
	v.waitFor(left)
	if left > 0 {
		return b
	}
	return append(append(b, "no connection to "...), c.Address...)
}

// wantedConnectionState is status.connectionState; the recorded one itself when
// it is right.
//
// Differs: lastConnect is when this catalog's client connected, not when any
// catalog's client changed.
func (v *view) wantedConnectionState() *v1alpha1.GRPCConnectionState {
	have, address := v.cs.Status.GRPCConnectionState, v.wantedAddress()
	if address == "" {
		return have
	}
	if v.in.Connection == nil || v.in.Connection.Address != address {
		if have == nil || have.Address == address {
			return have
		}
		return &v1alpha1.GRPCConnectionState{Address: address, LastObservedState: "IDLE", LastConnectTime: have.LastConnectTime}
	}
	connected := metav1.Time{}
	if have != nil {
		connected = have.LastConnectTime
	}
	if t := v.in.Connection.LastConnect; !t.IsZero() {
		connected = olmcore.Timestamp(t)
	}
	if have != nil && have.Address == address && have.LastObservedState == v.in.Connection.State && have.LastConnectTime.Equal(&connected) {
		return have
	}
	return &v1alpha1.GRPCConnectionState{Address: address, LastObservedState: v.in.Connection.State, LastConnectTime: connected}
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
