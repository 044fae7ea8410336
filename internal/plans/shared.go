// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// AnnotationContributors is the annotation of an InstallPlan that contains the UIDs of the Subscriptions that it was
// made for, separated by commas.
const AnnotationContributors = olmcore.KeyPrefix + "contributors"

// IsShared reports whether a plan was made for more Subscriptions than those whose names isInSet accepts, and may still
// be replaced by plans of their sets. It returns false for a plan that has started, has ended, is being deleted, was
// approved by a user, or was made for one set. subscriptions contains all Subscriptions of the namespace.
func IsShared(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, isInSet func(name string) bool) bool {
	isOver := plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete || plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed
	isApproved := plan.Spec.Approval == v1alpha1.ApprovalManual && plan.Spec.Approved
	hasStarted := plan.Status.StartTime != nil || slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Status != v1alpha1.StepStatusUnknown
	})
	if isOver || isApproved || hasStarted || olmcore.IsSeparatePlan(plan) || plan.DeletionTimestamp != nil {
		return false
	}
	inSet := map[string]bool{"": true}
	for _, s := range subscriptions {
		if isInSet(s.Name) {
			inSet[string(s.UID)] = true
		} else if ref := s.Status.InstallPlanRef; ref != nil && ref.Name == plan.Name && (ref.UID == "" || ref.UID == plan.UID) {
			return true
		}
	}
	for _, uid := range strings.Split(plan.Annotations[AnnotationContributors], ",") {
		if !inSet[uid] {
			return true
		}
	}
	return slices.ContainsFunc(plan.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == v1alpha1.SubscriptionKind && !inSet[string(r.UID)]
	})
}
