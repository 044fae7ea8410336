// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// planCleanup removes own Pods that are of no more use. Nothing waits for it.
func (v *view) planCleanup(pl *plan) {
	forced, newestStuck := false, v.newestStuck()
	for i := range v.pods {
		p := &v.pods[i]
		if p.role == roleNone || slices.Contains(pl.promotes, p.pod) || v.strictly(p) {
			continue
		}
		switch p.class {
		case ClassTerminated:
			// The newest one remembers how often the start failed. One that a finalizer
			// holds has heard it already.
			if !slices.Contains(pl.keep, p.pod) && !isHeld(p.pod) {
				pl.delete(p, 0, ReasonPodTerminated, "the Pod has finished")
			}
		case ClassLost:
			forced = v.planLost(pl, p, forced)
		case ClassTerminating, ClassDisrupted:
			if v.set.force == ForceDeleteUpstream && podCondition(p.pod, corev1.DisruptionTarget) == corev1.ConditionTrue && !wasForced(p.pod) {
				pl.delete(p, 0, ReasonPodDisrupted, "the Pod is a target of disruption")
			}
		case ClassStuck:
			if p.role == roleServing && (v.tally.ready() > 0 || p.pod != newestStuck) {
				pl.delete(p, 1, ReasonPodStuck, "the Pod does not start on node "+p.pod.Spec.NodeName)
			}
		}
		if p.role == roleCandidate && (p.live() || p.class == ClassStuck) {
			switch {
			case p.class == ClassOutdated:
				pl.delete(p, 1, ReasonCandidateObsolete, "the Pod was made from another spec")
			case v.candidateLeft(p) <= 0:
				pl.delete(p, 1, ReasonProgressDeadlineExceeded, "the Pod did not become ready in time")
			case p.class == ClassStuck:
				pl.delete(p, 1, ReasonPodStuck, "the Pod does not start on node "+p.pod.Spec.NodeName)
			}
		}
	}
}

// planLost deletes a lost Pod once that costs nothing, and removes it by force
// when nobody is left to confirm its end.
func (v *view) planLost(pl *plan, p *podFacts, forced bool) bool {
	vouched := p.lost == ReasonNodeGone || p.lost == ReasonNodeOutOfService
	why := p.explain()
	if p.pod.DeletionTimestamp == nil {
		switch {
		case vouched && (v.set.force == ForceDeleteNodeGone || v.set.force == ForceDeleteNodeLost || v.set.force == ForceDeleteUpstream) &&
			!(forced && v.disruption == partialDisruption):
			pl.delete(p, 0, p.lost, why)
			return true
		case vouched:
			pl.delete(p, 1, p.lost, why)
		case v.tally.ready() > 0:
			pl.delete(p, 1, ReasonPodReplaced, "another Pod serves; "+why)
		}
		return forced
	}
	if wasForced(p.pod) || v.disruption == partialDisruption && (!vouched || forced) || !v.mayForce(p, vouched) {
		return forced
	}
	pl.delete(p, 0, p.lost, why)
	return true
}

// wasForced reports whether a force delete has been accepted already: what holds
// the Pod now is a finalizer.
func wasForced(pod *corev1.Pod) bool {
	return pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// isHeld reports whether a finalizer keeps a finished Pod that has been deleted.
func isHeld(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && len(pod.Finalizers) > 0 }

// mayForce reports whether the policy allows a lost and Terminating Pod to be
// removed.
func (v *view) mayForce(p *podFacts, vouched bool) bool {
	switch v.set.force {
	case ForceDeleteNodeGone:
		return vouched
	case ForceDeleteNodeLost, ForceDeleteUpstream:
	default:
		return false
	}
	switch p.lost {
	case ReasonNodeUnreachable, ReasonNodeNotReady:
		left := v.left(p.pod.DeletionTimestamp.Time, 0)
		v.waitFor(left)
		return left <= 0
	case ReasonOverdue:
		if v.set.force == ForceDeleteUpstream {
			return true
		}
		return v.nodeIsLost(p)
	}
	return true
}

// nodeIsLost reports whether nobody is known to work who could confirm the end of a
// Pod: its node, if it has one, was given its grace.
func (v *view) nodeIsLost(p *podFacts) bool {
	grace := time.Duration(0)
	switch p.node {
	case NodeHealthy, NodeRecovering, NodeLeaving:
		return false
	case NodeUnreachable:
		grace = v.set.unreachable
	case NodeNotReady:
		grace = v.set.notReady
	case NodeGone:
		grace = v.set.gone
	default:
		return true
	}
	left := v.left(p.nodeSince, grace)
	v.waitFor(left)
	return left <= 0
}

// newestStuck returns the newest stuck Pod of the serving role, nil when there is
// none.
func (v *view) newestStuck() (newest *corev1.Pod) {
	for i := range v.pods {
		if p := &v.pods[i]; p.class == ClassStuck && p.role == roleServing && (newest == nil || newer(p.pod, newest)) {
			newest = p.pod
		}
	}
	return newest
}

// action returns the action of a deletion. It names the version of the Pod that was
// judged: one that changed since may serve by now.
func (d deletion) action() olmcore.Action {
	return olmcore.Delete{Target: olmcore.RefOf(d.pod), GracePeriodSeconds: &d.grace, Cause: d.cause}
}
