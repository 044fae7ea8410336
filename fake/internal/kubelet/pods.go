// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// RunPod schedules, starts, evicts or stops a Pod, or removes it if its node does not exist.
func (n *Nodes) RunPod(t workqueue.Task) {
	pod := store.Get[*corev1.Pod](n.store, store.PodKind, t.Key.Namespace, t.Key.Name)
	if pod == nil {
		return
	}
	if pod.Spec.NodeName == "" {
		switch {
		case pod.DeletionTimestamp != nil:
			n.stopped(pod)
		case !terminated(pod):
			n.schedule(pod)
		}
		return
	}
	node := store.Get[*corev1.Node](n.store, store.NodeKind, "", pod.Spec.NodeName)
	switch {
	case node == nil:
		n.collectOrphan(t, pod)
	case pod.DeletionTimestamp != nil:
		n.terminate(pod, node)
	case terminated(pod):
	case n.evicted(t, pod, node):
	default:
		n.runKubelet(pod, node)
	}
}

// collectOrphan removes a Pod whose node has not existed for OrphanQuarantine. In a cluster that never had a node,
// nothing is known about nodes, and Pods stay.
func (n *Nodes) collectOrphan(t workqueue.Task, pod *corev1.Pod) {
	if len(n.kubelets) == 0 && len(n.goneAt) == 0 {
		return
	}
	since, known := n.goneAt[pod.Spec.NodeName]
	if !known {
		since = n.queue.Now()
		n.goneAt[pod.Spec.NodeName] = since
	}
	if until := since.Add(OrphanQuarantine); n.queue.Now().Before(until) {
		n.queue.AddAt(t, until)
		return
	}
	if !terminated(pod) {
		next := pod.DeepCopy()
		next.Status.Phase = corev1.PodFailed
		setPodCondition(n.queue.Now(), next, corev1.DisruptionTarget, true, "DeletionByPodGC", "PodGC: node no longer exists")
		n.commitPod(pod, next)
		return
	}
	n.forceDelete(pod)
}

// terminate stops a Pod that is being deleted. If its kubelet does not answer, the Pod stays until an administrator
// taints the node as out of service.
func (n *Nodes) terminate(pod *corev1.Pod, node *corev1.Node) {
	if !n.kubelets[node.Name].silent() {
		n.stopped(pod)
		return
	}
	outOfService := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	switch {
	case outOfService && !isReady(node):
		n.forceDelete(pod)
	case !isReady(node):
		n.markNotReady(pod)
	}
}

// stopped is the final delete of the kubelet. Finalizers may delay the removal of the object.
func (n *Nodes) stopped(pod *corev1.Pod) {
	if len(pod.Finalizers) > 0 && !terminated(pod) {
		next := pod.DeepCopy()
		next.Status.Phase = corev1.PodSucceeded
		setPodCondition(n.queue.Now(), next, corev1.PodReady, false, "PodCompleted", "")
		setPodCondition(n.queue.Now(), next, corev1.ContainersReady, false, "PodCompleted", "")
		n.commitPod(pod, next)
		return
	}
	n.forceDelete(pod)
}

func (n *Nodes) forceDelete(pod *corev1.Pod) {
	// A reference without a version cannot be rejected.
	_ = n.store.Delete(olmcore.RefOf(pod).Unversioned(), new(int64(0)), "")
}

// evicted marks a Pod for deletion if its node has a NoExecute taint that it does not tolerate any more.
func (n *Nodes) evicted(t workqueue.Task, pod *corev1.Pod, node *corev1.Node) bool {
	at, due := evictionTime(pod, node)
	if !due {
		return false
	}
	if n.queue.Now().Before(at) {
		n.queue.AddAt(t, at)
		return false
	}
	if n.disrupt(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint") {
		return true
	}
	_ = n.store.Delete(olmcore.RefOf(pod).Unversioned(), nil, "")
	return true
}

