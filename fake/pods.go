// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

type (
	podDisruptionBudget = policyv1.PodDisruptionBudget
	labelsSet           = labels.Set
)

// runPod is everything that happens to a Pod by itself: it is scheduled,
// started, evicted, stopped, and collected when its node is gone.
func (c *Cluster) runPod(t workqueue.Task) {
	pod := store.Get[*corev1.Pod](c.store, store.PodKind, t.Key.Namespace, t.Key.Name)
	if pod == nil {
		return
	}
	if pod.Spec.NodeName == "" {
		switch {
		case pod.DeletionTimestamp != nil:
			c.stopped(pod)
		case !terminated(pod):
			c.schedule(pod)
		}
		return
	}
	node := store.Get[*corev1.Node](c.store, store.NodeKind, "", pod.Spec.NodeName)
	switch {
	case node == nil:
		c.collectOrphan(t, pod)
	case pod.DeletionTimestamp != nil:
		c.terminate(pod, node)
	case terminated(pod):
	case c.evicted(t, pod, node):
	default:
		c.runKubelet(pod, node)
	}
}

// collectOrphan removes a Pod whose node is gone for OrphanQuarantine. In a
// cluster that never had a node nothing is known about nodes, and Pods stay.
func (c *Cluster) collectOrphan(t workqueue.Task, pod *corev1.Pod) {
	if len(c.kubelets) == 0 && len(c.goneAt) == 0 {
		return
	}
	since, known := c.goneAt[pod.Spec.NodeName]
	if !known {
		since = c.Now()
		c.goneAt[pod.Spec.NodeName] = since
	}
	if until := since.Add(OrphanQuarantine); c.Now().Before(until) {
		c.queue.AddAt(t, until)
		return
	}
	if !terminated(pod) {
		next := pod.DeepCopy()
		next.Status.Phase = corev1.PodFailed
		c.setPodCondition(next, corev1.DisruptionTarget, true, "DeletionByPodGC", "PodGC: node no longer exists")
		c.commitPod(pod, next)
		return
	}
	c.forceDelete(pod)
}

// terminate ends a Pod that is being deleted, unless its kubelet is silent: then
// it stays, until an administrator vouches that the machine is off.
func (c *Cluster) terminate(pod *corev1.Pod, node *corev1.Node) {
	if !c.kubelets[node.Name].silent() {
		c.stopped(pod)
		return
	}
	outOfService := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	switch {
	case outOfService && !isReady(node):
		c.forceDelete(pod)
	case !isReady(node):
		c.markNotReady(pod)
	}
}

// stopped is the kubelet's final delete; finalizers may still hold the object.
func (c *Cluster) stopped(pod *corev1.Pod) {
	if len(pod.Finalizers) > 0 && !terminated(pod) {
		next := pod.DeepCopy()
		next.Status.Phase = corev1.PodSucceeded
		c.setPodCondition(next, corev1.PodReady, false, "PodCompleted", "")
		c.setPodCondition(next, corev1.ContainersReady, false, "PodCompleted", "")
		c.commitPod(pod, next)
		return
	}
	c.forceDelete(pod)
}

func (c *Cluster) forceDelete(pod *corev1.Pod) {
	// Its own reference without a version cannot be refused.
	_ = c.store.Delete(olmcore.RefOf(pod).Unversioned(), new(int64(0)), "")
}

// evicted marks a Pod for deletion when its node has a NoExecute taint that it does not tolerate, or not for so long.
func (c *Cluster) evicted(t workqueue.Task, pod *corev1.Pod, node *corev1.Node) bool {
	at, due := evictionTime(pod, node)
	if !due {
		return false
	}
	if c.Now().Before(at) {
		c.queue.AddAt(t, at)
		return false
	}
	if c.disrupt(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint") {
		return true
	}
	_ = c.store.Delete(olmcore.RefOf(pod).Unversioned(), nil, "")
	return true
}

// evictionTime returns when the taints of a node end a Pod; due is false when they never do.
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
func (c *Cluster) disrupt(pod *corev1.Pod, reason, message string) bool {
	if have := podCondition(pod, corev1.DisruptionTarget); have != nil && have.Status == corev1.ConditionTrue {
		return false
	}
	next := pod.DeepCopy()
	c.setPodCondition(next, corev1.DisruptionTarget, true, reason, message)
	c.commitPod(pod, next)
	return true
}

func (c *Cluster) commitPod(pod, next *corev1.Pod) {
	c.store.Commit(c.store.Table(store.PodKind), pod, next)
}

func (c *Cluster) setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool, reason, message string) {
	want := corev1.PodCondition{Type: kind, Status: conditionStatus[corev1.ConditionStatus](is), Reason: reason, Message: message,
		LastTransitionTime: olmcore.Timestamp(c.Now())}
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

// disruptionsAllowed is how many Pods of a budget may be evicted now.
func (c *Cluster) disruptionsAllowed(budget *podDisruptionBudget) int {
	total, healthy := 0, 0
	for _, o := range c.store.Table(store.PodKind).List(budget.Namespace) {
		pod := o.(*corev1.Pod)
		if !matches(budget.Spec.Selector, pod.Labels) || terminated(pod) {
			continue
		}
		total++
		if podReady(pod) && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	needed := 0
	switch {
	case budget.Spec.MinAvailable != nil:
		needed = scaled(*budget.Spec.MinAvailable, total)
	case budget.Spec.MaxUnavailable != nil:
		needed = total - scaled(*budget.Spec.MaxUnavailable, total)
	}
	return healthy - needed
}

func scaled(v intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, true)
	if err != nil {
		return total
	}
	return n
}

func terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
