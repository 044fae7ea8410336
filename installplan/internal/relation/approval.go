// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// Repaired is the Cause of a write that completes the relations of a plan.
func Repaired(message string) olmcore.Cause {
	return olmcore.Cause{Reason: report.RelationRepaired, Message: message}
}

// AskForApproval makes a plan, which it writes to, wait for approval.
func AskForApproval(plan *v1alpha1.InstallPlan) olmcore.Cause {
	plan.Spec.Approval, plan.Spec.Approved = v1alpha1.ApprovalManual, false
	return olmcore.Cause{Reason: report.ManualOwner, Message: "a Subscription that owns the plan wants manual approval"}
}

// WantsManual reports whether a Subscription lets plans wait for approval.
func WantsManual(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// mustBeManual: the plan was born Automatic, nothing of it was applied, and a
// Subscription that owns it wants to be asked.
func mustBeManual(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	if plan.Spec.Approval == v1alpha1.ApprovalManual || Terminal(plan) || !Untouched(plan) {
		return false
	}
	return slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
		return WantsManual(s) && (MustOwn(plan, s) || olmcore.OwnedBy(plan, s.UID))
	})
}

// Untouched reports that no step of the plan can have been applied: what a step writes
// comes after startTime, and may exist although the status does not say so yet.
func Untouched(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.StartTime == nil && !Applied(plan)
}

// Applied reports that the status says of a step that it was applied or asked for.
func Applied(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Status != v1alpha1.StepStatusUnknown
	})
}
