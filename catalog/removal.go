// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// removeUseless removes Pods that cannot serve any more. No other part of the decision waits for their deletion.
func removeUseless(f *facts, d decision) decision {
	return decision{}.and(
		removeFinishedPods(f, d),
		removeLostPods(f, d),
		removeDisruptedPods(f, d),
		removeStuckPods(f, d),
		removeCandidates(f, d),
	)
}

// removable returns the Pods whose class is removed in the given way, except candidates that become active.
func removable(f *facts, d decision, way removal) podList {
	return f.pods.all.where(func(p *pod) bool {
		return p.role != roleNone && p.class.Remove == way && !slices.Contains(d.promotes, p)
	})
}

// removeFinishedPods does not delete Pods that record how often the start failed, nor Pods that only a finalizer keeps.
func removeFinishedPods(f *facts, d decision) decision {
	finished := removable(f, d, removeFinished).where(func(p *pod) bool {
		return !slices.Contains(d.keep, p) && !p.heldByFinalizer()
	})
	return remove(0, ReasonPodTerminated, "the Pod has finished", finished...)
}

// removeDisruptedPods deletes Pods with the condition DisruptionTarget as OLM does, which means even if no other Pod
// serves.
func removeDisruptedPods(f *facts, d decision) decision {
	if f.config.ForceDelete != ForceDeleteUpstream {
		return decision{}
	}
	disrupted := removable(f, d, removeDisrupted).where(func(p *pod) bool {
		return p.hasCondition(corev1.DisruptionTarget) && !p.wasForced()
	})
	return removeWithoutKeptPod(0, ReasonPodDisrupted, "the Pod is a target of disruption", disrupted...)
}

// removeStuckPods keeps the newest stuck Pod while no Pod serves, because it records how often the start failed.
func removeStuckPods(f *facts, d decision) decision {
	isStuck := func(p *pod) bool { return p.role == roleServing && p.class.Remove == removeStuck }
	newest := f.pods.all.where(isStuck).newest()
	var parts []decision
	for _, p := range removable(f, d, removeStuck).where(isStuck) {
		if len(f.pods.serving.ready()) > 0 || p != newest {
			parts = append(parts, remove(1, p.class.Reason, "the Pod does not start on node "+p.Spec.NodeName, p))
		}
	}
	return decision{}.and(parts...)
}

// removeCandidates removes candidates that can no longer become active.
func removeCandidates(f *facts, d decision) decision {
	candidates := f.pods.all.where(func(p *pod) bool {
		return p.role == roleCandidate && p.class.Active && !slices.Contains(d.promotes, p)
	})
	outdated := candidates.where((*pod).isOutdated)
	expired := candidates.where((*pod).expired)
	return remove(1, ReasonCandidateObsolete, "the Pod was created from another spec", outdated...).
		and(remove(1, ReasonProgressDeadlineExceeded, "the Pod did not become ready in time", expired...))
}

// removeLostPods removes lost Pods. While many Nodes fail, Pods are deleted by force one after the other.
func removeLostPods(f *facts, d decision) decision {
	var parts []decision
	mayForce := true
	for _, p := range removable(f, d, removeLost) {
		part := forceDeleteLostPod(f, p, mayForce)
		if p.DeletionTimestamp == nil {
			part = deleteLostPod(f, p, mayForce)
		}
		if part.deletesByForce() && f.pods.disruption == partialDisruption {
			mayForce = false
		}
		parts = append(parts, part)
	}
	return decision{}.and(parts...)
}

func (d decision) deletesByForce() bool {
	return slices.ContainsFunc(d.deletes, func(o deletion) bool { return o.gracePeriodSeconds == 0 })
}

// isCertain reports whether no kubelet can still run a lost Pod.
func isCertain(p *pod) bool { return p.node.Certain && p.lost == p.node.LostReason }

// deleteLostPod deletes a lost Pod that was not deleted yet.
func deleteLostPod(f *facts, p *pod, mayForce bool) decision {
	switch {
	case isCertain(p) && mayForce && f.config.ForceDelete != ForceDeleteNever:
		return remove(0, p.lost, p.explanation(), p)
	case isCertain(p):
		return remove(1, p.lost, p.explanation(), p)
	case len(f.pods.serving.ready()) > 0:
		return remove(1, ReasonPodReplaced, p.explanation()+", and another Pod serves", p)
	}
	return decision{}
}

// forceDeleteLostPod deletes a lost Pod by force that was deleted before, if no kubelet can confirm the deletion.
func forceDeleteLostPod(f *facts, p *pod, mayForce bool) decision {
	uncertain := f.pods.disruption == partialDisruption && !isCertain(p)
	if p.DeletionTimestamp == nil || p.wasForced() || !mayForce || uncertain {
		return decision{}
	}
	left, allowed := forceDeleteAfter(f, p)
	switch {
	case left > 0:
		return waitFor(left)
	case !allowed:
		return decision{}
	}
	return remove(0, p.lost, p.explanation(), p)
}

