// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NodeState is the state of the Node that a Pod runs on.
type NodeState string

// Node states. A Pod has exactly one: the first row of nodeClasses that matches.
const (
	NodeUnassigned   NodeState = "Unassigned"   // the Pod is not bound to a Node
	NodeNotObserved  NodeState = "NotObserved"  // the Nodes were not read
	NodeGone         NodeState = "Gone"         // the Node object does not exist
	NodeOutOfService NodeState = "OutOfService" // the Node is not ready and has the taint out-of-service
	NodeUnreachable  NodeState = "Unreachable"  // the kubelet does not report: the Ready condition is Unknown or missing
	NodeNotReady     NodeState = "NotReady"     // the kubelet reports that the Node is not ready
	NodeLeaving      NodeState = "Leaving"      // the Node is ready and has a taint that evicts the Pod
	NodeRecovering   NodeState = "Recovering"   // the Node became ready again a short time ago
	NodeHealthy      NodeState = "Healthy"      // the Node is in none of the other states
)

// nodeRecoveryWindow is the time for which a Node is recovering after it became ready again.
const nodeRecoveryWindow = 120 * time.Second

// podNode contains a Pod and its Node.
type podNode struct {
	pod      *corev1.Pod
	node     *corev1.Node         // nil if the Node does not exist or was not read
	ready    corev1.NodeCondition // the Ready condition of the Node
	observed bool                 // the Nodes were read
	now      time.Time
}

// nodeClass is one row of the table of Node states. To add a state, add a row.
type nodeClass struct {
	State   NodeState
	Matches func(podNode) bool
	// Since returns the time at which Grace and Lasts start: when the Node entered the state, or an earlier time if that
	// is not recorded.
	Since func(podNode) time.Time
	// Lasts is how long a Node is in the state. Zero: until the Node changes.
	Lasts time.Duration
	// Grace returns how long the Node may be in the state before its Pods are lost. nil: there is no grace period.
	Grace func(Config) time.Duration
	// LostReason is the reason of a Pod that is lost because of the state. Empty: no Pod is lost.
	LostReason string
	// LosesReadyPods is true if Pods are lost even if their Ready condition is still True.
	LosesReadyPods bool
	// Certain is true if no kubelet can still run the Pod, so that it may be deleted by force.
	Certain bool
	// Answers is true if the kubelet is known to work.
	Answers bool
	// Evicts is true if the Pod is about to be evicted.
	Evicts bool
	// Avoid is true if new Pods prefer other Nodes.
	Avoid bool
	// Preference orders Pods that could serve. Lower is better.
	Preference int
	// Phrase completes the sentence "node x ...". Empty: messages do not mention the state.
	Phrase string
}

// LosesPods reports whether the Pods of a Node in the state are lost, at once or after a grace period.
func (s NodeState) LosesPods() bool {
	return slices.ContainsFunc(nodeClasses, func(c nodeClass) bool { return c.State == s && c.LostReason != "" })
}

// nodeClasses is the table. The first row that matches is the state of a Node, and the last row matches every Node.
var nodeClasses = []nodeClass{{
	State: NodeUnassigned, Matches: func(n podNode) bool { return n.pod.Spec.NodeName == "" },
	Since:      func(n podNode) time.Time { return n.pod.CreationTimestamp.Time },
	Preference: 3,
}, {
	State: NodeNotObserved, Matches: func(n podNode) bool { return !n.observed },
	Since: func(podNode) time.Time { return time.Time{} },
}, {
	State: NodeGone, Matches: func(n podNode) bool { return n.node == nil },
	Since: func(n podNode) time.Time { return boundAt(n.pod) },
	Grace: func(c Config) time.Duration { return c.NodeGoneGrace }, LostReason: ReasonNodeGone, LosesReadyPods: true,
	Certain: true, Avoid: true, Preference: 3, Phrase: "is gone",
}, {
	State: NodeOutOfService, Matches: func(n podNode) bool { return n.ready.Status != corev1.ConditionTrue && n.hasTaint(isOutOfService) },
	Since:      readySince,
	LostReason: ReasonNodeOutOfService, LosesReadyPods: true,
	Certain: true, Avoid: true, Preference: 3, Phrase: "is out of service",
}, {
	State: NodeUnreachable, Matches: func(n podNode) bool { return n.ready.Status == corev1.ConditionUnknown },
	Since: readySince,
	Grace: func(c Config) time.Duration { return c.NodeUnreachableGrace }, LostReason: ReasonNodeUnreachable,
	Avoid: true, Preference: 3, Phrase: "is unreachable",
}, {
	State: NodeNotReady, Matches: func(n podNode) bool { return n.ready.Status != corev1.ConditionTrue },
	Since: readySince,
	Grace: func(c Config) time.Duration { return c.NodeNotReadyGrace }, LostReason: ReasonNodeNotReady,
	Avoid: true, Preference: 3, Phrase: "is not ready",
}, {
	// This row is before NodeRecovering, because managers whose clocks differ see the same taint but may disagree about
	// the recovery window.
	State: NodeLeaving, Matches: func(n podNode) bool { return n.hasTaint(n.evicts) },
	Since:   readySince,
	Answers: true, Evicts: true, Preference: 2,
}, {
	State: NodeRecovering, Matches: podNode.becameReadyAgain,
	Since: readySince, Lasts: nodeRecoveryWindow,
	Answers: true, Avoid: true, Preference: 1,
}, {
	State: NodeHealthy, Matches: func(podNode) bool { return true },
	Since:   readySince,
	Answers: true,
}}

