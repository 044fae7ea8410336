// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// plan is what shall happen to the Pods, before any object is built. It may be
// run in part: each step leaves the catalog serving when it served before.
type plan struct {
	creates  []creation
	promotes []*corev1.Pod
	deletes  []deletion
	// doomed are the Pods of deletes.
	doomed map[*corev1.Pod]bool
	// keep are finished Pods that remember how often the start failed.
	keep []*corev1.Pod
	// phase is the Reason of ConditionProgressing while something is under way,
	// halt the one that says why not.
	phase, halt string
	// refused is what the API server said about the next Pod; pause is how long that
	// is to be waited for.
	refused string
	pause   time.Duration
}

// creation is one Pod to make.
type creation struct {
	role    role
	purpose string
	attempt int
	// replaces is the UID of the Pod that it stands in for, if any.
	replaces types.UID
	cause    olmcore.Cause
}

// deletion is one Pod to delete.
type deletion struct {
	pod   *corev1.Pod
	grace int64
	cause olmcore.Cause
}

func (v *view) planPods() plan {
	var pl plan
	if !v.runsPods() {
		return pl
	}
	if v.disruption == totalDisruption {
		// Deleting or moving anything would only add to the outage. But a Pod that
		// waits for a node may be what makes the autoscaler add one.
		if v.tally.unfinished == 0 {
			v.fill(&pl, v.set.replicas, roleServing)
		}
		pl.halt = ReasonWaitingForNodes
		v.heedRefusal(&pl)
		return pl
	}
	switch t := &v.tally; {
	case t.ready() == 0:
		v.planOutage(&pl)
	case t.outdated > 0:
		v.planRollout(&pl)
	default:
		v.planRefill(&pl)
	}
	if v.needsAdoption() {
		pl.creates = nil // they would be made from a version that the adoption ends
	}
	v.heedRefusal(&pl)
	v.planCleanup(&pl)
	v.planSurplus(&pl)
	for i := range v.pods {
		if p := &v.pods[i]; p.role == roleServing && p.live() && p.pod.Labels[olmcore.LabelManaged] != "true" && !pl.doomed[p.pod] {
			pl.promote(p) // the Service does not select it
		}
	}
	return pl
}

// planOutage: nothing serves, so there is nothing to protect; new Pods serve as
// soon as they are ready.
func (v *view) planOutage(pl *plan) {
	t := &v.tally
	missing := v.set.replicas - t.current
	for _, wantReady := range [...]bool{true, false} {
		for i := range v.pods {
			p := &v.pods[i]
			if p.role == roleCandidate && v.usable(p) && p.ready == wantReady && (p.ready || missing > 0) {
				pl.promote(p)
				missing--
			}
		}
	}
	v.trimOutdated(pl)
	v.fill(pl, missing, roleServing)
	if t.current+len(pl.promotes)+len(pl.creates) > 0 {
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleServing && p.class == ClassOutdated {
				pl.delete(p, 1, ReasonPodOutdated, "the Pod was made from another spec and does not serve")
			}
		}
	}
	if pl.halt == "" {
		acting := len(pl.creates)+len(pl.promotes) > 0
		pl.phase, pl.halt = v.waitPhase(acting)
		if !acting && t.outdated == 0 && t.current > 0 {
			v.planPolling(pl) // newer content may be what helps
		}
	}
}

// planRollout: Pods of another spec serve. They stay until as many new ones are
// ready as asked for.
func (v *view) planRollout(pl *plan) {
	t, n := &v.tally, v.set.replicas
	pl.phase = ReasonSpecRollout
	v.trimOutdated(pl)
	switch {
	case t.currentReady >= n, t.outdatedReady == 0:
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleServing && p.class == ClassOutdated {
				pl.delete(p, 1, ReasonPodOutdated, "Pods of the present spec serve")
			}
		}
		if t.outdatedReady == 0 {
			v.fill(pl, n-t.current-t.candidates, roleCandidate)
		}
	case t.currentReady+t.candidatesReady >= n:
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleCandidate && p.ready && v.usable(p) {
				pl.promote(p)
			}
		}
	case v.makesRoom():
		// The next one finds the room that the old Pod leaves.
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleServing && p.class == ClassOutdated {
				pl.delete(p, 1, ReasonPodDisplaced, "no node takes a Pod of the present spec beside it")
				break
			}
		}
	case v.candidatePause():
		pl.phase, pl.halt = "", ReasonProgressDeadlineExceeded
	default:
		v.fillRollout(pl, n-t.current-t.candidates)
	}
}

