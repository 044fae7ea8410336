// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Class is what a registry Pod is worth.
type Class string

// Pod classes; exactly one holds, the first that fits.
const (
	// ClassForeign: not owned by this CatalogSource; never touched.
	ClassForeign Class = "Foreign"
	// ClassTerminated: finished, whatever the result.
	ClassTerminated Class = "Terminated"
	// ClassLost: its node failed, or it outlived its deletion; it counts for nothing.
	ClassLost Class = "Lost"
	// ClassTerminating: being deleted.
	ClassTerminating Class = "Terminating"
	// ClassOutdated: made from another spec; it serves while it is ready.
	ClassOutdated Class = "Outdated"
	// ClassDisrupted: about to be evicted; it serves while it is ready.
	ClassDisrupted Class = "Disrupted"
	// ClassStuck: its node does not start it, for no reason that the Pod tells.
	ClassStuck Class = "Stuck"
	// ClassUnhealthy: not ready for a reason that another Pod would share.
	ClassUnhealthy Class = "Unhealthy"
	// ClassStarting: not ready yet, or for a moment.
	ClassStarting Class = "Starting"
	// ClassServing: ready.
	ClassServing Class = "Serving"
)

// Why a Pod is lost; also reasons of the actions that follow.
const (
	// ReasonNodeGone: the Node object was deleted.
	ReasonNodeGone = "NodeGone"
	// ReasonNodeOutOfService: an administrator put the node out of service.
	ReasonNodeOutOfService = "NodeOutOfService"
	// ReasonNodeUnreachable: the node is silent for longer than its grace.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonNodeNotReady: the node is not ready for longer than its grace.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonEvicted: Kubernetes gave the Pod up because of its node.
	ReasonEvicted = "Evicted"
	// ReasonOverdue: the Pod outlived its deletion.
	ReasonOverdue = "Overdue"
)

type role int

const (
	roleNone role = iota
	roleServing
	roleCandidate
)

// podFacts is one Pod, judged.
type podFacts struct {
	pod       *corev1.Pod
	role      role
	class     Class
	ready     bool
	node      NodeState
	nodeSince time.Time
	// lost is why a Pod of ClassLost is lost, trouble what holds up one of
	// ClassUnhealthy: a Reason of ConditionDegraded.
	lost, trouble string
	// late: it is not ready for longer than the deadline.
	late bool
	// probe: it was made to poll the image, and does not serve. Its troubles are told
	// in ConditionUpdatePolled.
	probe bool
	// wait is the time until the class may change by the clock alone; 0: never.
	wait time.Duration
}

func (p *podFacts) requeue(d time.Duration) {
	if d > 0 && (p.wait == 0 || d < p.wait) {
		p.wait = d
	}
}

// live reports whether the Pod may serve now or soon.
func (p *podFacts) live() bool {
	switch p.class {
	case ClassOutdated, ClassDisrupted, ClassUnhealthy, ClassStarting, ClassServing:
		return true
	}
	return false
}

// doubtful reports whether the node may be about to fail: then its grace period
// decides, and nothing else.
func (p *podFacts) doubtful() bool {
	return p.node == NodeUnreachable || p.node == NodeNotReady || p.node == NodeGone
}

// serves reports whether the Pod answers clients of the catalog.
func (p *podFacts) serves() bool { return p.role == roleServing && p.ready && p.live() }

// roleOf returns what a Pod's labels make it for the catalog of a name.
func roleOf(pod *corev1.Pod, name string) role {
	if serving, ok := pod.Labels[labelServing]; ok {
		switch {
		case serving == name:
			return roleServing
		case serving == "" && pod.Labels[labelCandidate] == name:
			return roleCandidate
		}
	}
	return roleNone
}

func (v *view) judge(pod *corev1.Pod) podFacts {
	p := podFacts{pod: pod, role: roleOf(pod, v.cs.Name), ready: podCondition(pod, corev1.PodReady) == corev1.ConditionTrue}
	if !owns(v.cs.UID, pod.OwnerReferences) {
		p.class = ClassForeign
		return p
	}
	p.probe = p.role == roleCandidate && v.isProbe(pod)
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		p.class, p.ready = ClassTerminated, false
		return p
	}
	p.node, p.nodeSince = v.nodeOf(pod)
	if p.node == NodeRecovering {
		p.requeue(v.left(p.nodeSince, v.set.recovery))
	}
	if v.isLost(&p) {
		p.class = ClassLost
		return p
	}
	p.class = v.classOfKept(&p)
	return p
}

// isLost applies the rules by which a Pod counts as lost, in their order.
func (v *view) isLost(p *podFacts) bool {
	past := func(since time.Time, grace time.Duration) bool {
		left := v.left(since, grace)
		p.requeue(left)
		return left <= 0
	}
	pod := p.pod
	switch {
	case p.node == NodeGone && past(p.nodeSince, v.set.gone):
		p.lost = ReasonNodeGone
	case p.node == NodeOutOfService:
		p.lost = ReasonNodeOutOfService
	// The node controller takes Ready from the Pods of a silent node. While a Pod
	// still has it, the Pod is trusted.
	case p.node == NodeUnreachable && !p.ready && past(p.nodeSince, v.set.unreachable):
		p.lost = ReasonNodeUnreachable
	case p.node == NodeNotReady && !p.ready && past(p.nodeSince, v.set.notReady):
		p.lost = ReasonNodeNotReady
	case pod.DeletionTimestamp == nil:
	case !v.in.Nodes.Complete && evictedByNode(pod):
		p.lost = ReasonEvicted
	case past(pod.DeletionTimestamp.Time, v.set.stuckTerminating):
		p.lost = ReasonOverdue
	}
	return p.lost != ""
}

func (v *view) classOfKept(p *podFacts) Class {
	pod := p.pod
	switch {
	case pod.DeletionTimestamp != nil:
		return ClassTerminating
	case v.runsPods() && !v.current(pod):
		return ClassOutdated
	case p.node == NodeLeaving || podCondition(pod, corev1.DisruptionTarget) == corev1.ConditionTrue:
		return ClassDisrupted
	case p.ready:
		return ClassServing
	}
	p.trouble = troubleOf(pod)
	left := v.left(unreadySince(pod), v.set.progress)
	p.late = left <= 0
	p.requeue(left)
	switch {
	case p.trouble != "":
		return ClassUnhealthy
	case p.late && pod.Spec.NodeName != "" && !p.doubtful():
		return ClassStuck
	}
	return ClassStarting
}

func evictedByNode(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && (c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC")
		}
	}
	return false
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return pod.Status.Conditions[i].Status
		}
	}
	return ""
}

// boundAt is when the Pod was bound to its node.
func boundAt(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// unreadySince is when a bound Pod that is not ready started to be late: a Pod
// that was ready once gets the whole deadline again.
func unreadySince(pod *corev1.Pod) time.Time {
	since := boundAt(pod)
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// troubleOf returns why a Pod that is not ready would not become ready elsewhere
// either; empty when nothing is known. The kubelet alternates between several
// words for one trouble; one Reason stands for all of them.
func troubleOf(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return ReasonPodUnschedulable
		}
	}
	trouble := ""
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			switch containerTrouble(&statuses[i]) {
			case ReasonImagePullFailed:
				return ReasonImagePullFailed
			case ReasonCrashLooping:
				trouble = ReasonCrashLooping
			}
		}
	}
	return trouble
}

func containerTrouble(s *corev1.ContainerStatus) string {
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
