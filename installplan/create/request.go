// SPDX-License-Identifier: Apache-2.0

package create

import (
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// request is a resolution beside the Subscriptions and plans of its namespace, both sorted by name.
type request struct {
	namespace     string
	resolution    olmcore.Resolution
	subscriptions []*v1alpha1.Subscription
	plans         []*v1alpha1.InstallPlan
}

// changed reports whether the resolution gives a Subscription a new version.
func (r request) changed(s *v1alpha1.Subscription) bool {
	return slices.ContainsFunc(r.resolution.Decisions, func(d olmcore.SubscriptionDecision) bool {
		return d.Name == s.Name && d.Changed && d.CurrentCSV != "" && d.Failure == nil
	})
}

// wanted reports whether a Subscription will refer to a plan of this resolution: one that it changes, or one whose plan
// never got any steps. A version that is only missing makes no plan, because its Subscription does not ask for it
// again: such a plan would never get its steps.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace, which plans nothing when
// no Subscription was updated.
func (r request) wanted() bool {
	var versions []string
	for _, o := range r.resolution.Operators {
		versions = append(versions, o.Name)
	}
	return slices.ContainsFunc(r.subscriptions, func(s *v1alpha1.Subscription) bool {
		return s.DeletionTimestamp == nil && (r.changed(s) || r.stranded(s, versions, ""))
	})
}

// stranded reports that a Subscription waits for one of the versions and refers to a plan, other than the one with the
// given UID, that has no steps and will get none, as the resolution is another by now.
func (r request) stranded(s *v1alpha1.Subscription, versions []string, plan types.UID) bool {
	return slices.Contains(versions, s.Status.CurrentCSV) &&
		slices.ContainsFunc(r.plans, func(p *v1alpha1.InstallPlan) bool {
			return p.UID != plan && relation.RefersTo(s, p) && p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0
		})
}

// stale reports whether the resolution was made for other Subscriptions than those of the snapshot. What the resolution
// itself changed in one that refers to the plan by now does not count. The plan may be nil.
func (r request) stale(plan *v1alpha1.InstallPlan) bool {
	observed := make(map[string]olmcore.SubscriptionFingerprint, len(r.resolution.Observed))
	for _, f := range r.resolution.Observed {
		observed[f.Name] = f
	}
	now := make(map[string]olmcore.SubscriptionFingerprint, len(r.subscriptions))
	for _, s := range r.subscriptions {
		f := olmcore.FingerprintOf(s)
		if plan != nil && relation.RefersTo(s, plan) && f.CurrentCSV == r.decided(s) {
			f.CurrentCSV = observed[s.Name].CurrentCSV
		}
		now[s.Name] = f
	}
	return !maps.Equal(observed, now)
}

// decided returns the version that the resolution decided for a Subscription.
func (r request) decided(s *v1alpha1.Subscription) string {
	for _, d := range r.resolution.Decisions {
		if d.Name == s.Name {
			return d.CurrentCSV
		}
	}
	return ""
}

// involves reports whether a Subscription's own operator is in the plan.
func (r request) involves(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	if plan.UID != "" && relation.RefersTo(s, plan) || r.changed(s) {
		return true
	}
	return slices.ContainsFunc(r.resolution.Operators, func(o olmcore.Operator) bool {
		return slices.Contains(o.For, s.Name) || o.Name == s.Status.CurrentCSV || o.Package != "" && o.Package == relation.PackageOf(s)
	})
}

// relate gives a plan, which it writes to, its owners, labels, the annotations that remember both, and its finalizer.
// All Subscriptions of the namespace own it. The Diagnostics name labels that are impossible.
func (r request) relate(plan *v1alpha1.InstallPlan, config installplan.Config) (found []olmcore.Diagnostic) {
	var involved []*v1alpha1.Subscription
	for _, s := range r.subscriptions {
		if !r.involves(s, plan) {
			continue
		}
		involved = append(involved, s)
		if _, err := olmcore.ComponentLabelKey(relation.PackageOf(s), r.namespace); err != nil {
			found = append(found, about(r.namespace, olmcore.Warning, ReasonLabelImpossible, "Subscription %s: %s", s.Name, err))
		}
	}
	relation.Relate(plan, r.subscriptions, involved)
	if !config.DisableFinalizer {
		relation.AddFinalizer(plan)
	}
	return found
}

func sameRelations(a, b *v1alpha1.InstallPlan) bool {
	return a.Spec.Approval == b.Spec.Approval && a.Spec.Approved == b.Spec.Approved &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, olmcore.SameOwnerReference) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// manual is the approval policy: one Subscription of the namespace that wants to approve makes every plan of it wait.
func (r request) manual() bool { return slices.ContainsFunc(r.subscriptions, relation.WantsManual) }

// manualBecauseOf names the Subscriptions that make a plan wait; none when the resolution changes one of them.
func (r request) manualBecauseOf() (names []string) {
	for _, s := range r.subscriptions {
		if !relation.WantsManual(s) {
			continue
		}
		if r.changed(s) {
			return nil
		}
		names = append(names, s.Name)
	}
	return names
}

// awaited names the Subscriptions that the resolution changes, or whose plan is gone before it installed the version
// that this one installs, and that do not refer to the plan by its UID yet, and reports whether any Subscription does.
// One that is being deleted never will.
func (r request) awaited(plan *v1alpha1.InstallPlan) (names []string, referred bool) {
	for _, s := range r.subscriptions {
		if s.DeletionTimestamp != nil {
			continue
		}
		if relation.RefersExactly(s, plan) {
			referred = true
		} else if r.changed(s) || r.lostPlan(s, plan) {
			names = append(names, s.Name)
		}
	}
	return names, referred
}

// lostPlan reports that a Subscription waits for a version of this plan and refers to one that does not exist: it is
// about to refer to this one, or to forget the version, and were that installed meanwhile it would be without a
// Subscription for ever.
func (r request) lostPlan(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return s.Status.InstallPlanRef != nil && s.Status.State == v1alpha1.SubscriptionStateUpgradePending &&
		s.Status.InstalledCSV != s.Status.CurrentCSV && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) &&
		!slices.ContainsFunc(r.plans, func(p *v1alpha1.InstallPlan) bool { return relation.RefersTo(s, p) })
}
