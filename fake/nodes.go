// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Times of the simulated control plane, those of Kubernetes.
const (
	// NodeMonitorGrace is how long a node may be silent before its Ready condition turns Unknown.
	NodeMonitorGrace = 40 * time.Second
	// OrphanQuarantine is how long a Pod may name a node that does not exist before it is garbage collected.
	OrphanQuarantine = 40 * time.Second
)

// kubelet is the agent on one node.
type kubelet struct {
	// silentSince is the time from which on nothing is heard of the kubelet; zero when it answers.
	silentSince time.Time
	// notReady is the reason that a kubelet which answers gives for not being ready; empty when it is.
	notReady string
}

func (k *kubelet) silent() bool { return !k.silentSince.IsZero() }

func kubeletOf(node *corev1.Node, now time.Time) *kubelet {
	ready := nodeReady(node)
	switch {
	case ready == nil:
		return &kubelet{}
	case ready.Status == corev1.ConditionUnknown:
		since := ready.LastTransitionTime.Time
		if since.IsZero() {
			since = now
		}
		return &kubelet{silentSince: since}
	case ready.Status == corev1.ConditionFalse:
		reason := ready.Reason
		setZero(&reason, "KubeletNotReady")
		return &kubelet{notReady: reason}
	}
	return &kubelet{}
}

// newNode returns a ready Linux node with the labels that a kubelet sets and those given.
func (c *Cluster) newNode(name string, labels map[string]string) *corev1.Node {
	node := &corev1.Node{}
	node.Name = name
	node.Labels = map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	for key, value := range labels {
		node.Labels[key] = value
	}
	// The node controller keeps the old labels equal to the new ones.
	node.Labels["beta.kubernetes.io/os"] = node.Labels[corev1.LabelOSStable]
	node.Labels["beta.kubernetes.io/arch"] = node.Labels[corev1.LabelArchStable]
	at := olmcore.Timestamp(c.Now())
	for _, p := range pressures {
		p.LastHeartbeatTime, p.LastTransitionTime = at, at
		node.Status.Conditions = append(node.Status.Conditions, p)
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
		LastHeartbeatTime: at, LastTransitionTime: at,
	})
	return node
}

// pressures are the conditions of a kubelet besides Ready.
var pressures = []corev1.NodeCondition{
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
}

func (c *Cluster) setKubelet(name string, k *kubelet) error {
	if c.store.Table(store.NodeKind).Get("", name) == nil {
		return apierrors.NewNotFound(c.store.Table(store.NodeKind).Kind.GroupResource(), name)
	}
	if old := c.kubelets[name]; old != nil && old.silent() && k.silent() {
		return nil
	}
	c.kubelets[name] = k
	c.notifyNode(olmcore.Key{Kind: "Node", Name: name}, c.store.Find(olmcore.Key{Kind: "Node", Name: name}))
	return nil
}

// evictPods evicts the Pods of a node, except those that a PodDisruptionBudget protects. The error names the latter.
func (c *Cluster) evictPods(node string) error {
	var protected []string
	for _, pod := range c.podsOn(node) {
		if pod.DeletionTimestamp != nil || terminated(pod) {
			continue
		}
		if budget := c.budgetAgainst(pod); budget != "" {
			protected = append(protected, fmt.Sprintf("%s/%s (%s)", pod.Namespace, pod.Name, budget))
			continue
		}
		c.disrupt(pod, "EvictionByEvictionAPI", "Eviction API: evicting")
		if err := c.store.Delete(olmcore.RefOf(pod).Unversioned(), nil, ""); err != nil {
			return err
		}
	}
	if len(protected) > 0 {
		return apierrors.NewTooManyRequests(fmt.Sprintf("cannot evict pods as it would violate the pod's disruption budget: %v", protected), 10)
	}
	return nil
}

func (c *Cluster) podsOn(node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range c.store.Table(store.PodKind).List("") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// notifyNode queues what a change of a node, or of its kubelet, may cause.
func (c *Cluster) notifyNode(key olmcore.Key, next olmcore.Object) {
	if next == nil {
		delete(c.kubelets, key.Name)
		c.goneAt[key.Name] = c.Now()
	} else {
		delete(c.goneAt, key.Name)
		if c.kubelets[key.Name] == nil {
			c.kubelets[key.Name] = kubeletOf(next.(*corev1.Node), c.Now())
		}
	}
	c.enqueueAll(workqueue.Nodes, store.NodeKind, "")
	for _, o := range c.store.Table(store.PodKind).List("") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == key.Name || pod.Spec.NodeName == "" {
			c.queue.Add(workqueue.Pods, olmcore.KeyOf(pod))
		}
	}
	c.enqueueAll(workqueue.Deployments, store.DeploymentKind, "")
}

