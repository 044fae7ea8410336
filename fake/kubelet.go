// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// image is what the simulated registry and runtime know about an image.
type image struct {
	digest string // sha256:...; empty: made from the name
	broken string // the reason that containers wait with; empty: it works
}

func (c *Cluster) breakImage(name, reason string) {
	i := c.images[name]
	i.broken = reason
	c.images[name] = i
	c.enqueueAll(workqueue.Pods, store.PodKind, "")
	c.enqueueAll(workqueue.Deployments, store.DeploymentKind, "")
}

// imageID returns the imageID of a container status for an image.
func (c *Cluster) imageID(name string) string {
	if strings.Contains(name, "@") {
		return name
	}
	repository := name
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		repository = name[:i]
	}
	digest := c.images[name].digest
	if digest == "" {
		sum := sha256.Sum256([]byte(name))
		digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	return repository + "@" + digest
}

// runKubelet starts a Pod, one visible state at a time, and keeps its readiness in step with its node's.
func (c *Cluster) runKubelet(pod *corev1.Pod, node *corev1.Node) {
	k := c.kubelets[node.Name]
	switch {
	case !isReady(node):
		c.markNotReady(pod)
	case k.silent() || c.held[pod.UID]:
	default:
		next := pod.DeepCopy()
		c.runContainers(next)
		c.store.ReplaceStatus(c.store.Table(store.PodKind), pod, next)
	}
}

// markNotReady is what the node lifecycle controller does to the Pods of a node that is not ready.
func (c *Cluster) markNotReady(pod *corev1.Pod) {
	if !podReady(pod) {
		return
	}
	next := pod.DeepCopy()
	c.setPodCondition(next, corev1.PodReady, false, "NodeNotReady", "")
	c.commitPod(pod, next)
}

func (c *Cluster) runContainers(pod *corev1.Pod) {
	s := &pod.Status
	c.setPodCondition(pod, corev1.PodScheduled, true, "", "")
	if s.StartTime == nil {
		s.StartTime = new(olmcore.Timestamp(c.Now()))
	}
	if s.Phase == "" {
		s.Phase = corev1.PodPending
	}
	initialized := true
	for _, container := range pod.Spec.InitContainers {
		initialized = c.runInitContainer(pod, container) && initialized
	}
	c.setPodCondition(pod, corev1.PodInitialized, initialized, reasonUnless(initialized, "ContainersNotInitialized"), "")
	ready := initialized
	for _, container := range pod.Spec.Containers {
		ready = c.runContainer(pod, container, initialized) && ready
	}
	if initialized && slices.ContainsFunc(s.ContainerStatuses, func(cs corev1.ContainerStatus) bool { return cs.State.Running != nil || cs.RestartCount > 0 }) {
		s.Phase = corev1.PodRunning
		if s.PodIP == "" {
			s.PodIP = c.nextIP("10.128")
			s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		}
	}
	reason := reasonUnless(ready, "ContainersNotReady")
	c.setPodCondition(pod, corev1.ContainersReady, ready, reason, "")
	c.setPodCondition(pod, corev1.PodReady, ready, reason, "")
}

func reasonUnless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

func (c *Cluster) runInitContainer(pod *corev1.Pod, container corev1.Container) (done bool) {
	status := containerStatus(&pod.Status.InitContainerStatuses, container.Name)
	if status.State.Terminated != nil && status.Image == container.Image {
		return true
	}
	status.Image, status.Ready = container.Image, false
	if broken := c.images[container.Image].broken; broken != "" && broken != NeverReady {
		c.wait(status, broken)
		return false
	}
	at := olmcore.Timestamp(c.Now())
	status.ImageID, status.Ready = c.imageID(container.Image), true
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}}
	return true
}

// runContainer moves one container one state on: waiting, running, ready.
func (c *Cluster) runContainer(pod *corev1.Pod, container corev1.Container, initialized bool) (ready bool) {
	status := containerStatus(&pod.Status.ContainerStatuses, container.Name)
	broken := c.images[container.Image].broken
	running := status.State.Running != nil
	switch {
	case running && status.Image == container.Image:
		status.Ready = status.Ready || broken != NeverReady
	case !initialized:
		status.Image = container.Image
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	case broken != "" && broken != NeverReady:
		if running {
			status.RestartCount++
		}
		status.Image = container.Image
		c.wait(status, broken)
	default:
		if running || status.RestartCount > 0 {
			status.RestartCount++
		}
		status.Image, status.ImageID = container.Image, c.imageID(container.Image)
		status.Ready, status.Started = false, new(true)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: olmcore.Timestamp(c.Now())}}
	}
	return status.Ready
}

func (c *Cluster) wait(status *corev1.ContainerStatus, reason string) {
	status.Ready = false
	status.Started = new(false)
	if reason == CrashLoopBackOff && status.RestartCount == 0 {
		at := olmcore.Timestamp(c.Now())
		status.RestartCount = 1
		status.ImageID = c.imageID(status.Image)
		status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: at, FinishedAt: at}}
	}
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func containerStatus(statuses *[]corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range *statuses {
		if (*statuses)[i].Name == name {
			return &(*statuses)[i]
		}
	}
	*statuses = append(*statuses, corev1.ContainerStatus{Name: name})
	return &(*statuses)[len(*statuses)-1]
}