// forceDeleteAfter reports whether the policy allows a lost and terminating Pod to be deleted by force, and how long
// that must wait. A Pod that outlived its deletion is only deleted by force if its Node is not known to work.
func forceDeleteAfter(f *facts, p *pod) (left time.Duration, allowed bool) {
	switch f.config.ForceDelete {
	case ForceDeleteNever:
		return 0, false
	case ForceDeleteNodeGone:
		return 0, isCertain(p)
	}
	switch {
	case p.lost == ReasonNodeUnreachable || p.lost == ReasonNodeNotReady:
		return p.DeletionTimestamp.Sub(f.now), true
	case p.lost != ReasonOverdue || f.config.ForceDelete == ForceDeleteUpstream:
		return 0, true
	case p.node.mayFail():
		return p.nodeSince.Add(p.node.Grace(f.config)).Sub(f.now), true
	}
	return 0, !p.node.Answers
}

// removeOlderContent removes ready candidates whose content differs from that of the newest candidate. The image
// changed while they started. Without the removal they would wait for each other.
func removeOlderContent(f *facts) decision {
	ordered, wait := contentIsOrdered(f)
	if !ordered {
		return wait
	}
	compared := f.pods.candidates.ready().where(func(p *pod) bool { return p.content != "" })
	newest := compared.newest()
	older := compared.where(func(p *pod) bool { return p.content != newest.content })
	return remove(1, ReasonContentDiffers, "a newer candidate has newer content of the same image", older...)
}

// contentIsOrdered reports whether the creation times show which content is newer. They do not if Pods with different
// content were created in the same second: while that second lasts, a Pod that is deleted for its content might be
// created again with the same content. Every manager waits olmcore.ClockTolerance longer, because its clock may be
// ahead. wait is a decision that waits until then.
func contentIsOrdered(f *facts) (ordered bool, wait decision) {
	contents := map[int64]string{} // by the second of the creation
	var left time.Duration
	for _, p := range f.pods.all {
		created := p.CreationTimestamp.Truncate(time.Second)
		leftOfPod := created.Add(time.Second + olmcore.ClockTolerance).Sub(f.now)
		if !p.ready || p.content == "" || leftOfPod <= 0 || isFuture(created, f.now) {
			continue
		}
		content, found := contents[created.Unix()]
		if found && content != p.content {
			left = max(left, leftOfPod)
		}
		contents[created.Unix()] = p.content
	}
	return left == 0, waitFor(left)
}

// removeSurplus removes Pods with older content, and Pods beyond the configured number. The best Pods stay.
func removeSurplus(f *facts) decision {
	if len(f.pods.outdated) > 0 {
		return decision{} // a rollout is under way
	}
	// 1. Pods that serve older content.
	hasOtherContent := func(p *pod) bool { return p.ready && p.content != "" && p.content != f.pods.content }
	other := f.pods.serving.where(hasOtherContent)
	if len(other) > 0 {
		ordered, wait := contentIsOrdered(f)
		if !ordered {
			return wait
		}
	}
	d := remove(1, ReasonContentDiffers, "other Pods serve newer content of the same image", other...)
	kept := f.pods.serving.where(func(p *pod) bool { return !hasOtherContent(p) })
	// 2. Pods beyond the configured number. A Pod that still starts may be needed if the Node of a ready Pod fails
	// again.
	kept = spreadOverHosts(kept.best(), f.config.Replicas)
	reliable := kept.where(func(p *pod) bool { return p.staysReady() && !p.node.Avoid })
	for _, p := range kept[min(f.config.Replicas, len(kept)):] {
		if p.ready || len(reliable) >= f.config.Replicas {
			d = d.and(remove(1, ReasonPodSurplus, "better Pods serve already", p))
		}
	}
	return d
}

// spreadOverHosts reorders Pods of equal preference so that the first n are on as many hosts as possible.
func spreadOverHosts(ordered podList, n int) podList {
	if len(ordered) <= n || n < 2 {
		return ordered
	}
	rest := slices.Clone(ordered)
	spread := rest[:1:1]
	rest = rest[1:]
	for len(spread) < n {
		next := 0
		for i, p := range rest {
			if p.preference() != rest[0].preference() {
				break
			}
			if !spread.any(func(q *pod) bool { return q.Spec.NodeName == p.Spec.NodeName }) {
				next = i
				break
			}
		}
		spread = append(spread, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return append(spread, rest...)
}
