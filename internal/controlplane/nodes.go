// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nodes plays the scheduler, and the kubelets of some nodes: Pods are bound, start, become ready, and go when they are
// deleted, as long as their node is not silent.
type Nodes struct {
	// ImageID says what a container of an image shows as its imageID.
	ImageID func(image string) string

	client client.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	images map[string]Image
	silent map[string]bool // by node; a node that is not in it is not ours
	beat   time.Time       // the last heartbeat
	failed []error
}

// Image is how the containers of an image behave; those of the zero value run and become ready.
type Image struct {
	// ID is what containers that start from now on show as their imageID; empty: what ImageID says.
	ID string
	// Waits is what containers wait for instead of starting.
	Waits *corev1.ContainerStateWaiting
	// NeverReady: containers run and pass no readiness probe.
	NeverReady bool
	// Run, when set, does what the container of a Pod does, which then ends with the code that it returns; message is
	// what it says at its end.
	Run func(ctx context.Context, pod *corev1.Pod) (code int32, message string)
}

const (
	nodesPeriod     = 100 * time.Millisecond
	heartbeatPeriod = time.Second
)

// PlayNodes starts to play; Stop ends it. There are no nodes until Add.
func (c *ControlPlane) PlayNodes(imageID func(string) string) (*Nodes, error) {
	config, err := c.As("kubelet")
	if err != nil {
		return nil, err
	}
	writer, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Nodes{ImageID: imageID, client: writer, cancel: cancel, done: make(chan struct{}), images: map[string]Image{}, silent: map[string]bool{}}
	go n.run(ctx)
	return n, nil
}

// Stop ends the play and returns what went wrong in it.
func (n *Nodes) Stop() error {
	n.cancel()
	<-n.done
	return errors.Join(n.failed...)
}

// SetImage says how containers of an image behave from now on.
func (n *Nodes) SetImage(name string, image Image) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.images[name] = image
}

// Add adds a ready Linux node.
func (n *Nodes) Add(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	if err := n.client.Create(ctx, node); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &name, new(int32(4))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if err := n.client.Create(ctx, lease); err != nil {
		return err
	}
	return n.Heal(ctx, name)
}

// Fail makes a node fall silent.
func (n *Nodes) Fail(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[name] = true
}

// Break makes a node report that it is not ready, and then fall silent.
func (n *Nodes) Break(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[name] = true
	node := &corev1.Node{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionFalse, "KubeletNotReady", "container runtime is down", metav1.Now()
		}
	}
	return n.client.Status().Patch(ctx, node, client.MergeFrom(before))
}

