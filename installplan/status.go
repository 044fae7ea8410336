// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// conditionOf returns the first condition of a type, or nil.
func conditionOf(status *v1alpha1.InstallPlanStatus, kind v1alpha1.InstallPlanConditionType) *v1alpha1.InstallPlanCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// without returns a status without the conditions of a type. The list of the given status is not changed.
func without(status v1alpha1.InstallPlanStatus, kind v1alpha1.InstallPlanConditionType) v1alpha1.InstallPlanStatus {
	if conditionOf(&status, kind) == nil {
		return status
	}
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind })
	if len(status.Conditions) == 0 {
		status.Conditions = nil
	}
	return status
}

// withCondition returns a status with exactly one condition of a type. lastUpdateTime stays as it is if nothing
// changes, lastTransitionTime if the status of the condition stays the same. The list of the given status is not
// changed.
func withCondition(
	f *facts, status v1alpha1.InstallPlanStatus,
	kind v1alpha1.InstallPlanConditionType, value corev1.ConditionStatus, reason, message string,
) v1alpha1.InstallPlanStatus {
	now, recorded := olmcore.Timestamp(f.in.Now), status.GetCondition(kind)
	c := v1alpha1.InstallPlanCondition{
		Type: kind, Status: value, Reason: v1alpha1.InstallPlanConditionReason(reason), Message: printable.Keep(recorded.Message, message),
		LastUpdateTime: &now, LastTransitionTime: &now,
	}
	if recorded.Status == value && recorded.Reason == c.Reason && recorded.Message == c.Message {
		c.LastUpdateTime = recorded.LastUpdateTime
	}
	status.Conditions = slices.Clone(status.Conditions)
	status.SetCondition(c)
	first := slices.IndexFunc(status.Conditions, func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind })
	status.Conditions = slices.Concat(status.Conditions[:first+1], without(v1alpha1.InstallPlanStatus{
		Conditions: status.Conditions[first+1:],
	}, kind).Conditions)
	return status
}
