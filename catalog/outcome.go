// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/olmcore"

// Outcome is a Result and what only the caller can do.
type Outcome struct {
	olmcore.Result
	// Connection says what to do with the gRPC client of the CatalogSource. The
	// answer is Input.Connection of the next call.
	Connection ConnectionRequest
	// Notify says who else must hear of a change.
	Notify Notify
	// PodHash is to be handed back in the next Input; opaque. It spares the
	// encoding of the whole Pod while nothing in it changed.
	PodHash string
}

// ConnectionRequest is a wish about the gRPC client; it may be repeated without
// harm. The zero value asks for nothing.
type ConnectionRequest struct {
	// Verb is ConnectionKeep, ConnectionConnect or ConnectionDrop.
	Verb ConnectionVerb
	// Address is what to dial, host:port; set with ConnectionConnect only.
	Address string
}

// ConnectionVerb is what to do with a gRPC client.
type ConnectionVerb string

// Connection verbs.
const (
	// ConnectionKeep: leave the client as it is, also when there is none.
	ConnectionKeep ConnectionVerb = ""
	// ConnectionConnect: there shall be a client of that address, and no other.
	ConnectionConnect ConnectionVerb = "Connect"
	// ConnectionDrop: close the client.
	ConnectionDrop ConnectionVerb = "Drop"
)

// Notify lists what depends on the catalog's content. The zero value says that
// it did not change.
type Notify struct {
	// InvalidateSnapshot: what was read from this catalog is out of date.
	InvalidateSnapshot bool
	// ResolveNamespaces are the namespaces to resolve again, sorted.
	ResolveNamespaces []string
}
