// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// runtime runs the containers of Pods.
type runtime struct {
	store  *store.Store
	images *Images
	now    func() time.Time
}

// runContainers moves each container of a Pod to its next visible state.
func (r *runtime) runContainers(pod *corev1.Pod) {
	s := &pod.Status
	setPodCondition(r.now(), pod, corev1.PodScheduled, true, "", "")
	if s.StartTime == nil {
		s.StartTime = new(olmcore.Timestamp(r.now()))
	}
	if s.Phase == "" {
		s.Phase = corev1.PodPending
	}
	initialized := true
	for _, container := range pod.Spec.InitContainers {
		initialized = r.runInitContainer(pod, container) && initialized
	}
	setPodCondition(r.now(), pod, corev1.PodInitialized, initialized, reasonUnless(initialized, "ContainersNotInitialized"), "")
	ready := initialized
	for _, container := range pod.Spec.Containers {
		ready = r.runContainer(pod, container, initialized) && ready
	}
	if initialized && slices.ContainsFunc(s.ContainerStatuses, hasStarted) {
		s.Phase = corev1.PodRunning
		if s.PodIP == "" {
			s.PodIP = r.store.NextIP("10.128")
			s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		}
	}
	reason := reasonUnless(ready, "ContainersNotReady")
	setPodCondition(r.now(), pod, corev1.ContainersReady, ready, reason, "")
	setPodCondition(r.now(), pod, corev1.PodReady, ready, reason, "")
}

func hasStarted(s corev1.ContainerStatus) bool { return s.State.Running != nil || s.RestartCount > 0 }

func reasonUnless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

func (r *runtime) runInitContainer(pod *corev1.Pod, container corev1.Container) (done bool) {
	status := containerStatus(&pod.Status.InitContainerStatuses, container.Name)
	if status.State.Terminated != nil && status.Image == container.Image {
		return true
	}
	status.Image, status.Ready = container.Image, false
	if broken := r.images.Broken(container.Image); broken != "" && broken != NeverReady {
		r.wait(status, broken)
		return false
	}
	at := olmcore.Timestamp(r.now())
	status.ImageID, status.Ready = r.images.ID(container.Image), true
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}}
	return true
}

// runContainer moves one container to its next state: waiting, running, ready.
func (r *runtime) runContainer(pod *corev1.Pod, container corev1.Container, initialized bool) (ready bool) {
	status := containerStatus(&pod.Status.ContainerStatuses, container.Name)
	broken := r.images.Broken(container.Image)
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
		r.wait(status, broken)
	default:
		if running || status.RestartCount > 0 {
			status.RestartCount++
		}
		status.Image, status.ImageID = container.Image, r.images.ID(container.Image)
		status.Ready, status.Started = false, new(true)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: olmcore.Timestamp(r.now())}}
	}
	return status.Ready
}

func (r *runtime) wait(status *corev1.ContainerStatus, reason string) {
	status.Ready = false
	status.Started = new(false)
	if reason == CrashLoopBackOff && status.RestartCount == 0 {
		at := olmcore.Timestamp(r.now())
		status.RestartCount = 1
		status.ImageID = r.images.ID(status.Image)
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
