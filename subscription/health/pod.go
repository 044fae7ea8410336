// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func labelsOf(p *corev1.Pod) labels.Set { return labels.Set(p.Labels) }

// troubleOf returns the reason and the message of the failure of a Pod. Both are empty if the Pod is ready.
func troubleOf(p *corev1.Pod) (reason, message string) {
	scheduled, ready := podCondition(p, corev1.PodScheduled), podCondition(p, corev1.PodReady)
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return ReasonPodFailed, cmp.Or(join(p.Status.Reason, p.Status.Message), lastWords(p), "the Pod has failed")
	case scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable:
		return ReasonUnschedulable, cmp.Or(scheduled.Message, "no node can run the Pod")
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason, message = containerTrouble(&s); reason != "" {
			return reason, message
		}
	}
	running := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	switch {
	case ready.Status == corev1.ConditionTrue:
		return "", ""
	case running:
		return ReasonNotReady, cmp.Or(ready.Message, "the Pod is not ready")
	}
	return ReasonPodPending, cmp.Or(ready.Message, scheduled.Message, "the Pod is pending")
}

// containerTrouble returns the reason and the message of the failure of a container. Both are empty if its status shows
// none.
func containerTrouble(s *corev1.ContainerStatus) (reason, message string) {
	waiting, last := s.State.Waiting, cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	if waiting != nil {
		i := slices.IndexFunc(troubles, func(t trouble) bool { return slices.Contains(t.Waiting, waiting.Reason) })
		if i < 0 {
			return "", ""
		}
		if reason = troubles[i].Reason; reason != ReasonCrashLoop {
			return reason, about(s, join(waiting.Reason, waiting.Message), s.Image)
		}
	} else if last == nil || s.Ready || last.Reason != ReasonOutOfMemory && s.RestartCount < 2 {
		return "", "" // after two restarts, a running container is still reported as crashing
	}
	reason = ReasonCrashLoop
	if last == nil {
		return reason, about(s, join(waiting.Reason, waiting.Message), "")
	}
	if last.Reason == ReasonOutOfMemory {
		reason = ReasonOutOfMemory
	}
	return reason, about(
		s,
		join(fmt.Sprintf("ended with exit code %d (%s)", last.ExitCode, cmp.Or(last.Reason, "no reason")), last.Message),
		"",
	)
}

// lastWords returns the message of the first container of a finished Pod that failed, or "".
func lastWords(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		t := s.State.Terminated
		if t != nil && t.ExitCode != 0 {
			return about(&s, join(fmt.Sprintf("ended with exit code %d (%s)", t.ExitCode, cmp.Or(t.Reason, "no reason")), t.Message), "")
		}
	}
	return ""
}

// about returns a message about a container. It names the image unless image is empty.
func about(s *corev1.ContainerStatus, what, image string) string {
	subject := "container " + s.Name
	if image != "" {
		subject += ", image " + image
	}
	return subject + ": " + what
}

// join returns "reason: message", or the one of them that is not empty.
func join(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func podCondition(p *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	if i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t }); i >= 0 {
		return p.Status.Conditions[i]
	}
	return corev1.PodCondition{}
}
