// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitPhase says what is under way while Pods that should be ready are not, or
// why nothing is.
func (v *view) waitPhase(acting bool) (phase, halt string) {
	t := &v.tally
	if !acting && t.current > 0 {
		doubt, late := true, true
		for i := range v.pods {
			p := &v.pods[i]
			if p.role != roleServing || p.ready || !p.live() || p.class == ClassOutdated {
				continue
			}
			doubt = doubt && p.doubtful()
			late = late && p.late
		}
		switch {
		case doubt:
			return "", ReasonWaitingForNodes
		case late:
			return "", ReasonProgressDeadlineExceeded
		}
	}
	switch {
	case t.lost > 0 || v.replaces(purposeFailover):
		return ReasonNodeFailover, ""
	case t.outdated > 0 || v.replaces(purposeRollout):
		return ReasonSpecRollout, ""
	case t.terminating+t.terminated+t.stuck == 0 && v.neverServed():
		return ReasonInitialRollout, ""
	}
	return ReasonRefill, ""
}

// neverServed reports whether the status knows of no Pod that was ready, apart
// from those of the roll-out that is under way.
func (v *view) neverServed() bool {
	available := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionAvailable)
	if available != nil && available.Status == metav1.ConditionTrue && v.tally.ready() == 0 {
		return false
	}
	last := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionProgressing)
	if last == nil {
		return true
	}
	switch last.Reason {
	case ReasonSpecRollout, ReasonContentUpdate, ReasonNodeFailover, ReasonRefill, ReasonComplete, ReasonBackOff,
		ReasonProgressDeadlineExceeded, ReasonWaitingForNodes:
		return false
	}
	return true
}

// replaces reports whether a Pod with that purpose is not ready yet.
func (v *view) replaces(purpose string) bool {
	for i := range v.pods {
		if p := &v.pods[i]; p.live() && !p.ready && p.pod.Annotations[v.set.prefix+keyPurpose] == purpose {
			return true
		}
	}
	return false
}
