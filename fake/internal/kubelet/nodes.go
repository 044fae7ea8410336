// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates nodes: the kubelets with their containers, the node controller, the scheduler, and the
// eviction and garbage collection of Pods.
package kubelet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

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

// Nodes contains the kubelets of a cluster, and the controllers of Nodes and Pods.
type Nodes struct {
	store     *store.Store
	queue     *workqueue.Queue
	scheduler *scheduler
	runtime   *runtime
	kubelets  map[string]*kubelet
	goneAt    map[string]time.Time // the time when a Node object was removed
	failing   map[types.UID]bool   // loaded Pods whose containers keep failing
}

// New returns the kubelets and controllers of a cluster without nodes. If takesEveryPod returns true, any node runs any
// Pod.
func New(s *store.Store, q *workqueue.Queue, images *Images, takesEveryPod func() bool) *Nodes {
	return &Nodes{
		store: s, queue: q,
		scheduler: &scheduler{s, takesEveryPod},
		runtime:   &runtime{s, images, q.Now},
		kubelets:  map[string]*kubelet{},
		goneAt:    map[string]time.Time{},
		failing:   map[types.UID]bool{},
	}
}

// kubelet is the agent on one node.
type kubelet struct {
	// silentSince is the time since which the kubelet has not answered. Zero means that it answers.
	silentSince time.Time
	// notReady is the reason that an answering kubelet reports for not being ready. Empty means that it is ready.
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
		return &kubelet{notReady: cmp.Or(ready.Reason, "KubeletNotReady")}
	}
	return &kubelet{}
}

// NewNode returns a ready Linux node with the labels that a kubelet sets and those given.
func NewNode(now time.Time, name string, labels map[string]string) *corev1.Node {
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
	at := olmcore.Timestamp(now)
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
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
		Message: "kubelet has sufficient memory available"},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
		Message: "kubelet has no disk pressure"},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
		Message: "kubelet has sufficient PID available"},
}

// Fail stops the kubelet of a node.
func (n *Nodes) Fail(name string) error {
	return n.setKubelet(name, &kubelet{silentSince: n.queue.Now()})
}

// SetNotReady makes the kubelet of a node report that it is not ready, for a reason.
func (n *Nodes) SetNotReady(name, reason string) error {
	return n.setKubelet(name, &kubelet{notReady: cmp.Or(reason, "KubeletNotReady")})
}

// Heal starts the kubelet of a node and makes it report that it is ready.
func (n *Nodes) Heal(name string) error { return n.setKubelet(name, &kubelet{}) }

func (n *Nodes) setKubelet(name string, k *kubelet) error {
	if n.store.Table(store.NodeKind).Get("", name) == nil {
		return apierrors.NewNotFound(n.store.Table(store.NodeKind).Kind.GroupResource(), name)
	}
	if old := n.kubelets[name]; old != nil && old.silent() && k.silent() {
		return nil
	}
	n.kubelets[name] = k
	n.Observe(olmcore.Key{Kind: "Node", Name: name}, n.store.Find(olmcore.Key{Kind: "Node", Name: name}))
	return nil
}

// Load derives the state of a kubelet from a loaded Node.
func (n *Nodes) Load(node *corev1.Node) { n.kubelets[node.Name] = kubeletOf(node, n.queue.Now()) }

// LoadPod derives from a loaded Pod whether its containers keep failing.
func (n *Nodes) LoadPod(pod *corev1.Pod) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		waiting := status.State.Waiting
		if waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
			n.failing[pod.UID] = true
		}
	}
}

// FitsAny reports whether any node may run Pods of a spec.
func (n *Nodes) FitsAny(spec *corev1.PodSpec) bool { return n.scheduler.fitsAny(spec) }

