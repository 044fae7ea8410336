// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// The condition Progressing records for the next call why a plan did not progress. No decision depends on the text of a
// message that this library wrote. If OLM executed a plan, the condition is missing or describes an earlier failure.
// Then the message of OLM is read instead, in this file only.

// stallReasons are the reasons that this library gives the condition Progressing.
var stallReasons = []string{ReasonStepRefused, ReasonStepFailed, ReasonStepWaits, ReasonInstallCheckFailed}

// messageInterval is the time for which the message about a failed write stays the same, even if the API server returns
// other errors. It is longer than olmcore.ClockTolerance, so that two managers do not overwrite each other's messages.
const messageInterval = 2 * olmcore.ClockTolerance

// retryingPrefix begins the message of a plan while its steps are retried, in OLM and in this library.
const retryingPrefix = "retrying execution due to error: "

// olmRefusals begin the messages with which OLM fails a plan before it writes the object of the step.
var olmRefusals = []string{
	"Unable to find GVK in discovery: ",
	"api-server resource not found installing",
	"bundle unpacking failed",
	"could not find any versions in the new CRD",
	"couldn't find unpacked step ",
	"error checking crd owners for: ",
	"error finding unpacked bundle configmap ",
	"error generating ownerrefs for ",
	"error loading unpacked bundle configmap ",
	"error validating existing CRs against ",
	"failed to load bundle properties ",
	"pre-existing CRD owners found for ",
	"risk of data loss updating ",
	"secret ",
}

// stalled returns a status that records why the plan does not progress.
func (f *facts) stalled(status v1alpha1.InstallPlanStatus, reason, message string) v1alpha1.InstallPlanStatus {
	return withCondition(f, status, ConditionProgressing, corev1.ConditionFalse, reason, message)
}

// progressing returns a status without the message and the condition about what stalled the plan.
func progressing(status v1alpha1.InstallPlanStatus) v1alpha1.InstallPlanStatus {
	status.Message = ""
	return without(status, ConditionProgressing)
}

// recordedStall returns the condition Progressing if this library recorded it for the present state of the plan, or
// nil. When this library fails a plan, the conditions Progressing and Installed get the same lastUpdateTime. OLM does
// not know Progressing: if it fails the plan later, only Installed is updated.
func (f *facts) recordedStall() *v1alpha1.InstallPlanCondition {
	status := &f.plan.Status
	c := conditionOf(status, ConditionProgressing)
	if c == nil || c.Status != corev1.ConditionFalse || !slices.Contains(stallReasons, string(c.Reason)) {
		return nil
	}
	installed := status.GetCondition(v1alpha1.InstallPlanInstalled)
	if f.phase == v1alpha1.InstallPlanPhaseFailed && !c.LastUpdateTime.Equal(installed.LastUpdateTime) {
		return nil
	}
	return c
}

// failureReportedAt returns when the status last reported a failed write. It returns the zero time if the status does
// not report one, or if the message may follow the present error: messageInterval has passed, or the time is in the
// future.
func (f *facts) failureReportedAt() time.Time {
	c := f.recordedStall()
	if c == nil || c.Reason != ReasonStepFailed || c.LastUpdateTime == nil {
		return time.Time{}
	}
	age := f.in.Now.Sub(c.LastUpdateTime.Time)
	if age >= messageInterval || age < -olmcore.ClockTolerance {
		return time.Time{}
	}
	return c.LastUpdateTime.Time
}

// stalledBy returns the reason for which the plan did not progress in the last call, "" if it did.
func (f *facts) stalledBy() string {
	status := &f.plan.Status
	if c := f.recordedStall(); c != nil {
		return string(c.Reason)
	}
	switch {
	case f.phase == v1alpha1.InstallPlanPhaseFailed && isOLMRefusal(status.Message):
		return ReasonStepRefused
	case f.phase == v1alpha1.InstallPlanPhaseInstalling && strings.HasPrefix(status.Message, retryingPrefix):
		return ReasonStepFailed
	}
	return ""
}

// isOLMRefusal reports whether OLM failed a plan before it wrote the object of a step.
func isOLMRefusal(message string) bool {
	return slices.ContainsFunc(olmRefusals, func(prefix string) bool { return strings.HasPrefix(message, prefix) })
}

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
	isOfType := func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind }
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), isOfType)
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

// failedStatus returns a status that states the problem of which a plan failed. Condition Retrying records that the
// failed write is tried again, and since when.
func (f *facts) failedStatus(status v1alpha1.InstallPlanStatus, p problem) v1alpha1.InstallPlanStatus {
	const reason = string(v1alpha1.InstallPlanReasonComponentFailed)
	next := withCondition(f, status, v1alpha1.InstallPlanInstalled, corev1.ConditionFalse, reason, p.message)
	next = f.stalled(next, p.reason, p.message)
	next.Message = p.message
	// Equal times show later that both conditions are about the same failure, see recordedStall.
	conditionOf(&next, ConditionProgressing).LastUpdateTime = conditionOf(&next, v1alpha1.InstallPlanInstalled).LastUpdateTime
	isRetrying := conditionOf(&status, ConditionRetrying) != nil
	switch {
	case isRetrying == p.isRetried && apiequality.Semantic.DeepEqual(next, status):
		return status
	case p.isRetried:
		return withCondition(f, without(next, ConditionRetrying), ConditionRetrying, corev1.ConditionTrue, p.reason, p.message)
	}
	return without(next, ConditionRetrying)
}