// schedule binds a Pod to the best node. If there is none, the condition PodScheduled is False.
func (n *Nodes) schedule(pod *corev1.Pod) {
	nodes := n.store.Table(store.NodeKind).List("")
	if len(nodes) == 0 && len(n.goneAt) == 0 {
		return // nothing is known about nodes
	}
	best := n.scheduler.best(pod, nodes)
	next := pod.DeepCopy()
	if best == nil {
		message := fmt.Sprintf("0/%d nodes are available", len(nodes))
		setPodCondition(n.queue.Now(), next, corev1.PodScheduled, false, corev1.PodReasonUnschedulable, message)
		n.store.ReplaceStatus(n.store.Table(store.PodKind), pod, next)
		return
	}
	next.Spec.NodeName = best.Name
	setPodCondition(n.queue.Now(), next, corev1.PodScheduled, true, "", "")
	n.commitPod(pod, next)
}

// runKubelet moves a Pod to its next visible state. The Pod is not ready if its node is not.
func (n *Nodes) runKubelet(pod *corev1.Pod, node *corev1.Node) {
	k := n.kubelets[node.Name]
	switch {
	case !isReady(node):
		n.markNotReady(pod)
	case k.silent() || n.failing[pod.UID]:
	default:
		next := pod.DeepCopy()
		n.runtime.runContainers(next)
		n.store.ReplaceStatus(n.store.Table(store.PodKind), pod, next)
	}
}

// markNotReady does what the node lifecycle controller does to the Pods of a node that is not ready.
func (n *Nodes) markNotReady(pod *corev1.Pod) {
	if !podReady(pod) {
		return
	}
	next := pod.DeepCopy()
	setPodCondition(n.queue.Now(), next, corev1.PodReady, false, "NodeNotReady", "")
	n.commitPod(pod, next)
}

// evictionTime returns the time at which the taints of a node evict a Pod. due is false if they never do.
func evictionTime(pod *corev1.Pod, node *corev1.Node) (at time.Time, due bool) {
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		var added time.Time
		if taint.TimeAdded != nil {
			added = taint.TimeAdded.Time
		}
		end, ends := toleratedUntil(pod, taint, added)
		if ends && (!due || end.Before(at)) {
			at, due = end, true
		}
	}
	return at, due
}

func toleratedUntil(pod *corev1.Pod, taint corev1.Taint, added time.Time) (until time.Time, ends bool) {
	tolerated, seconds := false, int64(-1)
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !tolerates(t, taint) {
			continue
		}
		tolerated = true
		if t.TolerationSeconds != nil && (seconds < 0 || *t.TolerationSeconds < seconds) {
			seconds = max(0, *t.TolerationSeconds)
		}
	}
	switch {
	case !tolerated:
		return added, true
	case seconds < 0:
		return time.Time{}, false
	}
	return added.Add(time.Duration(seconds) * time.Second), true
}

func tolerates(t *corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Key != "" && t.Value == taint.Value
}

// disrupt sets the condition DisruptionTarget and reports whether that changed anything.
func (n *Nodes) disrupt(pod *corev1.Pod, reason, message string) bool {
	if have := podCondition(pod, corev1.DisruptionTarget); have != nil && have.Status == corev1.ConditionTrue {
		return false
	}
	next := pod.DeepCopy()
	setPodCondition(n.queue.Now(), next, corev1.DisruptionTarget, true, reason, message)
	n.commitPod(pod, next)
	return true
}

func (n *Nodes) commitPod(pod, next *corev1.Pod) {
	n.store.Commit(n.store.Table(store.PodKind), pod, next)
}

func setPodCondition(now time.Time, pod *corev1.Pod, kind corev1.PodConditionType, is bool, reason, message string) {
	want := corev1.PodCondition{Type: kind, Status: store.ConditionStatus[corev1.ConditionStatus](is), Reason: reason, Message: message,
		LastTransitionTime: olmcore.Timestamp(now)}
	if have := podCondition(pod, kind); have != nil {
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		*have = want
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, want)
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func podReady(pod *corev1.Pod) bool {
	ready := podCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

func terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
