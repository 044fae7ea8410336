// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// PlansInOrder checks the InstallPlans among some objects: of two plans of a namespace that write the same object, the
// later one does not begin before the earlier one has written it. A plan that is Failed, Complete or being deleted
// writes nothing, and a Subscription may be created by whichever plan comes first.
func PlansInOrder(objects []olmcore.Object) error {
	begun := map[string][]*v1alpha1.InstallPlan{}
	for _, o := range objects {
		p, is := o.(*v1alpha1.InstallPlan)
		if is && p.Status.Phase == v1alpha1.InstallPlanPhaseInstalling && p.Status.StartTime != nil && p.DeletionTimestamp == nil {
			begun[p.Namespace] = append(begun[p.Namespace], p)
		}
	}
	var broken []error
	for _, namespace := range slices.Sorted(maps.Keys(begun)) {
		plans := begun[namespace]
		slices.SortFunc(plans, func(a, b *v1alpha1.InstallPlan) int { return cmp.Compare(a.Spec.Generation, b.Spec.Generation) })
		for i, earlier := range plans {
			for _, later := range plans[i+1:] {
				if name := sharedObject(earlier, later); name != "" && later.Spec.Generation > earlier.Spec.Generation {
					broken = append(broken, fmt.Errorf("InstallPlans %s and %s of namespace %s run side by side: both write %s",
						earlier.Name, later.Name, namespace, name))
				}
			}
		}
	}
	return errors.Join(broken...)
}

// sharedObject returns an object that the earlier plan still has to write, and that is the later one's as well.
func sharedObject(earlier, later *v1alpha1.InstallPlan) string {
	for _, s := range earlier.Status.Plan {
		if !isOpen(s) {
			continue
		}
		for _, other := range later.Status.Plan {
			if isSameObject(s, other) {
				return s.Resource.Kind + " " + s.Resource.Name
			}
		}
	}
	return ""
}

func isOpen(s *v1alpha1.Step) bool {
	return s != nil && s.Resource.Kind != v1alpha1.SubscriptionKind && s.Status != v1alpha1.StepStatusCreated &&
		s.Status != v1alpha1.StepStatusPresent && s.Status != v1alpha1.StepStatusNotCreated
}

func isSameObject(a, b *v1alpha1.Step) bool {
	return b != nil && a.Resource.Group == b.Resource.Group && a.Resource.Kind == b.Resource.Kind && a.Resource.Name == b.Resource.Name
}
