// SPDX-License-Identifier: Apache-2.0

// Package status reads and writes the status of a ClusterServiceVersion: its phase, the history of its phases, and the
// times that waits are measured from.
package status

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// ReasonChanged is the reason of an action that writes a status.
const ReasonChanged = "StatusChanged"

// SetPhase records a phase in a status that the caller owns. The list of conditions is a history: an entry is added
// when phase or reason differ from the last one, and the oldest go when there are more than the API's limit.
//
// Source: operator-framework/api pkg/operators/v1alpha1, SetPhase.
func SetPhase(s *v1alpha1.ClusterServiceVersionStatus, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string, now time.Time) {
	at := olmcore.Timestamp(now)
	s.LastUpdateTime = &at
	if s.Phase != phase || s.LastTransitionTime == nil {
		s.LastTransitionTime = &at
	}
	s.Phase, s.Reason, s.Message = phase, reason, message
	if n := len(s.Conditions); n == 0 || s.Conditions[n-1].Phase != phase || s.Conditions[n-1].Reason != reason {
		s.Conditions = append(s.Conditions, v1alpha1.ClusterServiceVersionCondition{
			Phase: phase, Reason: reason, Message: message,
			LastUpdateTime: s.LastUpdateTime.DeepCopy(), LastTransitionTime: s.LastTransitionTime.DeepCopy(),
		})
	}
	if extra := len(s.Conditions) - v1alpha1.ConditionsLengthLimit; extra > 0 {
		s.Conditions = slices.Delete(s.Conditions, 0, extra)
	}
}

// Moved returns the Transition from the recorded status to the one that is written.
func Moved(before *v1alpha1.ClusterServiceVersion, after *v1alpha1.ClusterServiceVersionStatus) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(after.Phase),
		Reason: string(after.Reason), Message: after.Message, At: *after.LastUpdateTime,
		Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}

// Since returns the time from a recorded instant to now. Nothing recorded, and an instant in the future, count as now:
// a clock that went back never makes a wait longer than it is.
func Since(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return max(0, now.Sub(t.Time))
}

// Wait returns the time to the next try of what no event ends for sure. The pauses between the tries are 5 s, 10 s, 20
// s ... up to limit after an anchor, so that no memory is needed. elapsed is the time since the anchor.
func Wait(elapsed, limit time.Duration) time.Duration {
	next, step := 5*time.Second, 5*time.Second
	if elapsed > 24*time.Hour {
		return limit
	}
	for next <= elapsed {
		step = min(2*step, limit)
		next += step
	}
	return next - elapsed
}

// HasSucceeded reports whether the history shows that the CSV was Succeeded.
func HasSucceeded(s *v1alpha1.ClusterServiceVersionStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c v1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == v1alpha1.CSVPhaseSucceeded
	})
}

// CountSinceSuccess counts the entries of the history with a reason since the last success that it shows.
func CountSinceSuccess(s *v1alpha1.ClusterServiceVersionStatus, reason v1alpha1.ConditionReason) int {
	n := 0
	for _, c := range slices.Backward(s.Conditions) {
		if c.Phase == v1alpha1.CSVPhaseSucceeded {
			break
		}
		if c.Reason == reason {
			n++
		}
	}
	return n
}
