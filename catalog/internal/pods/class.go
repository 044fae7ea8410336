// SPDX-License-Identifier: Apache-2.0

package pods

import "github.com/olmcore/olm/catalog/internal/registry"

// Class is what a registry Pod is worth. Package catalog documents the classes.
type Class string

// Classes.
const (
	ClassForeign     Class = "Foreign"
	ClassTerminated  Class = "Terminated"
	ClassLost        Class = "Lost"
	ClassTerminating Class = "Terminating"
	ClassOutdated    Class = "Outdated"
	ClassDisrupted   Class = "Disrupted"
	ClassStuck       Class = "Stuck"
	ClassUnhealthy   Class = "Unhealthy"
	ClassStarting    Class = "Starting"
	ClassServing     Class = "Serving"
)

// Reasons that follow from a class; package catalog documents them.
const (
	ReasonPodTerminating = "PodTerminating"
	ReasonPodTerminated  = "PodTerminated"
	ReasonPodStuck       = "PodStuck"
	ReasonPodOutdated    = "PodOutdated"
	ReasonPodDisrupted   = "PodDisrupted"

	ReasonNodeLost         = "NodeLost"
	ReasonStuckTerminating = "StuckTerminating"
	ReasonForeignPod       = "ForeignPod"
)

// Removal is when a Pod of a class is removed, beside what its replacement brings about.
type Removal int

const (
	// RemoveReplaced: once others serve in its place.
	RemoveReplaced Removal = iota
	// RemoveFinished: at once, unless it remembers how often the start failed.
	RemoveFinished
	// RemoveLost: as the ForceDeletePolicy says.
	RemoveLost
	// RemoveDisrupted: where the policy is OLM's, by force.
	RemoveDisrupted
	// RemoveStuck: but for the newest, which remembers.
	RemoveStuck
)

// Traits are all that is decided because of a class: a row of the table.
type Traits struct {
	Class Class
	// Is reports whether a Pod is of the class; the first row that fits counts.
	Is func(*Pod) bool

	// Live: it may serve now or soon. Active: it runs or is expected to, and takes the
	// room of a Pod.
	Live, Active bool
	// Present: it counts as one of the present spec. Leaves: it will not stay.
	Present, Leaves bool
	// Diagnosed: what its containers wait for is looked at, and for how long.
	Diagnosed bool

	// Rank is the order in which Pods are replaced, 0 for never; Purpose is that of the
	// replacement. Fails: it waits for the backoff. Reason is that of the action.
	Rank    int
	Purpose string
	Fails   bool
	Reason  string
	// Remove is when it is removed. AvoidNode: new Pods had better run elsewhere.
	Remove    Removal
	AvoidNode bool
	// HoldsPoll: no poll starts beside it.
	HoldsPoll bool

	// Complaint returns the Reason of ConditionDegraded, empty for none; nil: none.
	Complaint func(*Pod) string
	// Note and Explanation say what is the matter, in a list of Pods and in the reason
	// of an action; empty: what is wrong with its node or containers.
	Note, Explanation string
}

// Table holds the classes in the order in which they are tried. The last one fits all.
type Table []Traits

// Classes is the table: whoever adds a class adds one row.
var Classes = Table{{
	Class: ClassForeign, Is: func(p *Pod) bool { return !p.Owned },
	Complaint: func(*Pod) string { return ReasonForeignPod }, Explanation: "it does not belong to the catalog",
}, {
	Class: ClassTerminated, Is: func(p *Pod) bool { return p.Finished },
	Rank: 3, Purpose: registry.PurposeRestart, Fails: true, Reason: ReasonPodTerminated, Remove: RemoveFinished,
	Complaint: func(p *Pod) string {
		if p.Held() {
			return ReasonStuckTerminating
		}
		return ""
	},
	Note: "finished", Explanation: "it has finished",
}, {
	Class: ClassLost, Is: func(p *Pod) bool { return p.Lost != "" },
	Rank: 1, Purpose: registry.PurposeRefill, Remove: RemoveLost, HoldsPoll: true,
	Complaint: func(p *Pod) string {
		if p.Lost == ReasonOverdue {
			return ReasonStuckTerminating
		}
		return ReasonNodeLost
	},
}, {
	Class: ClassTerminating, Is: func(p *Pod) bool { return p.Object.DeletionTimestamp != nil },
	Rank: 2, Purpose: registry.PurposeRefill, Reason: ReasonPodTerminating, Remove: RemoveDisrupted,
	Note: "terminating", Explanation: "it is being deleted",
}, {
	Class: ClassOutdated, Is: func(p *Pod) bool { return !p.Current },
	Live: true, Active: true,
	Rank: 5, Purpose: registry.PurposeRollout, Reason: ReasonPodOutdated, HoldsPoll: true,
	Note: "old spec", Explanation: "it was made from another spec",
}, {
	Class: ClassDisrupted, Is: func(p *Pod) bool { return p.Node == NodeLeaving || p.DisruptionTarget() },
	Live: true, Active: true, Present: true, Leaves: true,
	Rank: 4, Purpose: registry.PurposeRefill, Reason: ReasonPodDisrupted, Remove: RemoveDisrupted, AvoidNode: true, HoldsPoll: true,
	Note: "about to be evicted", Explanation: "it is about to be evicted",
}, {
	Class: ClassServing, Is: func(p *Pod) bool { return p.Ready },
	Live: true, Active: true, Present: true,
}, {
	Class: ClassUnhealthy, Is: func(p *Pod) bool { return troubleOf(p.Object) != "" },
	Live: true, Active: true, Present: true, Diagnosed: true,
	Complaint: func(p *Pod) string {
		if p.Probe {
			return "" // ConditionUpdatePolled has it
		}
		return p.Trouble
	},
}, {
	Class: ClassStuck, Is: func(p *Pod) bool { return p.overdueToStart() && p.Object.Spec.NodeName != "" && !p.Node.Doubtful() },
	Active: true, Diagnosed: true,
	Rank: 3, Purpose: registry.PurposeRestart, Fails: true, Reason: ReasonPodStuck, Remove: RemoveStuck, AvoidNode: true,
	Note: "does not start", Explanation: "it does not start on {node}",
}, {
	Class: ClassStarting, Is: func(*Pod) bool { return true },
	Live: true, Active: true, Present: true, Diagnosed: true, HoldsPoll: true,
}}

// of returns the first row that fits a Pod.
func (t Table) of(p *Pod) *Traits {
	for i := range t {
		if t[i].Is(p) {
			return &t[i]
		}
	}
	return &t[len(t)-1]
}