// runNode is the kubelet's heartbeat, and the node lifecycle controller.
func (c *Cluster) runNode(t workqueue.Task) {
	node := store.Get[*corev1.Node](c.store, store.NodeKind, "", t.Key.Name)
	if node == nil {
		return
	}
	want := c.readyCondition(t, c.kubelets[node.Name], nodeReady(node))
	if have := nodeReady(node); have == nil || have.Status != want.Status || have.Reason != want.Reason {
		next := node.DeepCopy()
		setNodeReady(next, want)
		c.store.ReplaceStatus(c.store.Table(store.NodeKind), node, next)
		return
	}
	taints := c.lifecycleTaints(node)
	same := func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && (a.TimeAdded == nil) == (b.TimeAdded == nil) }
	if !slices.EqualFunc(taints, node.Spec.Taints, same) {
		next := store.Shallow(node).(*corev1.Node)
		next.Spec.Taints = taints
		c.store.Commit(c.store.Table(store.NodeKind), node, next)
	}
}

func (c *Cluster) readyCondition(t workqueue.Task, k *kubelet, have *corev1.NodeCondition) corev1.NodeCondition {
	at := olmcore.Timestamp(c.Now())
	want := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status", LastHeartbeatTime: at, LastTransitionTime: at}
	switch {
	case k.silent():
		if silentUntil := k.silentSince.Add(NodeMonitorGrace); have != nil && have.Status != corev1.ConditionUnknown && c.Now().Before(silentUntil) {
			c.queue.AddAt(t, silentUntil)
			return *have
		}
		want.Status, want.Reason, want.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
		if have != nil {
			want.LastHeartbeatTime = have.LastHeartbeatTime
			if have.Status == corev1.ConditionUnknown {
				want.Reason = have.Reason
			}
		}
	case k.notReady != "":
		want.Status, want.Reason, want.Message = corev1.ConditionFalse, k.notReady, "container runtime is not ready"
	case have != nil && have.Status == corev1.ConditionTrue:
		return *have
	}
	if have != nil && have.Status == want.Status {
		want.LastTransitionTime = have.LastTransitionTime
	}
	return want
}

// lifecycleTaints returns the node's taints with those that its condition calls for. While no node at all is ready,
// nothing is evicted: the fault is then more likely in the control plane.
func (c *Cluster) lifecycleTaints(node *corev1.Node) []corev1.Taint {
	var want []corev1.Taint
	add := func(key string, effect corev1.TaintEffect) {
		want = append(want, corev1.Taint{Key: key, Effect: effect})
	}
	key := ""
	switch ready := nodeReady(node); {
	case ready == nil || ready.Status == corev1.ConditionUnknown:
		key = corev1.TaintNodeUnreachable
	case ready.Status == corev1.ConditionFalse:
		key = corev1.TaintNodeNotReady
	}
	if key != "" {
		add(key, corev1.TaintEffectNoSchedule)
		if c.anyNodeReady() {
			add(key, corev1.TaintEffectNoExecute)
		}
	}
	if node.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		ours := t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnschedulable
		i := slices.IndexFunc(want, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
		if ours && i < 0 {
			continue
		}
		if i >= 0 {
			want = slices.Delete(want, i, i+1)
		}
		if t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded == nil {
			t.TimeAdded = new(olmcore.Timestamp(c.Now()))
		}
		taints = append(taints, t)
	}
	for _, t := range want {
		t.TimeAdded = new(olmcore.Timestamp(c.Now()))
		taints = append(taints, t)
	}
	return taints
}

func (c *Cluster) anyNodeReady() bool {
	return slices.ContainsFunc(c.store.Table(store.NodeKind).List(""), func(o olmcore.Object) bool { return isReady(o.(*corev1.Node)) })
}

func nodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	ready := nodeReady(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// setNodeReady also says what is known of the node's pressures, where it has them: nothing while it is silent.
func setNodeReady(node *corev1.Node, want corev1.NodeCondition) {
	for _, p := range pressures {
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == p.Type })
		if i < 0 {
			continue
		}
		if want.Status == corev1.ConditionUnknown {
			p.Status, p.Reason, p.Message = corev1.ConditionUnknown, want.Reason, want.Message
		}
		if have := &node.Status.Conditions[i]; have.Status != p.Status {
			p.LastHeartbeatTime, p.LastTransitionTime = want.LastHeartbeatTime, want.LastTransitionTime
			*have = p
		}
	}
	if have := nodeReady(node); have != nil {
		*have = want
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, want)
}

// budgetAgainst returns the name of a PodDisruptionBudget that forbids the eviction of a Pod, empty when none does.
func (c *Cluster) budgetAgainst(pod *corev1.Pod) string {
	for _, o := range c.store.Table(store.PDBKind).List(pod.Namespace) {
		if budget := o.(*podDisruptionBudget); matches(budget.Spec.Selector, pod.Labels) && c.disruptionsAllowed(budget) <= 0 {
			return budget.Name
		}
	}
	return ""
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labelsSet(set))
}
