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

// States of a gRPC client, those without a connection in the order in which one replaces another in the status: see link.
const (
	stateReady      = "READY"
	stateShutdown   = "SHUTDOWN"
	stateIdle       = "IDLE"
	stateConnecting = "CONNECTING"
	stateFailure    = "TRANSIENT_FAILURE"
)

var unconnected = []string{stateShutdown, stateIdle, stateConnecting, stateFailure}

// connectionGrace is how long a client may be without a connection to ready Pods before that is reported.
const connectionGrace = time.Minute

func (f *facts) connectionRequest() ConnectionRequest {
	s, address := f.standing, f.address()
	switch {
	case s.mode == modeDeleting, s.mode == modeInvalid && f.pods.Ready == 0, s.reason == ReasonNameConflict:
		if f.Connection != nil {
			return ConnectionRequest{Verb: ConnectionDrop}
		}
	case address != "" && (f.Connection == nil || f.Connection.Address != address):
		return ConnectionRequest{Verb: ConnectionConnect, Address: address}
	}
	return ConnectionRequest{}
}

// link is the connection that the status records and the conditions follow from. Two controllers have a client each and one
// status, so each takes over what the other wrote unless its own client knows better: it connected later, or lost its
// connection later than the recorded one was made. Where neither is connected the later one of unconnected counts. So the
// status only moves forward, and they do not write against each other, unless their clients disagree and their clocks
// differ by more than olmcore.ClockTolerance: then for as long as those differ.
type link struct {
	address   string // empty while nothing is known of a connection
	state     string
	connected metav1.Time
	wait      time.Duration // until the link may change by the clock alone; 0: never
}

// isConnected reports whether a client works. One that was connected goes IDLE when nothing is asked of it.
func (l link) isConnected() bool {
	return l.state == stateReady || l.state == stateIdle && !l.connected.IsZero()
}

// problem is why there is no connection, as part of a message.
func (c *Connection) problem() string {
	return clip(strings.ReplaceAll(c.Problem, separator, ", "), 500)
}

func linkOf(c *Connection) link {
	l := link{address: c.Address, state: c.State}
	if !c.LastConnect.IsZero() {
		l.connected = olmcore.Timestamp(c.LastConnect)
	}
	return l
}

// observeLink returns the connection to an address that counts: the caller's, or the one that the status records. Each may
// be nil.
func observeLink(own *Connection, recorded *v1alpha1.GRPCConnectionState, address string, now time.Time) link {
	if own != nil && own.Address != address {
		own = nil
	}
	known := recorded != nil && recorded.Address == address
	switch {
	case address == "", recorded == nil && own == nil:
		return link{}
	case !known && own != nil:
		return linkOf(own)
	case !known:
		return link{address: address, state: stateIdle}
	}
	have := link{address: address, state: recorded.LastObservedState, connected: recorded.LastConnectTime}
	if own == nil {
		return have
	}
	return laterLink(have, own, now)
}

func laterLink(have link, own *Connection, now time.Time) link {
	mine := linkOf(own)
	later := mine.connected.After(have.connected.Time)
	if later && mine.connected.After(now) { // the future is another clock's
		have.wait = mine.connected.Sub(now)
		later = false
	}
	if mine.wait = have.wait; !later {
		mine.connected = have.connected
	}
	switch {
	case later || mine.state == have.state:
		return mine
	case mine.state == stateReady:
		// Another client lost its connection, or the status was changed. The other one may be all there is by now, and this
		// one may go next: both get the grace period.
		left := have.connected.Add(connectionGrace).Sub(now)
		if left > 0 && !isFuture(have.connected.Time, now) {
			have.wait = olmcore.Nearest(have.wait, left)
			return have
		}
		mine.connected = olmcore.Timestamp(now)
		return mine
	case have.state == stateReady:
		since, connected := own.LastTransition, have.connected.Time
		if !since.IsZero() && since.Truncate(time.Second).Before(connected) && !isFuture(connected, now) {
			return have
		}
		return mine
	case slices.Index(unconnected, mine.state) > slices.Index(unconnected, have.state):
		return mine
	}
	return have
}

// connectionFailure returns the sentence of ConditionDegraded about ready Pods without a connected client, empty for none,
// and how long it is until it holds. It stays until there is a connection.
func (f *facts) connectionFailure() (text string, wait time.Duration) {
	if f.link.address == "" || f.link.isConnected() || f.link.state == stateIdle || f.standing.runsPods() && f.pods.Ready == 0 {
		return "", 0
	}
	text = "no connection to " + f.link.address
	if c := f.recordedNow(ConditionDegraded); c != nil && strings.Contains(c.Message, text) {
		// What it began with stays, or two controllers with a client each would write against each other.
		_, recorded, _ := strings.Cut(c.Message, text)
		recorded, _, _ = strings.Cut(recorded, separator)
		return text + recorded, 0
	}
	c := f.Connection
	if c == nil || c.Address != f.link.address || linkOf(c).isConnected() {
		return "", 0
	}
	if due := c.LastTransition.Add(connectionGrace); due.After(f.clientNow) {
		return "", max(0, due.Sub(f.Now))
	}
	if problem := c.problem(); problem != "" {
		text += ", which began with: " + problem
	}
	return text, 0
}

// connectionTransition is the change of the connection that a status records with this write; none for one that is not the
// own client's.
func (r *report) connectionTransition(after *v1alpha1.GRPCConnectionState) (changes []olmcore.Transition) {
	before, own := cmp.Or(r.CatalogSource.Status.GRPCConnectionState, &v1alpha1.GRPCConnectionState{}), r.Connection
	if after == nil || before.LastObservedState == after.LastObservedState || own == nil || own.Address != after.Address {
		return nil
	}
	t := olmcore.Moved(olmcore.RefOf(r.CatalogSource), "Connection", before.LastObservedState, after.LastObservedState, r.Now)
	t.Bound, t.Message = olmcore.NotAfter, after.Address
	if problem := own.problem(); problem != "" && own.State == after.LastObservedState {
		t.Message += ": " + problem
	}
	// It may have been in that state before the one that is recorded.
	earlier := before.Address == after.Address && own.LastTransition.Before(before.LastConnectTime.Time)
	if own.State == after.LastObservedState && !own.LastTransition.IsZero() && !earlier {
		t.At, t.Bound = olmcore.Timestamp(own.LastTransition), olmcore.Exact
	}
	return append(changes, t)
}

func (r *report) notify(after *v1alpha1.GRPCConnectionState) (n Notify) {
	before := r.CatalogSource.Status.GRPCConnectionState
	connects := after != nil && after.LastObservedState == stateReady && (before == nil || before.LastObservedState != stateReady)
	deleted := r.state == StateDeleting && r.before != StateDeleting
	if !connects && !deleted && len(r.promotes) == 0 {
		return n
	}
	n = Notify{InvalidateSnapshot: true, ResolveNamespaces: []string{r.CatalogSource.Namespace}}
	if r.CatalogSource.Namespace == r.Config.GlobalCatalogNamespace {
		n.ResolveNamespaces = slices.Compact(slices.Sorted(slices.Values(append(n.ResolveNamespaces, r.Subscribers...))))
	}
	return n
}
