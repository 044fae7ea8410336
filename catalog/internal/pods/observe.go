// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// stuckTerminatingGrace is how long a Pod may outlive its deletion time.
const stuckTerminatingGrace = 120 * time.Second

// Graces are how long a Node may be silent, not ready, or missing before its Pods count
// as lost.
type Graces struct{ Unreachable, NotReady, Gone time.Duration }

// Observation is what Pods are classified by.
type Observation struct {
	Now    time.Time
	Source *v1alpha1.CatalogSource
	Pods   []*corev1.Pod
	Nodes  olmcore.Observed[*corev1.Node]
	Graces Graces
	// Deadline is how long a Pod may take to become ready.
	Deadline time.Duration
	// IsCurrent reports whether a Pod was made from the present spec; nil: no Pod is
	// outdated.
	IsCurrent func(*corev1.Pod) bool
	// OneContent: the Pods of one spec have one content.
	OneContent bool
}

// Observe returns the Pods that are, or pretend to be, the catalog's, by name. Their
// classes are those of the table.
func (o Observation) Observe(table Table) List {
	var list List
	for _, pod := range o.Pods {
		role := RoleOf(pod, o.Source.Name)
		if pod.Namespace != o.Source.Namespace || role == RoleNone && !olmcore.OwnedBy(pod, o.Source.UID) {
			continue
		}
		p := o.inspect(pod, role)
		p.Traits = table.of(&p)
		if p.Diagnosed {
			p.Trouble, p.Late = troubleOf(pod), p.overdueToStart()
			p.Wait = Nearest(p.Wait, p.startLeft)
		}
		list.Items = append(list.Items, p)
	}
	slices.SortFunc(list.Items, func(a, b Pod) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(string(a.Object.UID), string(b.Object.UID)),
			strings.Compare(b.Object.ResourceVersion, a.Object.ResourceVersion))
	})
	list.Tally = list.count()
	list.Content = list.newestContent()
	list.Disruption = list.disruption(o.Nodes.Items)
	return list
}

// inspect returns what is known of a Pod before it has a class.
func (o Observation) inspect(pod *corev1.Pod, role Role) Pod {
	p := Pod{
		Object: pod, Role: role, Owned: olmcore.OwnedBy(pod, o.Source.UID), Current: o.IsCurrent == nil || o.IsCurrent(pod),
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		MadeFor:  pod.Annotations[registry.KeyPurpose], Replaces: types.UID(pod.Annotations[registry.KeyReplaces]), Attempt: attemptOf(pod),
		Left: o.left(pod.CreationTimestamp.Time, o.Deadline), startLeft: o.left(unreadySince(pod), o.Deadline),
	}
	if !o.OneContent {
		p.Content = ImageID(pod)
	}
	p.Ready = condition(pod, corev1.PodReady).Status == corev1.ConditionTrue && (!p.Owned || !p.Finished)
	p.Probe = role == RoleCandidate && p.Owned && p.MadeToPoll()
	if p.Owned && !p.Finished {
		p.Node, p.NodeSince = o.nodeOf(pod)
		if p.Node == NodeRecovering {
			p.Wait = o.left(p.NodeSince, nodeRecoveryWindow)
		}
		var wait time.Duration
		p.Lost, wait = o.lost(&p)
		p.Wait = Nearest(p.Wait, wait)
	}
	return p
}

// lost returns why a Pod counts as lost, and how long it is until it may.
func (o Observation) lost(p *Pod) (reason string, wait time.Duration) {
	var grace time.Duration
	switch {
	case p.Node == NodeOutOfService:
		return ReasonNodeOutOfService, 0
	case p.Node == NodeGone:
		reason, grace = ReasonNodeGone, o.Graces.Gone
	// The node controller takes Ready from the Pods of a silent node. While a Pod
	// still has it, it counts as serving.
	case p.Node == NodeUnreachable && !p.Ready:
		reason, grace = ReasonNodeUnreachable, o.Graces.Unreachable
	case p.Node == NodeNotReady && !p.Ready:
		reason, grace = ReasonNodeNotReady, o.Graces.NotReady
	}
	if reason != "" {
		if wait = o.left(p.NodeSince, grace); wait <= 0 {
			return reason, 0
		}
	}
	if p.Object.DeletionTimestamp == nil {
		return "", wait
	}
	if c := condition(p.Object, corev1.DisruptionTarget); !o.Nodes.Complete && c.Status == corev1.ConditionTrue &&
		(c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC") {
		return ReasonEvicted, wait
	}
	overdue := o.left(p.Object.DeletionTimestamp.Time, stuckTerminatingGrace)
	if overdue <= 0 {
		return ReasonOverdue, wait
	}
	return "", Nearest(wait, overdue)
}

func attemptOf(pod *corev1.Pod) int {
	k, _ := strconv.Atoi(pod.Annotations[registry.KeyAttempt])
	return min(max(k, 1), MaxAttempt)
}

// left returns how long it is until grace has passed since t; 0 or less when it has.
func (o Observation) left(t time.Time, grace time.Duration) time.Duration {
	return t.Add(grace).Sub(o.Now)
}

// Nearest returns the nearer of two deadlines; what is 0 or less is none.
func Nearest(a, b time.Duration) time.Duration {
	r := olmcore.Result{}
	r.Requeue(a)
	r.Requeue(b)
	return r.RequeueAfter
}
