// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

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

// classes is the table, in the order in which the rows are tried; the last one fits all. Whoever adds a class adds one row.
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
	Class: ClassStuck, Is: func(p *registryPod) bool { return p.startLeft <= 0 && p.Spec.NodeName != "" && !p.Node.doubtful() },
	Active: true, Diagnosed: true,
	Rank: 3, Purpose: registry.PurposeRestart, Fails: true, Reason: ReasonPodStuck, Remove: removeStuck, AvoidNode: true,
	Note: "does not start", Explanation: "it does not start on {node}",
}, {
	Class: ClassStarting, Is: func(*registryPod) bool { return true },
	Live: true, Active: true, Present: true, Diagnosed: true, HoldsPoll: true,
}}

// NodeState is what a Pod's node looks like.
type NodeState string

// Node states; exactly one holds, the first that fits.
const (
	NodeUnassigned   NodeState = "Unassigned"   // the Pod is not bound to a node
	NodeNotObserved  NodeState = "NotObserved"  // the nodes were not read
	NodeGone         NodeState = "Gone"         // there is no such Node object
	NodeOutOfService NodeState = "OutOfService" // not ready, and an administrator says that it is off
	NodeUnreachable  NodeState = "Unreachable"  // it does not report; its Ready condition is Unknown or missing
	NodeNotReady     NodeState = "NotReady"     // it reports that it is not ready
	NodeRecovering   NodeState = "Recovering"   // ready again, but not for long
	NodeLeaving      NodeState = "Leaving"      // ready, with a taint that evicts the Pod
	NodeHealthy      NodeState = "Healthy"      // none of the others
)

// nodeRecoveryWindow is how long the replacement is kept when a Node came back.
const nodeRecoveryWindow = 120 * time.Second

// doubtful: the Node may be about to fail; its grace period decides, and nothing else. failed: new Pods had better avoid it.
// word continues the sentence "node x ...".
func (s NodeState) doubtful() bool { return s == NodeUnreachable || s == NodeNotReady || s == NodeGone }
func (s NodeState) failed() bool   { return s.doubtful() || s == NodeOutOfService || s == NodeRecovering }
func (s NodeState) word() string   { return nodeWords[s] }

var nodeWords = map[NodeState]string{
	NodeGone: "is gone", NodeOutOfService: "is out of service", NodeUnreachable: "is unreachable", NodeNotReady: "is not ready",
}

// grace is how long a Node may be in a doubtful state before its Pods count as lost.
func (c *Config) grace(s NodeState) time.Duration {
	switch s {
	case NodeUnreachable:
		return c.NodeUnreachableGrace
	case NodeNotReady:
		return c.NodeNotReadyGrace
	}
	return c.NodeGoneGrace
}

func nodeReady(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown, LastTransitionTime: n.CreationTimestamp}
}

// nodeOf returns the state of a Pod's Node and since when it is so.
func (f *facts) nodeOf(pod *corev1.Pod) (state NodeState, since time.Time) {
	switch {
	case pod.Spec.NodeName == "":
		return NodeUnassigned, pod.CreationTimestamp.Time
	case !f.Nodes.Complete:
		return NodeNotObserved, time.Time{}
	}
	i := slices.IndexFunc(f.Nodes.Items, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	if i < 0 {
		return NodeGone, boundAt(pod)
	}
	node := f.Nodes.Items[i]
	ready := nodeReady(node)
	since = ready.LastTransitionTime.Time
	switch isReady := ready.Status == corev1.ConditionTrue; {
	case !isReady && slices.ContainsFunc(node.Spec.Taints, outOfService):
		return NodeOutOfService, since
	case ready.Status == corev1.ConditionUnknown:
		return NodeUnreachable, since
	case !isReady:
		return NodeNotReady, since
	// A taint comes first: it is the same for managers whose clocks differ.
	case slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return outOfService(t) || t.Effect == corev1.TaintEffectNoExecute && !tolerated(t, pod.Spec.Tolerations)
	}):
		return NodeLeaving, since
	// A node that became ready for the first time has nothing to recover from.
	case since.Add(nodeRecoveryWindow).Sub(f.Now) > 0 && since.Sub(node.CreationTimestamp.Time) > nodeRecoveryWindow:
		return NodeRecovering, since
	}
	return NodeHealthy, since
}

func outOfService(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }

func tolerated(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			return t.Key != "" && t.Value == taint.Value
		}
		return false
	})
}

// usable returns the Nodes on which a new Pod could run and stay. A Pod leaves a Node that is out of service, whatever it tolerates.
func (f *facts) usable() (usable []*corev1.Node) {
	var tolerations []corev1.Toleration
	selector := map[string]string{corev1.LabelOSStable: "linux"}
	if config := f.CatalogSource.Spec.GrpcPodConfig; config != nil {
		tolerations = config.Tolerations
		if config.NodeSelector != nil {
			selector = config.NodeSelector
		}
	}
	selects := labels.SelectorFromSet(selector)
	for _, n := range f.Nodes.Items {
		repels := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			isRefused := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
			return outOfService(t) || isRefused && !tolerated(t, tolerations)
		})
		if !n.Spec.Unschedulable && nodeReady(n).Status == corev1.ConditionTrue && !repels && selects.Matches(labels.Set(n.Labels)) {
			usable = append(usable, n)
		}
	}
	return usable
}

// disruption is how much of the cluster fails at once.
type disruption int

const (
	noDisruption disruption = iota
	partialDisruption
	totalDisruption
)

// disruptionOf mirrors the threshold at which Kubernetes itself stops evicting in a zone: a fault of that size is
// rather one of the control plane. Nodes are looked at once one of the catalog's is not healthy.
func disruptionOf(pods []*registryPod, nodes []*corev1.Node) disruption {
	const few, share = 2, 0.55
	if !slices.ContainsFunc(pods, func(p *registryPod) bool { return p.Node != NodeHealthy && p.Node != NodeNotObserved && p.Node != "" }) {
		return noDisruption
	}
	all, bad := len(nodes), 0
	for _, n := range nodes {
		bad += one(nodeReady(n).Status != corev1.ConditionTrue)
	}
	switch {
	case all > 0 && bad == all:
		return totalDisruption
	case bad > few && float64(bad) >= share*float64(all):
		return partialDisruption
	}
	return noDisruption
}
