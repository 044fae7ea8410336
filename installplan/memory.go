// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// The condition Progressing records for the next call why a plan did not progress. No decision depends on the text of a
// message that this library wrote. A plan that OLM executed does not have the condition, so the message of OLM is read
// instead, in this file only.

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

// stalledBy returns the reason for which the plan did not progress in the last call, "" if it did.
func (f *facts) stalledBy() string {
	status := &f.plan.Status
	if c := conditionOf(status, ConditionProgressing); c != nil {
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

// isFailureReported reports whether the status has reported a failed write recently, so that it need not be written
// again.
func (f *facts) isFailureReported() bool {
	c := conditionOf(&f.plan.Status, ConditionProgressing)
	return c != nil && c.Reason == ReasonStepFailed && c.LastUpdateTime != nil && f.in.Now.Sub(c.LastUpdateTime.Time) < messageInterval
}

// retryingSince returns the transition time of condition Retrying. ok is false if there is none.
func (f *facts) retryingSince() (since time.Time, ok bool) {
	c := conditionOf(&f.plan.Status, ConditionRetrying)
	if c == nil || c.LastTransitionTime == nil {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// failedAt returns when the plan failed, or the zero time if the status does not record it.
func (f *facts) failedAt() time.Time {
	if since, ok := f.retryingSince(); ok {
		return since
	}
	c := f.plan.Status.GetCondition(v1alpha1.InstallPlanInstalled)
	switch {
	case c.LastUpdateTime != nil:
		return c.LastUpdateTime.Time
	case c.LastTransitionTime != nil:
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
