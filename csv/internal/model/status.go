// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// ReasonStatusChanged is the reason of an action that updates a status.
const ReasonStatusChanged = "StatusChanged"

// SetPhase sets the phase of a status, and appends an entry to the history of phases in status.conditions. The entry is
// appended only if the phase or the reason differs from the last entry. If the history exceeds the limit of the API,
// its oldest entries are dropped. SetPhase never writes to the existing array of s.Conditions, so it is safe if s is a
// shallow copy of another status.
//
// Source: operator-framework/api pkg/operators/v1alpha1, SetPhase.
func SetPhase(
	s *v1alpha1.ClusterServiceVersionStatus, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string,
	now time.Time,
) {
	at := olmcore.Timestamp(now)
	s.LastUpdateTime = &at
	if s.Phase != phase || s.LastTransitionTime == nil {
		s.LastTransitionTime = &at
	}
	s.Phase = phase
	s.Reason = reason
	s.Message = message
	n := len(s.Conditions)
	if n == 0 || s.Conditions[n-1].Phase != phase || s.Conditions[n-1].Reason != reason {
		s.Conditions = append(slices.Clip(s.Conditions), v1alpha1.ClusterServiceVersionCondition{
			Phase: phase, Reason: reason, Message: message,
			LastUpdateTime: s.LastUpdateTime, LastTransitionTime: s.LastTransitionTime,
		})
	}
	if extra := len(s.Conditions) - v1alpha1.ConditionsLengthLimit; extra > 0 {
		s.Conditions = s.Conditions[extra:]
	}
}

// PhaseTransition returns the Transition from the phase of before to the phase in after. LastUpdateTime of after must
// not be nil.
func PhaseTransition(before *v1alpha1.ClusterServiceVersion, after *v1alpha1.ClusterServiceVersionStatus) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(after.Phase),
		Reason: string(after.Reason), Message: after.Message, At: *after.LastUpdateTime,
		Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}

// Since returns the time from t to now. It returns 0 if t is nil or in the future.
func Since(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return max(0, now.Sub(t.Time))
}

// NextCheck returns the time until the next check of a state that may end without an event. elapsed is the time since
// the state began, for example since a deletion timestamp. The checks follow at intervals of 5 s, 10 s, 20 s and so on,
// up to limit. The result depends only on elapsed and limit, so the caller stores no state.
func NextCheck(elapsed, limit time.Duration) time.Duration {
	if elapsed > 24*time.Hour {
		return limit
	}
	next, step := 5*time.Second, 5*time.Second
	for next <= elapsed {
		step = min(2*step, limit)
		next += step
	}
	return next - elapsed
}

// CountSinceSuccess returns how many entries with the given reason follow the last Succeeded entry in the history of a
// status.
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
