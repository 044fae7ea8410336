// SPDX-License-Identifier: Apache-2.0

// Package pods classifies the registry Pods of a CatalogSource: what each is worth, by
// its own status and the state of its Node. Everything that is decided about a Pod
// follows from the row of its class in the table [Classes].
package pods

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Why a Pod is lost; package catalog documents them.
const (
	ReasonNodeGone         = "NodeGone"
	ReasonNodeOutOfService = "NodeOutOfService"
	ReasonNodeUnreachable  = "NodeUnreachable"
	ReasonNodeNotReady     = "NodeNotReady"
	ReasonEvicted          = "Evicted"
	ReasonOverdue          = "Overdue"
)

// Role is what a Pod's labels make it.
type Role int

// Roles.
const (
	RoleNone Role = iota
	// RoleServing: the Service selects it.
	RoleServing
	// RoleCandidate: it waits to take over.
	RoleCandidate
)

// RoleOf returns the role of a Pod for the catalog of a name.
func RoleOf(pod *corev1.Pod, name string) Role {
	serving, ok := pod.Labels[registry.LabelServing]
	switch {
	case ok && serving == name:
		return RoleServing
	case ok && serving == "" && pod.Labels[registry.LabelCandidate] == name:
		return RoleCandidate
	}
	return RoleNone
}

// MaxAttempt bounds the number of the attempt to start a Pod.
const MaxAttempt = 20

// Pod is one Pod, classified. It is read-only.
type Pod struct {
	*Traits
	Object *corev1.Pod
	Role   Role
	// Owned: it has an owner reference to the CatalogSource. Finished: it will not run
	// again. Current: it was made from the present spec.
	Owned, Finished, Current bool
	// Ready: its condition Ready is True, and it has not finished.
	Ready bool
	// Node is empty for Pods that are not the catalog's or have finished.
	Node      NodeState
	NodeSince time.Time
	// Lost is why a Pod of ClassLost is lost, Trouble what holds up one of
	// ClassUnhealthy: a Reason of ConditionDegraded.
	Lost, Trouble string
	// Late: it is not ready for longer than the deadline.
	Late bool
	// Left is what a Pod has left of the deadline to become ready, from its creation.
	Left time.Duration
	// Probe: it was made to poll the image, and does not serve.
	Probe bool
	// MadeFor is why it was made, empty when it does not say; Attempt is the number of
	// the attempt, Replaces the UID of the Pod that it was made for.
	MadeFor  string
	Attempt  int
	Replaces types.UID
	// Content is the digest that its catalog comes from, empty while it is unknown, and
	// for ConfigMaps: there the Pods of one spec have one content.
	Content string
	// Wait is the time until the class may change by the clock alone; 0: never.
	Wait time.Duration

	startLeft time.Duration
}

func (p *Pod) overdueToStart() bool { return p.startLeft <= 0 }

// Name returns the Pod's name.
func (p *Pod) Name() string { return p.Object.Name }

// Serves reports whether the Pod answers clients of the catalog.
func (p *Pod) Serves() bool { return p.Role == RoleServing && p.Ready && p.Live }

// Stays reports whether the Pod is ready and not about to be evicted.
func (p *Pod) Stays() bool { return p.Ready && p.Present && !p.Leaves }

// Outdated reports whether the Pod may serve and was made from another spec.
func (p *Pod) Outdated() bool { return p.Live && !p.Present }

// Usable reports whether a candidate may still take over.
func (p *Pod) Usable() bool { return p.Present && !p.Expired() }

// Expired reports whether the Pod did not become ready by its deadline.
func (p *Pod) Expired() bool { return !p.Ready && p.Left <= 0 }

// LostWithNode reports whether the Pod is lost because of its Node.
func (p *Pod) LostWithNode() bool { return p.Lost != "" && p.Lost != ReasonOverdue }

// Held reports whether a finalizer keeps a finished Pod that has been deleted.
func (p *Pod) Held() bool {
	return p.Finished && p.Object.DeletionTimestamp != nil && len(p.Object.Finalizers) > 0
}

// Forced reports whether a force delete has been accepted already: what holds the Pod
// now is a finalizer.
func (p *Pod) Forced() bool {
	return p.Object.DeletionGracePeriodSeconds != nil && *p.Object.DeletionGracePeriodSeconds == 0
}

// DisruptionTarget reports whether the Pod is about to be evicted.
func (p *Pod) DisruptionTarget() bool {
	return condition(p.Object, corev1.DisruptionTarget).Status == corev1.ConditionTrue
}

// MadeToPoll reports whether the Pod was made to poll the image. OLM makes candidates
// for nothing else, and does not write that on them.
func (p *Pod) MadeToPoll() bool {
	return p.MadeFor == registry.PurposePoll || p.MadeFor == "" && p.Role == RoleCandidate
}

// Cause says why the Pod is replaced.
func (p *Pod) Cause() olmcore.Cause {
	return olmcore.Cause{Reason: cmp.Or(p.Reason, p.Lost), Message: "replaces " + p.Name() + ": " + p.Explain()}
}

// Explain says in words what is the matter with a Pod.
func (p *Pod) Explain() string {
	node := "node " + p.Object.Spec.NodeName
	switch {
	case p.Explanation != "":
		return strings.ReplaceAll(p.Explanation, "{node}", node)
	case p.Lost == ReasonOverdue || p.Lost == ReasonEvicted:
		return "it was deleted and is still there, " + node
	case p.Lost != "":
		return node + " " + p.Node.word()
	}
	return p.Describe()
}

// Describe is what a list of Pods says about one, empty for a Pod that serves.
func (p *Pod) Describe() string {
	word := p.Node.word()
	switch {
	case p.Note != "":
		return p.Note
	case p.Lost != "" && word != "":
		return "lost, its node " + word
	case p.Lost != "":
		return "lost"
	case p.Live && p.Ready:
		return ""
	case word != "":
		return "not ready, its node " + word
	}
	switch p.Trouble {
	case ReasonImagePullFailed:
		return "cannot pull its image"
	case ReasonCrashLooping:
		return "does not stay up"
	case ReasonPodUnschedulable:
		return "no node takes it"
	}
	return "not ready"
}

// complain returns the Reason of ConditionDegraded that the Pod gives, and what is
// wrong; empty for none.
func (p *Pod) complain() (reason, text string) {
	if p.Role == RoleNone || p.Complaint == nil {
		return "", ""
	}
	switch reason = p.Complaint(p); reason {
	case ReasonStuckTerminating:
		return reason, "it was deleted and is still there"
	case ReasonForeignPod:
		return reason, "it has the catalog's labels and another owner"
	}
	return reason, p.Describe()
}