// planRefill: Pods of the present spec serve; fewer than asked for, or some are
// about to be evicted. New ones wait as candidates until they are known to serve
// the same content.
func (v *view) planRefill(pl *plan) {
	t, n := &v.tally, v.set.replicas
	steady := t.steady
	for i := range v.pods {
		p := &v.pods[i]
		if p.role == roleServing && p.class == ClassDisrupted && !(v.in.Nodes.Complete && v.otherNode(p.pod.Spec.NodeName)) {
			steady++ // there is no better place for it
		}
	}
	need := n - steady
	if need <= 0 {
		if t.currentReady < n {
			pl.phase, pl.halt = v.waitPhase(false)
		}
		v.planPolling(pl)
		return
	}
	pl.phase = ReasonRefill
	if t.lost > 0 || v.replaces(purposeFailover) {
		pl.phase = ReasonNodeFailover
	}
	content := v.servedContent()
	same, other := v.candidatesWith(content)
	switch {
	case same > 0:
		v.promoteWith(pl, content, need)
	case other > 0 && v.uniformCandidates(n):
		pl.phase = ReasonContentUpdate
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleCandidate && p.ready && v.usable(p) {
				pl.promote(p)
			}
		}
	case v.candidatePause():
		pl.phase, pl.halt = "", ReasonProgressDeadlineExceeded
	case other > 0:
		pl.phase = ReasonContentUpdate
		v.dropOlderContent(pl)
		v.fill(pl, n-t.candidates, roleCandidate)
	default:
		v.fill(pl, need-t.candidates, roleCandidate)
	}
}

// makesRoom reports whether an old Pod has to go for a new one that no node took
// in time.
func (v *view) makesRoom() bool {
	if !v.in.Config.DisruptiveFallback {
		return false
	}
	for i := range v.pods {
		p := &v.pods[i]
		if p.role == roleCandidate && p.class == ClassUnhealthy && p.trouble == ReasonPodUnschedulable && v.candidateLeft(p) <= 0 {
			return true
		}
	}
	return false
}

// usable reports whether a candidate may still take over.
func (v *view) usable(p *podFacts) bool {
	return p.live() && p.class != ClassOutdated && v.candidateLeft(p) > 0 && !v.strictly(p)
}

// candidatePause reports whether the last candidate failed so recently that the
// next one waits. The condition is the memory: it is there from the moment that
// the candidate was late.
func (v *view) candidatePause() bool {
	for i := range v.pods {
		p := &v.pods[i]
		if p.role == roleCandidate && (p.live() || p.class == ClassStuck) && p.class != ClassOutdated && v.candidateLeft(p) <= 0 && !v.strictly(p) {
			return true
		}
	}
	if v.tally.candidates > 0 {
		return false
	}
	c := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionProgressing)
	if c == nil || c.Reason != ReasonProgressDeadlineExceeded || c.ObservedGeneration != v.cs.Generation {
		return false
	}
	left := v.left(c.LastTransitionTime.Time, v.set.backoffMax)
	v.waitFor(left)
	return left > 0
}

func (v *view) waitFor(d time.Duration) {
	if d > 0 && (v.retry == 0 || d < v.retry) {
		v.retry = d
	}
}

// dropCandidates deletes candidates that have nothing to replace and nothing to
// find out.
func (v *view) dropCandidates(pl *plan, why string) {
	for i := range v.pods {
		if p := &v.pods[i]; p.role == roleCandidate && p.live() && !(v.poll.on && v.isProbe(p.pod)) && !v.strictly(p) {
			pl.delete(p, 1, ReasonCandidateObsolete, why)
		}
	}
}

func (pl *plan) promote(p *podFacts) {
	pl.promotes = append(pl.promotes, p.pod)
}

func (pl *plan) delete(p *podFacts, grace int64, reason, why string) {
	if pl.doomed[p.pod] {
		return
	}
	if pl.doomed == nil {
		pl.doomed = map[*corev1.Pod]bool{}
	}
	pl.doomed[p.pod] = true
	pl.deletes = append(pl.deletes, deletion{pod: p.pod, grace: grace, cause: olmcore.Cause{Reason: reason, Message: why}})
}
