// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetCondition returns conditions with c set, and whether anything changed.
// lastTransitionTime is kept while the status stays the same and is now
// (truncated to seconds) otherwise; c's own is not looked at. The order of the
// others is kept, a new type goes to the end, a second entry of the type is
// dropped. conditions is not written to; when nothing changes it is returned
// itself.
func SetCondition(conditions []metav1.Condition, c metav1.Condition, now time.Time) ([]metav1.Condition, bool) {
	i := slices.IndexFunc(conditions, func(have metav1.Condition) bool { return have.Type == c.Type })
	if i < 0 {
		c.LastTransitionTime = Timestamp(now)
		return append(slices.Clip(conditions), c), true
	}
	have := conditions[i]
	c.LastTransitionTime = have.LastTransitionTime
	if have.Status != c.Status {
		c.LastTransitionTime = Timestamp(now)
	}
	twin := func(d metav1.Condition) bool { return d.Type == c.Type }
	if have == c && !slices.ContainsFunc(conditions[i+1:], twin) {
		return conditions, false
	}
	out := slices.Clone(conditions[:i+1])
	out[i] = c
	for _, d := range conditions[i+1:] {
		if !twin(d) {
			out = append(out, d)
		}
	}
	return out, true
}

// FindCondition returns the condition of a type, nil when there is none. The
// pointer is into conditions.
func FindCondition(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}