// noNode is the class of the Node of a Pod that has finished or is owned by another. The Node of such a Pod is not
// evaluated.
var noNode = nodeClass{Preference: 3}

// mayFail reports whether the state has a grace period. The Pods of a Node are lost if the Node does not leave the
// state before the end of that period.
func (c *nodeClass) mayFail() bool { return c.Grace != nil }

func readySince(n podNode) time.Time { return n.ready.LastTransitionTime.Time }

// hasTaint reports whether a taint of the Node matches.
func (n podNode) hasTaint(is func(corev1.Taint) bool) bool {
	return slices.ContainsFunc(n.node.Spec.Taints, is)
}

// evicts reports whether a taint evicts the Pod.
func (n podNode) evicts(t corev1.Taint) bool {
	return isOutOfService(t) || t.Effect == corev1.TaintEffectNoExecute && !tolerated(t, n.pod.Spec.Tolerations)
}

// becameReadyAgain reports whether the Node became ready within the recovery window. A Node that became ready for the
// first time has nothing to recover from.
func (n podNode) becameReadyAgain() bool {
	since := readySince(n)
	return n.now.Sub(since) < nodeRecoveryWindow && since.Sub(n.node.CreationTimestamp.Time) > nodeRecoveryWindow
}

// observeNode returns the class of the Node of a Pod, and the time that Since of the class returns.
func (f *facts) observeNode(pod *corev1.Pod) (class *nodeClass, since time.Time) {
	n := podNode{pod: pod, observed: f.in.Nodes.Complete, now: f.now}
	i := slices.IndexFunc(f.in.Nodes.Items, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName })
	if i >= 0 {
		n.node = f.in.Nodes.Items[i]
		n.ready = readyCondition(n.node)
	}
	row := slices.IndexFunc(nodeClasses, func(c nodeClass) bool { return c.Matches(n) })
	class = &nodeClasses[row]
	return class, class.Since(n)
}

// readyCondition returns the Ready condition of a Node. If the Node has none, its status is Unknown since the creation.
func readyCondition(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown, LastTransitionTime: n.CreationTimestamp}
}

func isOutOfService(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }

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

// usableNodes returns the Nodes on which a new Pod could run and stay. A Pod is evicted from a Node that is out of
// service, whatever it tolerates.
func (f *facts) usableNodes() []*corev1.Node {
	var tolerations []corev1.Toleration
	selector := map[string]string{corev1.LabelOSStable: "linux"}
	if config := f.source.Spec.GrpcPodConfig; config != nil {
		tolerations = config.Tolerations
		if config.NodeSelector != nil {
			selector = config.NodeSelector
		}
	}
	selects := labels.SelectorFromSet(selector)
	repels := func(t corev1.Taint) bool {
		blocksPods := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		return isOutOfService(t) || blocksPods && !tolerated(t, tolerations)
	}

	var usable []*corev1.Node
	for _, n := range f.in.Nodes.Items {
		if n.Spec.Unschedulable || readyCondition(n).Status != corev1.ConditionTrue {
			continue
		}
		if !slices.ContainsFunc(n.Spec.Taints, repels) && selects.Matches(labels.Set(n.Labels)) {
			usable = append(usable, n)
		}
	}
	return usable
}

// disruption says how many Nodes of the cluster fail at the same time.
type disruption int

const (
	noDisruption disruption = iota
	partialDisruption
	totalDisruption
)

// observeDisruption returns the disruption of the cluster. It uses the threshold at which Kubernetes slows down or
// stops evictions in a zone, because a failure of that size is more likely one of the control plane. If all Nodes that
// run Pods of the catalog are healthy, the other Nodes are ignored.
func observeDisruption(pods podList, nodes []*corev1.Node) disruption {
	const few, share = 2, 0.55
	unhealthy := func(p *pod) bool {
		return p.node.State != NodeHealthy && p.node.State != NodeNotObserved && p.node.State != ""
	}
	if !pods.any(unhealthy) {
		return noDisruption
	}

	failed := 0
	for _, n := range nodes {
		if readyCondition(n).Status != corev1.ConditionTrue {
			failed++
		}
	}
	switch {
	case failed > 0 && failed == len(nodes):
		return totalDisruption
	case failed > few && float64(failed) >= share*float64(len(nodes)):
		return partialDisruption
	}
	return noDisruption
}
