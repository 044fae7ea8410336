// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
)

// Ties finds the Subscriptions of a namespace that a plan has to do with.
type Ties struct {
	all       []*v1alpha1.Subscription
	positions map[tie][]int
}

// tie is one thing that may tie a Subscription to a plan.
type tie struct{ by, value string }

const (
	tieUID     = "its UID"
	tieName    = "its name"
	tiePlan    = "the name of a plan that it refers to, or that made it"
	tiePlanUID = "the UID of the plan that it refers to"
	tieCSV     = "status.currentCSV"
	tiePackage = "its package"
)

// NewTies returns the Ties of the Subscriptions of a namespace, none of them nil.
func NewTies(subscriptions []*v1alpha1.Subscription) Ties {
	x := Ties{all: subscriptions, positions: map[tie][]int{}}
	for i, s := range subscriptions {
		add := func(by, value string) {
			if value != "" {
				x.positions[tie{by, value}] = append(x.positions[tie{by, value}], i)
			}
		}
		add(tieUID, string(s.UID))
		add(tieName, s.Name)
		add(tiePlan, s.Annotations[GeneratedBy])
		if ref := s.Status.InstallPlanRef; ref != nil {
			add(tiePlan, ref.Name)
			add(tiePlanUID, string(ref.UID))
		}
		add(tieCSV, s.Status.CurrentCSV)
		add(tiePackage, PackageOf(s))
	}
	return x
}

// Of returns, in their order, the Subscriptions that a decision about a plan looks at,
// and maybe others: those that refer to it, were made by it, own it, are named like an
// owner or contributed to it. While it is not Complete also those of the packages and
// versions that it brings, and those that it makes.
func (x Ties) Of(plan *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	var found []int
	add := func(by string, values ...string) {
		for _, value := range values {
			found = append(found, x.positions[tie{by, value}]...)
		}
	}
	add(tiePlan, plan.Name)
	add(tiePlanUID, string(plan.UID))
	add(tieUID, List(plan.Annotations[Contributors])...)
	for _, r := range plan.OwnerReferences {
		add(tieUID, string(r.UID))
		add(tieName, r.Name)
	}
	if plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		add(tieCSV, plan.Spec.ClusterServiceVersionNames...)
		add(tiePackage, packagesOf(plan)...)
		for _, s := range plan.Status.Plan {
			switch {
			case s == nil:
			case s.Resource.Kind == kinds.Subscription:
				add(tieName, s.Resource.Name, manifest.NameOf(s))
			default:
				add(tieCSV, s.Resolving, s.Resource.Name)
			}
		}
	}
	slices.Sort(found)
	subscriptions := []*v1alpha1.Subscription{}
	for _, i := range slices.Compact(found) {
		subscriptions = append(subscriptions, x.all[i])
	}
	return subscriptions
}
