// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/catalog/internal/pods"

// Class is what a registry Pod is worth.
type Class = pods.Class

// Pod classes; exactly one holds, the first that fits.
const (
	ClassForeign     = pods.ClassForeign     // not owned by this CatalogSource; never touched
	ClassTerminated  = pods.ClassTerminated  // finished, whatever the result
	ClassLost        = pods.ClassLost        // its node failed, or it outlived its deletion; it counts for nothing
	ClassTerminating = pods.ClassTerminating // being deleted
	ClassOutdated    = pods.ClassOutdated    // made from another spec; it serves while it is ready
	ClassDisrupted   = pods.ClassDisrupted   // about to be evicted; it serves while it is ready
	ClassStuck       = pods.ClassStuck       // its node does not start it, and the Pod's status gives no reason
	ClassUnhealthy   = pods.ClassUnhealthy   // not ready for a reason that another Pod would share
	ClassStarting    = pods.ClassStarting    // not ready yet, or for a moment
	ClassServing     = pods.ClassServing     // ready
)

// NodeState is what a Pod's node looks like.
type NodeState = pods.NodeState

// Node states; exactly one holds, the first that fits.
const (
	NodeUnassigned   = pods.NodeUnassigned   // the Pod is not bound to a node
	NodeNotObserved  = pods.NodeNotObserved  // the nodes were not read
	NodeGone         = pods.NodeGone         // there is no such Node object
	NodeOutOfService = pods.NodeOutOfService // not ready, and an administrator says that it is off
	NodeUnreachable  = pods.NodeUnreachable  // it does not report; its Ready condition is Unknown or missing
	NodeNotReady     = pods.NodeNotReady     // it reports that it is not ready
	NodeRecovering   = pods.NodeRecovering   // ready again, but not for long
	NodeLeaving      = pods.NodeLeaving      // ready, with a taint that evicts the Pod
	NodeHealthy      = pods.NodeHealthy      // none of the others
)