// EvictPods evicts the Pods of a node, except those that a PodDisruptionBudget protects. The error names the latter.
func (n *Nodes) EvictPods(node string) error {
	var protected []string
	for _, pod := range n.podsOn(node) {
		if pod.DeletionTimestamp != nil || terminated(pod) {
			continue
		}
		if budget := budgetAgainst(n.store, pod); budget != "" {
			protected = append(protected, fmt.Sprintf("%s/%s (%s)", pod.Namespace, pod.Name, budget))
			continue
		}
		n.disrupt(pod, "EvictionByEvictionAPI", "Eviction API: evicting")
		if err := n.store.Delete(olmcore.RefOf(pod).Unversioned(), nil, ""); err != nil {
			return err
		}
	}
	if len(protected) > 0 {
		return apierrors.NewTooManyRequests(fmt.Sprintf("cannot evict pods as it would violate the pod's disruption budget: %v", protected), 10)
	}
	return nil
}

func (n *Nodes) podsOn(node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range n.store.Table(store.PodKind).List("") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Observe queues the tasks that a change of a Node or of its kubelet causes. next is nil if the Node was removed.
func (n *Nodes) Observe(key olmcore.Key, next olmcore.Object) {
	if next == nil {
		delete(n.kubelets, key.Name)
		n.goneAt[key.Name] = n.queue.Now()
	} else {
		delete(n.goneAt, key.Name)
		if n.kubelets[key.Name] == nil {
			n.kubelets[key.Name] = kubeletOf(next.(*corev1.Node), n.queue.Now())
		}
	}
	n.queue.AddAll(workqueue.Nodes, n.store.Table(store.NodeKind).List(""))
	for _, o := range n.store.Table(store.PodKind).List("") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == key.Name || pod.Spec.NodeName == "" {
			n.queue.Add(workqueue.Pods, olmcore.KeyOf(pod))
		}
	}
	n.queue.AddAll(workqueue.Deployments, n.store.Table(store.DeploymentKind).List(""))
}

// RunNode is the heartbeat of the kubelet and the node lifecycle controller.
func (n *Nodes) RunNode(t workqueue.Task) {
	node := store.Get[*corev1.Node](n.store, store.NodeKind, "", t.Key.Name)
	if node == nil {
		return
	}
	want := n.readyCondition(t, n.kubelets[node.Name], nodeReady(node))
	if have := nodeReady(node); have == nil || have.Status != want.Status || have.Reason != want.Reason {
		next := node.DeepCopy()
		setNodeReady(next, want)
		n.store.ReplaceStatus(n.store.Table(store.NodeKind), node, next)
		return
	}
	taints := n.lifecycleTaints(node)
	same := func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && (a.TimeAdded == nil) == (b.TimeAdded == nil) }
	if !slices.EqualFunc(taints, node.Spec.Taints, same) {
		next := store.Shallow(node).(*corev1.Node)
		next.Spec.Taints = taints
		n.store.Commit(n.store.Table(store.NodeKind), node, next)
	}
}

func (n *Nodes) readyCondition(t workqueue.Task, k *kubelet, have *corev1.NodeCondition) corev1.NodeCondition {
	at := olmcore.Timestamp(n.queue.Now())
	want := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status", LastHeartbeatTime: at, LastTransitionTime: at}
	switch {
	case k.silent():
		silentUntil := k.silentSince.Add(NodeMonitorGrace)
		if have != nil && have.Status != corev1.ConditionUnknown && n.queue.Now().Before(silentUntil) {
			n.queue.AddAt(t, silentUntil)
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

// lifecycleTaints returns the taints of a node, including those for its Ready condition. If no node is ready, nothing
// is evicted, because then the control plane is more likely at fault.
func (n *Nodes) lifecycleTaints(node *corev1.Node) []corev1.Taint {
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
		if n.anyNodeReady() {
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
			t.TimeAdded = new(olmcore.Timestamp(n.queue.Now()))
		}
		taints = append(taints, t)
	}
	for _, t := range want {
		t.TimeAdded = new(olmcore.Timestamp(n.queue.Now()))
		taints = append(taints, t)
	}
	return taints
}

func (n *Nodes) anyNodeReady() bool {
	return slices.ContainsFunc(n.store.Table(store.NodeKind).List(""), func(o olmcore.Object) bool { return isReady(o.(*corev1.Node)) })
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

// setNodeReady sets the Ready condition, and the conditions for pressure that the node has. They are Unknown while the
// kubelet does not answer.
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
