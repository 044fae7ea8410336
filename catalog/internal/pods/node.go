// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NodeState is what a Pod's Node looks like. Package catalog documents the states.
type NodeState string

// Node states.
const (
	NodeUnassigned   NodeState = "Unassigned"
	NodeNotObserved  NodeState = "NotObserved"
	NodeGone         NodeState = "Gone"
	NodeOutOfService NodeState = "OutOfService"
	NodeUnreachable  NodeState = "Unreachable"
	NodeNotReady     NodeState = "NotReady"
	NodeRecovering   NodeState = "Recovering"
	NodeLeaving      NodeState = "Leaving"
	NodeHealthy      NodeState = "Healthy"
)

// nodeRecoveryWindow is how long the replacement is kept when a Node came back.
const nodeRecoveryWindow = 120 * time.Second

// Doubtful reports whether the Node may be about to fail: then its grace period
// decides, and nothing else.
func (s NodeState) Doubtful() bool {
	return s == NodeUnreachable || s == NodeNotReady || s == NodeGone
}

// Failed reports whether new Pods had better avoid the Node.
func (s NodeState) Failed() bool {
	return s.Doubtful() || s == NodeOutOfService || s == NodeRecovering
}

// word continues the sentence "node x ...".
func (s NodeState) word() string {
	return map[NodeState]string{
		NodeGone: "is gone", NodeOutOfService: "is out of service", NodeUnreachable: "is unreachable", NodeNotReady: "is not ready",
	}[s]
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
func (o Observation) nodeOf(pod *corev1.Pod) (state NodeState, since time.Time) {
	switch {
	case pod.Spec.NodeName == "":
		return NodeUnassigned, pod.CreationTimestamp.Time
	case !o.Nodes.Complete:
		return NodeNotObserved, time.Time{}
	}
	i := slices.IndexFunc(o.Nodes.Items, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	if i < 0 {
		return NodeGone, boundAt(pod)
	}
	node := o.Nodes.Items[i]
	ready := nodeReady(node)
	since = ready.LastTransitionTime.Time
	switch isReady := ready.Status == corev1.ConditionTrue; {
	case !isReady && hasTaint(node, corev1.TaintNodeOutOfService):
		return NodeOutOfService, since
	case ready.Status == corev1.ConditionUnknown:
		return NodeUnreachable, since
	case !isReady:
		return NodeNotReady, since
	// A node that became ready for the first time has nothing to recover from.
	case o.left(since, nodeRecoveryWindow) > 0 && since.Sub(node.CreationTimestamp.Time) > nodeRecoveryWindow:
		return NodeRecovering, since
	case evicts(node, pod.Spec.Tolerations):
		return NodeLeaving, since
	}
	return NodeHealthy, since
}

func hasTaint(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// evicts reports whether a taint of a ready node drives the Pod away.
func evicts(n *corev1.Node, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService || t.Effect == corev1.TaintEffectNoExecute && !tolerated(t, tolerations)
	})
}

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

// Schedulable returns the Nodes on which a new registry Pod could run.
func Schedulable(nodes []*corev1.Node, config *v1alpha1.GrpcPodConfig) (usable []*corev1.Node) {
	var tolerations []corev1.Toleration
	selector := map[string]string{corev1.LabelOSStable: "linux"}
	if config != nil {
		tolerations = config.Tolerations
		if config.NodeSelector != nil {
			selector = config.NodeSelector
		}
	}
	selects := labels.SelectorFromSet(selector)
	for _, n := range nodes {
		repels := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && !tolerated(t, tolerations)
		})
		if !n.Spec.Unschedulable && nodeReady(n).Status == corev1.ConditionTrue && !repels && selects.Matches(labels.Set(n.Labels)) {
			usable = append(usable, n)
		}
	}
	return usable
}

// Disruption is how much of the cluster fails at once.
type Disruption int

// Disruptions.
const (
	NoDisruption Disruption = iota
	PartialDisruption
	TotalDisruption
)

// disruption mirrors the threshold at which Kubernetes itself stops evicting in a zone:
// a fault of that size is rather one of the control plane. Nodes are looked at once one
// of the catalog's is not healthy.
func (l List) disruption(nodes []*corev1.Node) Disruption {
	const few, share = 2, 0.55
	if !slices.ContainsFunc(l.Items, func(p Pod) bool { return p.Node != NodeHealthy && p.Node != NodeNotObserved && p.Node != "" }) {
		return NoDisruption
	}
	all, bad := len(nodes), 0
	for _, n := range nodes {
		if nodeReady(n).Status != corev1.ConditionTrue {
			bad++
		}
	}
	switch {
	case all > 0 && bad == all:
		return TotalDisruption
	case bad > few && float64(bad) >= share*float64(all):
		return PartialDisruption
	}
	return NoDisruption
}
