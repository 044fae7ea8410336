// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake/internal/kubelet"
	"github.com/olmcore/olm/olmcore"
)

// Times of the simulated control plane, those of Kubernetes.
const (
	// NodeMonitorGrace is the time after which the Ready condition of a node whose kubelet does not answer turns Unknown.
	NodeMonitorGrace = kubelet.NodeMonitorGrace
	// OrphanQuarantine is the time after which a Pod whose node does not exist is garbage collected.
	OrphanQuarantine = kubelet.OrphanQuarantine
)

// Node is a node of a Cluster, by name. The Node object and its kubelet need not exist yet. Every method except Create
// returns a NotFound error if the Node object does not exist.
type Node struct {
	cluster *Cluster
	name    string
}

// Node returns the node of a name.
func (c *Cluster) Node(name string) Node { return Node{c, name} }

// Create creates a ready Linux node with the labels that a kubelet sets and those given.
func (n Node) Create(labels map[string]string) error {
	return n.cluster.create(kubelet.NewNode(n.cluster.Now(), n.name, labels))
}

// Delete deletes the Node object, as a cloud controller does when the machine does not exist any more. The Pods of the
// node are garbage collected after OrphanQuarantine.
func (n Node) Delete() error {
	return n.cluster.store.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Node", Name: n.name}, nil, "")
}

// Fail stops the kubelet, as a power failure does. After NodeMonitorGrace the Ready condition turns Unknown and the
// node is tainted. The Pods of the node are then not ready and are marked for deletion after their toleration. They
// are not removed, because no kubelet confirms their deletion.
func (n Node) Fail() error { return n.cluster.nodes.Fail(n.name) }

// SetNotReady makes the kubelet report that the node is not ready, for a reason such as "NetworkPluginNotReady". An
// empty reason means "KubeletNotReady". The kubelet still confirms deletions.
func (n Node) SetNotReady(reason string) error { return n.cluster.nodes.SetNotReady(n.name, reason) }

// Heal undoes Fail and SetNotReady.
func (n Node) Heal() error { return n.cluster.nodes.Heal(n.name) }

// Cordon marks the node as unschedulable.
func (n Node) Cordon() error {
	return n.edit(func(node *corev1.Node) { node.Spec.Unschedulable = true })
}

// Uncordon marks the node as schedulable.
func (n Node) Uncordon() error {
	return n.edit(func(node *corev1.Node) { node.Spec.Unschedulable = false })
}

// Drain cordons the node and evicts its Pods, except those that a PodDisruptionBudget protects. The error names the
// protected Pods. Call Drain again later to evict them.
func (n Node) Drain() error {
	if err := n.Cordon(); err != nil {
		return err
	}
	return n.cluster.nodes.EvictPods(n.name)
}

// Taint adds a taint, for example node.kubernetes.io/out-of-service, or replaces the taint of the same key and effect.
func (n Node) Taint(taint corev1.Taint) error {
	if taint.TimeAdded == nil {
		taint.TimeAdded = new(olmcore.Timestamp(n.cluster.Now()))
	}
	return n.edit(func(node *corev1.Node) {
		others := slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		node.Spec.Taints = append(others, taint)
	})
}

// Untaint removes every taint of a key.
func (n Node) Untaint(key string) error {
	return n.edit(func(node *corev1.Node) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	})
}

func (n Node) edit(change func(*corev1.Node)) error { return Edit(n.cluster, "", n.name, change) }
