// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// mayStart reports whether the plan may start, run or be tried again, so that it depends on the order of plans.
func (in *Input) mayStart() bool {
	plan := in.InstallPlan
	if plan.DeletionTimestamp != nil || !relation.HasSteps(plan) || relation.IsSuperseded(plan) {
		return false
	}
	switch plan.Status.Phase {
	case v1alpha1.InstallPlanPhaseComplete:
		return false
	case v1alpha1.InstallPlanPhaseFailed:
		return in.isNeeded() || relation.Applied(plan) || plan.Status.AttenuatedServiceAccountRef != nil
	}
	return true
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its Subscriptions.
func (in *Input) looksAtSteps() bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, inputs.Terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return in.isRetried()
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor(in.later()) == nil
}

// isRetried reports whether a failed plan is tried again: a Subscription references it, it created a version that was
// never installed, or it has not created the Subscription of a version. A plan is not tried again once later plans with
// steps contain all of its packages.
func (in *Input) isRetried() bool {
	plan := in.InstallPlan
	isWithdrawn := plan.Spec.Approval == v1alpha1.ApprovalManual && !plan.Spec.Approved
	return !isWithdrawn && !in.isReplaced() && (in.isNeeded() || in.isHalfMade() || leavesUnfollowed(in))
}

// isReplaced reports whether the plan was superseded, or later plans with steps contain all of its packages.
func (in *Input) isReplaced() bool {
	_, all := takenOverIn(in)
	return all || relation.IsSuperseded(in.InstallPlan)
}

// takenOverIn returns the versions of the plan that other plans install instead, and whether those are all of them.
// Other plans wait for a plan that runs, but not for one that failed.
func takenOverIn(in *Input) (versions map[string]bool, all bool) {
	if in.InstallPlan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		return relation.Outdated(in.InstallPlan, in.RelatedPlans.Items, in.Subscriptions.Items, in.ClusterServiceVersions.Items)
	}
	return relation.TakenOver(in.InstallPlan, in.RelatedPlans.Items)
}

// isNeeded reports whether a Subscription refers to the very plan.
func (in *Input) isNeeded() bool {
	return slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool {
		return relation.RefersExactly(s, in.InstallPlan)
	})
}

// isHalfMade reports whether the versions of the plan exist and were never installed, so that later versions wait for
// the steps that the plan did not apply. A version that was deleted is not created again.
func (in *Input) isHalfMade() bool {
	plan := in.InstallPlan
	if len(plan.Spec.ClusterServiceVersionNames) == 0 || !relation.Applied(plan) {
		return false
	}
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		c := versionNamed(in, name)
		if c == nil || !olmcore.NeverInstalled(c) {
			return false
		}
	}
	return true
}

// leavesUnfollowed reports whether the plan created a version of a package that no Subscription names, and has not
// created the Subscription for it. Without a Subscription the version is never upgraded, and versions that need a newer
// one are never installed. Versions that other plans install instead do not count. A version that was deleted is not
// created again.
func leavesUnfollowed(in *Input) bool {
	takenOver, _ := takenOverIn(in)
	for _, name := range in.InstallPlan.Spec.ClusterServiceVersionNames {
		if !takenOver[name] && versionNamed(in, name) == nil {
			return false
		}
	}
	return slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool {
		isOpen := s != nil && s.Resource.Kind == v1alpha1.SubscriptionKind && !olmcore.IsStepDone(s)
		return isOpen && !takenOver[s.Resolving] && isUnfollowed(in, versionNamed(in, s.Resolving))
	})
}

// isUnfollowed reports whether the package of a version is known, and no Subscription names it.
func isUnfollowed(in *Input, c *v1alpha1.ClusterServiceVersion) bool {
	if c == nil {
		return false
	}
	packages := olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])
	return len(packages) > 0 && !slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool {
		return s.Spec != nil && slices.Contains(packages, s.Spec.Package)
	})
}

// versionNamed returns the version of a name if it exists, is no copy, and is not being deleted.
func versionNamed(in *Input, name string) *v1alpha1.ClusterServiceVersion {
	for _, c := range in.ClusterServiceVersions.Items {
		if c.Name == name && !c.IsCopied() && c.DeletionTimestamp == nil {
			return c
		}
	}
	return nil
}

// later returns the plans that take precedence over the plan, newest first.
func (in *Input) later() []*v1alpha1.InstallPlan {
	return relation.Later(in.InstallPlan, in.RelatedPlans.Items, in.Subscriptions.Items)
}

// successor returns the plan that supersedes the plan, or nil. A plan that has not started is superseded by any later
// plan that has steps. A plan that has started is superseded once later plans have started for all of its versions. A
// later plan without steps may never get them; package create supersedes what is in its way when it gets them.
func (in *Input) successor(later []*v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	plan := in.InstallPlan
	if relation.Terminal(plan) || !relation.HasSteps(plan) || len(later) == 0 {
		return nil
	}
	if _, all := relation.TakenOver(plan, in.RelatedPlans.Items); all {
		return later[0]
	}
	i := slices.IndexFunc(later, relation.HasSteps)
	if i >= 0 && relation.Untouched(plan) {
		return later[i]
	}
	return nil
}
