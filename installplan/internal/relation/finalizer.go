// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Finalizer holds a plan until what it leaves behind is cleaned up.
const Finalizer = "operators.coreos.com/installplan-cleanup"

// HasFinalizer reports whether a plan has the finalizer.
func HasFinalizer(plan *v1alpha1.InstallPlan) bool {
	return slices.Contains(plan.Finalizers, Finalizer)
}

// AddFinalizer gives a plan, which it writes to, the finalizer.
func AddFinalizer(plan *v1alpha1.InstallPlan) {
	if !HasFinalizer(plan) {
		plan.Finalizers = append(plan.Finalizers, Finalizer)
	}
}

// RemoveFinalizer takes the finalizer from a plan, which it writes to.
func RemoveFinalizer(plan *v1alpha1.InstallPlan) {
	plan.Finalizers = slices.DeleteFunc(plan.Finalizers, func(f string) bool { return f == Finalizer })
	if len(plan.Finalizers) == 0 {
		plan.Finalizers = nil
	}
}

// Marked returns the Subscriptions with the mark of this plan that blocks their
// namespace once the plan is gone, sorted by name.
func Marked(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) []*v1alpha1.Subscription {
	var marked []*v1alpha1.Subscription
	for _, s := range subscriptions {
		if s.UID != "" && s.Annotations[GeneratedBy] == plan.Name && (s.Status.InstallPlanRef == nil || RefersTo(s, plan)) {
			marked = append(marked, s)
		}
	}
	slices.SortFunc(marked, func(a, b *v1alpha1.Subscription) int { return cmp.Compare(a.Name, b.Name) })
	return marked
}

// Unmark asks for a Subscription without the name of the plan that made it.
func Unmark(s *v1alpha1.Subscription, cause olmcore.Cause) olmcore.Update {
	after := s.DeepCopy()
	delete(after.Annotations, GeneratedBy)
	if len(after.Annotations) == 0 {
		after.Annotations = nil
	}
	return olmcore.UpdateOf(s, after, cause)
}
