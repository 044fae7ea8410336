// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
)

// Class is what a registry Pod is worth.
type Class string

// Pod classes; exactly one holds, the first that fits.
const (
	ClassForeign     Class = "Foreign"     // not owned by this CatalogSource; never touched
	ClassTerminated  Class = "Terminated"  // finished, whatever the result
	ClassLost        Class = "Lost"        // its node failed, or it outlived its deletion; it counts for nothing
	ClassTerminating Class = "Terminating" // being deleted
	ClassOutdated    Class = "Outdated"    // made from another spec; it serves while it is ready
	ClassDisrupted   Class = "Disrupted"   // about to be evicted; it serves while it is ready
	ClassServing     Class = "Serving"     // ready
	ClassUnhealthy   Class = "Unhealthy"   // not ready for a reason that another Pod would share
	ClassStuck       Class = "Stuck"       // its node does not start it, and the Pod's status gives no reason
	ClassStarting    Class = "Starting"    // not ready yet, or for a moment
)

// removal is when a Pod of a class is removed, beside what its replacement brings about.
type removal int

const (
	removeReplaced  removal = iota // once others serve in its place
	removeFinished                 // at once, unless it remembers how often the start failed
	removeLost                     // as the ForceDeletePolicy says
	removeDisrupted                // where the policy is OLM's, by force
	removeStuck                    // but for the newest, which remembers
)

// traits are all that is decided because of a class: a row of the table.
type traits struct {
	Class     Class
	Is        func(*registryPod) bool // whether a Pod is of the class; the first row that fits counts
	Live      bool                    // it may serve now or soon
	Active    bool                    // it runs or is expected to, and takes the room of a Pod
	Present   bool                    // it counts as one of the present spec
	Leaves    bool                    // it will not stay
	Diagnosed bool                    // what its containers wait for is looked at, and for how long
	Rank      int                     // the order in which Pods are replaced, 0 for never
	Purpose   string                  // that of the replacement
	Fails     bool                    // the replacement waits for the backoff
	Reason    string                  // that of the action
	Remove    removal                 // when it is removed
	AvoidNode bool                    // new Pods had better run elsewhere
	HoldsPoll bool                    // no poll starts beside it
	// Complaint returns the Reason of ConditionDegraded, empty for none; nil: none.
	Complaint func(*registryPod) string
	// Note and Explanation say what is the matter, in a list of Pods and in the reason of an action; empty: what is wrong
	// with its node or containers.
	Note, Explanation string
}

// classes is the table, in the order in which the rows are tried; the last one fits all. Whoever adds a class adds one
// row.
var classes = []traits{{
	Class: ClassForeign, Is: func(p *registryPod) bool { return !p.Owned },
	Complaint: func(*registryPod) string { return ReasonForeignPod }, Explanation: "it does not belong to the catalog",
}, {
	Class: ClassTerminated, Is: func(p *registryPod) bool { return p.Finished },
	Rank: 3, Purpose: registry.PurposeRestart, Fails: true, Reason: ReasonPodTerminated, Remove: removeFinished,
	Complaint: func(p *registryPod) string {
		if p.held() {
			return ReasonStuckTerminating
		}
		return ""
	},
	Note: "finished", Explanation: "it has finished",
}, {
	Class: ClassLost, Is: func(p *registryPod) bool { return p.Lost != "" },
	Rank: 1, Purpose: registry.PurposeRefill, Remove: removeLost, HoldsPoll: true,
	Complaint: func(p *registryPod) string {
		if p.Lost == ReasonOverdue {
			return ReasonStuckTerminating
		}
		return ReasonNodeLost
	},
}, {
	Class: ClassTerminating, Is: func(p *registryPod) bool { return p.DeletionTimestamp != nil },
	Rank: 2, Purpose: registry.PurposeRefill, Reason: ReasonPodTerminating, Remove: removeDisrupted,
	Note: "terminating", Explanation: "it is being deleted",
}, {
	Class: ClassOutdated, Is: func(p *registryPod) bool { return !p.Current },
	Live: true, Active: true,
	Rank: 5, Purpose: registry.PurposeRollout, Reason: ReasonPodOutdated, HoldsPoll: true,
	Note: "old spec", Explanation: "it was made from another spec",
}, {
	Class: ClassDisrupted, Is: func(p *registryPod) bool { return p.Node == NodeLeaving || p.is(corev1.DisruptionTarget) },
	Live: true, Active: true, Present: true, Leaves: true,
	Rank: 4, Purpose: registry.PurposeRefill, Reason: ReasonPodDisrupted, Remove: removeDisrupted, AvoidNode: true, HoldsPoll: true,
	Note: "about to be evicted", Explanation: "it is about to be evicted",
}, {
	Class: ClassServing, Is: func(p *registryPod) bool { return p.Ready },
	Live: true, Active: true, Present: true,
}, {
	Class: ClassUnhealthy, Is: func(p *registryPod) bool { return troubleOf(p.Pod) != "" },
	Live: true, Active: true, Present: true, Diagnosed: true,
	Complaint: func(p *registryPod) string {
		if p.Probe {
			return "" // ConditionUpdatePolled has it
		}
		return p.Trouble
	},
}, {
	Class: ClassStuck, Is: func(p *registryPod) bool { return p.startLeft <= 0 && p.node() != "" && !p.Node.doubtful() },
	Active: true, Diagnosed: true,
	Rank: 3, Purpose: registry.PurposeRestart, Fails: true, Reason: ReasonPodStuck, Remove: removeStuck, AvoidNode: true,
	Note: "does not start", Explanation: "it does not start on {node}",
}, {
	Class: ClassStarting, Is: func(*registryPod) bool { return true },
	Live: true, Active: true, Present: true, Diagnosed: true, HoldsPoll: true,
}}
