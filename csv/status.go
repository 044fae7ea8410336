// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// setPhase records a phase in a status that the caller owns. The list of
// conditions is a history: an entry is added when phase or reason differ from
// the last one, and the oldest go when there are more than the API's limit.
//
// Source: operator-framework/api pkg/operators/v1alpha1, SetPhase.
func setPhase(s *v1alpha1.ClusterServiceVersionStatus, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string, now time.Time) {
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

func sameRequirements(a, b []v1alpha1.RequirementStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// since is the time from a recorded instant to now. Nothing recorded, and an
// instant in the future, count as now: a clock that went back never makes a
// wait longer than it is.
func since(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return max(0, now.Sub(t.Time))
}

// wait is the pace of waits that no event ends for sure: 5 s, 10 s, 20 s ... up
// to limit after an anchor, so that it needs no memory. elapsed is the time
// since the anchor.
func wait(elapsed, limit time.Duration) time.Duration {
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

// hasSucceeded reports whether the history shows that the CSV was Succeeded.
func hasSucceeded(s *v1alpha1.ClusterServiceVersionStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c v1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == v1alpha1.CSVPhaseSucceeded
	})
}

// failedInstalls counts the failed installations since the last success that
// the history shows.
func failedInstalls(s *v1alpha1.ClusterServiceVersionStatus) int {
	return sinceSuccess(s, v1alpha1.CSVReasonComponentFailed)
}

// sinceSuccess counts the entries with a reason since the last success.
func sinceSuccess(s *v1alpha1.ClusterServiceVersionStatus, reason v1alpha1.ConditionReason) int {
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

// retryDelay is the pause after the n-th failed installation: 5 s doubled each
// time, at most 10 min.
func retryDelay(n int) time.Duration {
	const limit = 10 * time.Minute
	if n > 7 {
		return limit
	}
	return min(limit, 5*time.Second<<max(0, n-1))
}
