// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// planCleanup removes own Pods that are of no more use. Nothing waits for it.
func (pl *planner) planCleanup() {
	l, forced := &pl.pods, false
	newestStuck := l.Newest(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Remove == pods.RemoveStuck })
	for _, p := range l.Select(func(p *pods.Pod) bool { return p.Role != pods.RoleNone }) {
		if slices.Contains(pl.promotes, p) {
			continue
		}
		switch p.Remove {
		case pods.RemoveFinished:
			// One that a finalizer holds was deleted already.
			if !slices.Contains(pl.keep, p) && !p.Held() {
				pl.delete(p, 0, ReasonPodTerminated, "the Pod has finished")
			}
		case pods.RemoveLost:
			forced = pl.removeLost(p, forced) || forced
		case pods.RemoveDisrupted:
			if pl.set.force == ForceDeleteUpstream && p.DisruptionTarget() && !p.Forced() {
				pl.delete(p, 0, ReasonPodDisrupted, "the Pod is a target of disruption")
			}
		case pods.RemoveStuck:
			if p.Role == pods.RoleServing && (l.Ready() > 0 || p != newestStuck) {
				pl.delete(p, 1, p.Reason, "the Pod"+strings.TrimPrefix(p.Explain(), "it"))
			}
		}
		if p.Role == pods.RoleCandidate && p.Active {
			pl.removeCandidate(p)
		}
	}
}

func (pl *planner) removeCandidate(p *pods.Pod) {
	switch {
	case p.Outdated():
		pl.delete(p, 1, ReasonCandidateObsolete, "the Pod was made from another spec")
	case p.Expired():
		pl.delete(p, 1, ReasonProgressDeadlineExceeded, "the Pod did not become ready in time")
	}
}

// removeLost deletes a lost Pod once that costs nothing, and removes it by force
// when nothing is left that could confirm its end; it returns whether it did. While many
// nodes fail one is forced after the other.
func (pl *planner) removeLost(p *pods.Pod, forced bool) bool {
	certain := p.Lost == ReasonNodeGone || p.Lost == ReasonNodeOutOfService
	partial := pl.pods.Disruption == pods.PartialDisruption
	why := p.Explain()
	if p.Object.DeletionTimestamp == nil {
		switch {
		case certain && pl.set.force != ForceDeleteNever && !(forced && partial):
			pl.delete(p, 0, p.Lost, why)
			return true
		case certain:
			pl.delete(p, 1, p.Lost, why)
		case pl.pods.Ready() > 0:
			pl.delete(p, 1, ReasonPodReplaced, "another Pod serves; "+why)
		}
		return false
	}
	if p.Forced() || partial && (!certain || forced) {
		return false
	}
	left, may := pl.forceAfter(p, certain)
	if pl.waitFor(left); !may || left > 0 {
		return false
	}
	pl.delete(p, 0, p.Lost, why)
	return true
}

// forceAfter returns how long it is until the policy allows a lost and Terminating Pod
// to be removed, and whether it does at all.
func (pl *planner) forceAfter(p *pods.Pod, certain bool) (left time.Duration, may bool) {
	switch pl.set.force {
	case ForceDeleteNodeGone:
		return 0, certain
	case ForceDeleteNodeLost, ForceDeleteUpstream:
	default:
		return 0, false
	}
	switch p.Lost {
	case ReasonNodeUnreachable, ReasonNodeNotReady:
		return pl.left(p.Object.DeletionTimestamp.Time, 0), true
	case ReasonOverdue:
		if pl.set.force != ForceDeleteUpstream {
			return pl.nodeLostAfter(p)
		}
	}
	return 0, true
}

// nodeLostAfter returns how long it is until nothing is known to work that could confirm
// the end of a Pod: its node, if it has one, was given its grace period.
func (pl *planner) nodeLostAfter(p *pods.Pod) (left time.Duration, may bool) {
	switch p.Node {
	case NodeHealthy, NodeRecovering, NodeLeaving:
		return 0, false
	case NodeUnreachable:
		return pl.left(p.NodeSince, pl.set.graces.Unreachable), true
	case NodeNotReady:
		return pl.left(p.NodeSince, pl.set.graces.NotReady), true
	case NodeGone:
		return pl.left(p.NodeSince, pl.set.graces.Gone), true
	}
	return 0, true
}
