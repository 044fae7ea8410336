// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NodeState is what a Pod's node looks like.
type NodeState string

// Node states; exactly one holds, the first that fits.
const (
	// NodeUnassigned: the Pod is not bound to a node.
	NodeUnassigned NodeState = "Unassigned"
	// NodeNotObserved: the nodes were not read.
	NodeNotObserved NodeState = "NotObserved"
	// NodeGone: there is no such Node object.
	NodeGone NodeState = "Gone"
	// NodeOutOfService: not ready, and an administrator says that it is off.
	NodeOutOfService NodeState = "OutOfService"
	// NodeUnreachable: it does not report; its Ready condition is Unknown or missing.
	NodeUnreachable NodeState = "Unreachable"
	// NodeNotReady: it reports that it is not ready.
	NodeNotReady NodeState = "NotReady"
	// NodeRecovering: ready again, but not for long.
	NodeRecovering NodeState = "Recovering"
	// NodeLeaving: ready, with a taint that evicts the Pod.
	NodeLeaving NodeState = "Leaving"
	// NodeHealthy: none of the others.
	NodeHealthy NodeState = "Healthy"
)

// findNode returns the Node of a name, nil when there is none. Sorted nodes, as
// Gather returns them, are found without a scan.
func findNode(nodes []*corev1.Node, name string) *corev1.Node {
	i, _ := slices.BinarySearchFunc(nodes, name, func(n *corev1.Node, name string) int {
		return strings.Compare(n.Name, name)
	})
	if i < len(nodes) && nodes[i].Name == name {
		return nodes[i]
	}
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func nodeReady(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func isNodeReady(n *corev1.Node) bool {
	ready := nodeReady(n)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// nodeOf returns the state of a Pod's node and since when it is so.
func (v *view) nodeOf(pod *corev1.Pod) (state NodeState, since time.Time) {
	switch {
	case pod.Spec.NodeName == "":
		return NodeUnassigned, pod.CreationTimestamp.Time
	case !v.in.Nodes.Complete:
		return NodeNotObserved, time.Time{}
	}
	node := findNode(v.in.Nodes.Items, pod.Spec.NodeName)
	if node == nil {
		return NodeGone, boundAt(pod)
	}
	since = node.CreationTimestamp.Time
	ready := nodeReady(node)
	if ready != nil {
		since = ready.LastTransitionTime.Time
	}
	switch isReady := ready != nil && ready.Status == corev1.ConditionTrue; {
	case !isReady && hasTaint(node, corev1.TaintNodeOutOfService):
		return NodeOutOfService, since
	case ready == nil || ready.Status == corev1.ConditionUnknown:
		return NodeUnreachable, since
	case !isReady:
		return NodeNotReady, since
	// A node that became ready for the first time has nothing to recover from.
	case v.left(since, v.set.recovery) > 0 && since.Sub(node.CreationTimestamp.Time) > v.set.recovery:
		return NodeRecovering, since
	case evicts(node, pod.Spec.Tolerations):
		return NodeLeaving, since
	}
	return NodeHealthy, since
}

// left returns how long it is until grace has passed since t; 0 or less when it
// has.
func (v *view) left(t time.Time, grace time.Duration) time.Duration {
	return t.Add(grace).Sub(v.in.Now)
}

func hasTaint(n *corev1.Node, key string) bool {
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == key {
			return true
		}
	}
	return false
}

// evicts reports whether a taint of a ready node drives the Pod away.
func evicts(n *corev1.Node, tolerations []corev1.Toleration) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Key == corev1.TaintNodeOutOfService || t.Effect == corev1.TaintEffectNoExecute && !tolerated(t, tolerations) {
			return true
		}
	}
	return false
}

func tolerated(taint *corev1.Taint, tolerations []corev1.Toleration) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			if t.Key != "" && t.Value == taint.Value {
				return true
			}
		}
	}
	return false
}

// schedulable reports whether a new registry Pod could run on a node.
func (v *view) schedulable(n *corev1.Node) bool {
	if n.Spec.Unschedulable || !isNodeReady(n) {
		return false
	}
	var tolerations []corev1.Toleration
	selector, linux := map[string]string(nil), true
	if c := v.cs.Spec.GrpcPodConfig; c != nil {
		tolerations = c.Tolerations
		if c.NodeSelector != nil {
			selector, linux = c.NodeSelector, false
		}
	}
	if linux && n.Labels[corev1.LabelOSStable] != "linux" {
		return false
	}
	for key, value := range selector {
		if n.Labels[key] != value {
			return false
		}
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && !tolerated(t, tolerations) {
			return false
		}
	}
	return true
}

// otherNode reports whether a new Pod could run elsewhere than on a node.
func (v *view) otherNode(name string) bool {
	for _, n := range v.in.Nodes.Items {
		if n.Name != name && v.schedulable(n) {
			return true
		}
	}
	return false
}

// disruption is how much of the cluster fails at once.
type disruption int

const (
	noDisruption disruption = iota
	partialDisruption
	totalDisruption
)

// massDisruption mirrors the threshold at which Kubernetes itself stops evicting
// in a zone: a fault of that size is rather one of the control plane.
func massDisruption(nodes []*corev1.Node) disruption {
	const few, share = 2, 0.55
	all, bad := 0, 0
	for _, n := range nodes {
		all++
		if !isNodeReady(n) {
			bad++
		}
	}
	switch {
	case all > 0 && bad == all:
		return totalDisruption
	case bad > few && float64(bad) >= share*float64(all):
		return partialDisruption
	}
	return noDisruption
}
