// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/catalog/internal/pods"

// Class is what a registry Pod is worth.
type Class = pods.Class

// Pod classes; exactly one holds, the first that fits.
const (
	// ClassForeign: not owned by this CatalogSource; never touched.
	ClassForeign = pods.ClassForeign
	// ClassTerminated: finished, whatever the result.
	ClassTerminated = pods.ClassTerminated
	// ClassLost: its node failed, or it outlived its deletion; it counts for nothing.
	ClassLost = pods.ClassLost
	// ClassTerminating: being deleted.
	ClassTerminating = pods.ClassTerminating
	// ClassOutdated: made from another spec; it serves while it is ready.
	ClassOutdated = pods.ClassOutdated
	// ClassDisrupted: about to be evicted; it serves while it is ready.
	ClassDisrupted = pods.ClassDisrupted
	// ClassStuck: its node does not start it, for no reason that the Pod tells.
	ClassStuck = pods.ClassStuck
	// ClassUnhealthy: not ready for a reason that another Pod would share.
	ClassUnhealthy = pods.ClassUnhealthy
	// ClassStarting: not ready yet, or for a moment.
	ClassStarting = pods.ClassStarting
	// ClassServing: ready.
	ClassServing = pods.ClassServing
)

// NodeState is what a Pod's node looks like.
type NodeState = pods.NodeState

// Node states; exactly one holds, the first that fits.
const (
	// NodeUnassigned: the Pod is not bound to a node.
	NodeUnassigned = pods.NodeUnassigned
	// NodeNotObserved: the nodes were not read.
	NodeNotObserved = pods.NodeNotObserved
	// NodeGone: there is no such Node object.
	NodeGone = pods.NodeGone
	// NodeOutOfService: not ready, and an administrator says that it is off.
	NodeOutOfService = pods.NodeOutOfService
	// NodeUnreachable: it does not report; its Ready condition is Unknown or missing.
	NodeUnreachable = pods.NodeUnreachable
	// NodeNotReady: it reports that it is not ready.
	NodeNotReady = pods.NodeNotReady
	// NodeRecovering: ready again, but not for long.
	NodeRecovering = pods.NodeRecovering
	// NodeLeaving: ready, with a taint that evicts the Pod.
	NodeLeaving = pods.NodeLeaving
	// NodeHealthy: none of the others.
	NodeHealthy = pods.NodeHealthy
)
