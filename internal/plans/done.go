// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// IsStepDone reports whether an InstallPlan has nothing left to do for a step: its object was created or existed
// before, or the plan does not create it.
func IsStepDone(s *v1alpha1.Step) bool {
	return s.Status == v1alpha1.StepStatusCreated || s.Status == v1alpha1.StepStatusPresent || s.Status == v1alpha1.StepStatusNotCreated
}

// NeverInstalled reports whether the status of a ClusterServiceVersion proves that it was never Succeeded: it has no
// phase, is Pending or has Failed, and its conditions do not contain the phase Succeeded. Conditions are cut to the
// newest v1alpha1.ConditionsLengthLimit. A list of that length proves nothing, and neither does an empty list of a
// version that Failed.
func NeverInstalled(c *v1alpha1.ClusterServiceVersion) bool {
	history := c.Status.Conditions
	switch c.Status.Phase {
	case v1alpha1.CSVPhaseNone, v1alpha1.CSVPhasePending:
	case v1alpha1.CSVPhaseFailed:
		if len(history) == 0 {
			return false
		}
	default:
		return false
	}
	return len(history) < v1alpha1.ConditionsLengthLimit &&
		!slices.ContainsFunc(history, func(s v1alpha1.ClusterServiceVersionCondition) bool {
			return s.Phase == v1alpha1.CSVPhaseSucceeded
		})
}
