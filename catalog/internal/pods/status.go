// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Why a Pod that is not ready would not become ready elsewhere either; package catalog
// documents them.
const (
	ReasonPodUnschedulable = "PodUnschedulable"
	ReasonImagePullFailed  = "ImagePullFailed"
	ReasonCrashLooping     = "CrashLooping"
)

// condition returns a condition of a Pod, the zero one when there is none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// boundAt is when the Pod was bound to its node.
func boundAt(pod *corev1.Pod) time.Time {
	if c := condition(pod, corev1.PodScheduled); c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// unreadySince is when a bound Pod that is not ready started to be late: a Pod
// that was ready once gets the whole deadline again.
func unreadySince(pod *corev1.Pod) time.Time {
	since := boundAt(pod)
	if c := condition(pod, corev1.PodReady); c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	return since
}

// ReadySince is when the condition Ready became what it is; ready is its status.
func (p *Pod) ReadySince() (since time.Time, ready bool) {
	c := condition(p.Object, corev1.PodReady)
	return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
}

// Containers returns the statuses of all containers, in the order in which they run.
func Containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// Ran returns when the Pod's containers started last and when they finished.
// A Pod without that status finished when it stopped being ready, or never began.
func (p *Pod) Ran() (started, finished time.Time) {
	for _, status := range Containers(p.Object) {
		if t := status.State.Terminated; t != nil && t.FinishedAt.After(finished) {
			started, finished = t.StartedAt.Time, t.FinishedAt.Time
		}
	}
	if finished.IsZero() {
		return time.Time{}, unreadySince(p.Object)
	}
	return started, finished
}

// troubleOf returns why a Pod that is not ready would not become ready elsewhere
// either; empty when nothing is known. The kubelet alternates between several
// words for one trouble; one Reason stands for all of them.
func troubleOf(pod *corev1.Pod) string {
	if c := condition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return ReasonPodUnschedulable
	}
	trouble := ""
	for _, status := range Containers(pod) {
		switch containerTrouble(status) {
		case ReasonImagePullFailed:
			return ReasonImagePullFailed
		case ReasonCrashLooping:
			trouble = ReasonCrashLooping
		}
	}
	return trouble
}

func containerTrouble(s corev1.ContainerStatus) string {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull":
			return ReasonImagePullFailed
		case "CrashLoopBackOff", "CreateContainerConfigError", "RunContainerError":
			return ReasonCrashLooping
		}
	}
	// Between two crashes the container runs for a moment; it is no better then.
	if t := s.LastTerminationState.Terminated; t != nil && !s.Ready && (s.RestartCount > 1 || t.Reason == "OOMKilled") {
		return ReasonCrashLooping
	}
	return ""
}

// ImageID returns the digest that a Pod's image has, empty while it is unknown.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, imageID.
func ImageID(pod *corev1.Pod) string {
	inits, containers := pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses
	switch {
	case len(inits) == 0 && len(containers) == 1:
		return containers[0].ImageID
	case len(inits) == 2 && len(containers) == 1:
		return inits[1].ImageID
	}
	return ""
}