// Remove takes a node away with its Node object, as a cloud does.
func (n *Nodes) Remove(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.silent, name)
	return client.IgnoreNotFound(n.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// Heal makes a node report that it is ready, and go on doing so.
func (n *Nodes) Heal(ctx context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[name], n.beat = false, time.Time{}
	return n.report(ctx, name)
}

// report writes the node's conditions, as a kubelet does when it starts, unless they say already that it is ready.
func (n *Nodes) report(ctx context.Context, name string) error {
	node := &corev1.Node{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil || isReady(node) {
		return err
	}
	before := node.DeepCopy()
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	node.Status.Conditions = []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
	return n.client.Status().Patch(ctx, node, client.MergeFrom(before))
}

func (n *Nodes) run(ctx context.Context) {
	defer close(n.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(nodesPeriod):
		}
		n.mu.Lock()
		if err := n.step(ctx); err != nil && ctx.Err() == nil && !expected(err) {
			n.failed = append(n.failed, err)
		}
		n.mu.Unlock()
	}
}

// expected: another writer was faster, or the namespace is being deleted, and the next step looks again.
func expected(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

func (n *Nodes) step(ctx context.Context) error {
	if time.Since(n.beat) >= heartbeatPeriod {
		n.beat = time.Now()
		for name, silent := range n.silent {
			if silent {
				continue
			}
			if err := n.heartbeat(ctx, name); err != nil {
				return err
			}
		}
	}
	pods := &corev1.PodList{}
	if err := n.client.List(ctx, pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := n.look(ctx, &pods.Items[i], pods.Items); err != nil && !expected(err) {
			return fmt.Errorf("play for Pod %s/%s: %w", pods.Items[i].Namespace, pods.Items[i].Name, err)
		}
	}
	return nil
}

// heartbeat renews a node's Lease, and its condition when that was taken away.
func (n *Nodes) heartbeat(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	if err := n.client.Patch(ctx, lease, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return err
	}
	return n.report(ctx, name)
}

// look does the next thing that a Pod needs.
func (n *Nodes) look(ctx context.Context, pod *corev1.Pod, all []corev1.Pod) error {
	name := pod.Spec.NodeName
	silent, ours := n.silent[name]
	switch {
	case name == "" && pod.DeletionTimestamp == nil:
		return n.schedule(ctx, pod, all)
	case !ours || silent:
		return nil
	case pod.DeletionTimestamp != nil:
		return n.stopped(ctx, pod)
	case pod.Status.Phase == corev1.PodPending:
		return n.start(ctx, pod)
	}
	return n.ready(ctx, pod)
}

// schedule binds a Pod to the usable node with the fewest Pods.
func (n *Nodes) schedule(ctx context.Context, pod *corev1.Pod, all []corev1.Pod) error {
	nodes := &corev1.NodeList{}
	if err := n.client.List(ctx, nodes); err != nil {
		return err
	}
	count := func(node string) (pods int) {
		for i := range all {
			if all[i].Spec.NodeName == node && all[i].DeletionTimestamp == nil {
				pods++
			}
		}
		return pods
	}
	usable := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool {
		return node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || !isReady(&node)
	})
	if len(usable) == 0 {
		return nil
	}
	best := slices.MinFunc(usable, func(a, b corev1.Node) int {
		return cmp.Or(cmp.Compare(count(a.Name), count(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	for i := range all {
		if all[i].UID == pod.UID {
			all[i].Spec.NodeName = best.Name // counts for the Pods after it
		}
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: best.Name}}
	return n.client.SubResource("binding").Create(ctx, pod, binding)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// start runs the containers, which are not ready yet, or says what they wait for.
func (n *Nodes) start(ctx context.Context, pod *corev1.Pod) error {
	before, now := pod.DeepCopy(), metav1.Now()
	completed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
	var waits bool
	if pod.Status.InitContainerStatuses, waits = n.statuses(pod.Spec.InitContainers, completed); waits {
		return n.patch(ctx, before, pod)
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	if pod.Status.ContainerStatuses, waits = n.statuses(pod.Spec.Containers, running); !waits {
		pod.Status.Phase, pod.Status.StartTime, pod.Status.PodIP = corev1.PodRunning, &now, "10.128.0.1"
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	setCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "")
	setCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, "ContainersNotReady")
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady")
	return n.patch(ctx, before, pod)
}

// statuses gives containers a state, up to the first that has to wait.
func (n *Nodes) statuses(containers []corev1.Container, state corev1.ContainerState) (statuses []corev1.ContainerStatus, waits bool) {
	for _, c := range containers {
		image := n.images[c.Image]
		if waits = waits || image.Waits != nil; waits {
			reason := cmp.Or(image.Waits, &corev1.ContainerStateWaiting{Reason: "PodInitializing"})
			statuses = append(statuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false), State: corev1.ContainerState{Waiting: reason}})
			continue
		}
		statuses = append(statuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: cmp.Or(image.ID, n.ImageID(c.Image)), State: state,
			Started: new(state.Running != nil), Ready: state.Terminated != nil,
		})
	}
	return statuses, waits
}

// ready makes a Pod ready that is not, one step after it started, or after its node came back; one that has something
// to do has ended by then.
func (n *Nodes) ready(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	for _, c := range pod.Spec.Containers {
		switch image := n.images[c.Image]; {
		case image.Run != nil:
			return n.runToEnd(ctx, pod, image)
		case image.NeverReady:
			return nil
		}
	}
	before := pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = true
	}
	setCondition(pod, corev1.ContainersReady, corev1.ConditionTrue, "")
	setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "")
	return n.patch(ctx, before, pod)
}

// runToEnd runs a Pod whose containers are not started again.
func (n *Nodes) runToEnd(ctx context.Context, pod *corev1.Pod, image Image) error {
	before := pod.DeepCopy()
	code, message := image.Run(ctx, pod)
	pod.Status.Phase = corev1.PodSucceeded
	ended := corev1.ContainerStateTerminated{Reason: "Completed", ExitCode: code, Message: message, FinishedAt: metav1.Now()}
	if code != 0 {
		pod.Status.Phase, ended.Reason = corev1.PodFailed, "Error"
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &ended}
	}
	return n.patch(ctx, before, pod)
}

// patch writes a Pod's status when it changed.
func (n *Nodes) patch(ctx context.Context, before, after *corev1.Pod) error {
	patch := client.StrategicMergeFrom(before)
	if data, err := patch.Data(after); err != nil || string(data) == "{}" {
		return err
	}
	return n.client.Status().Patch(ctx, after, patch)
}

// stopped is the kubelet's word that a Pod has ended.
func (n *Nodes) stopped(ctx context.Context, pod *corev1.Pod) error {
	return n.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) {
	want := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
	for i := range pod.Status.Conditions {
		have := &pod.Status.Conditions[i]
		if have.Type != kind {
			continue
		}
		if have.Status != status {
			*have = want
		}
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, want)
}
