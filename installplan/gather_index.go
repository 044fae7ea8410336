// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// subscriptions reads the Subscriptions of the namespace; where the Reader keeps an
// index, those that are tied to the plan: no other one is looked at.
func (g *gatherer) subscriptions() (err error) {
	namespace := g.in.InstallPlan.Namespace
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok {
		g.in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		return err
	}
	kept := keeper.Index("installplan Subscription "+namespace, func() any {
		all, err := olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		x := newTies(all)
		x.err = err
		return &x
	}).(*ties)
	g.in.Subscriptions = kept.of(g.in.InstallPlan, g.in.Config)
	return kept.err
}

// ties are the Subscriptions of a namespace by what may tie them to a plan.
type ties struct {
	all       []*v1alpha1.Subscription
	positions map[tie][]int
	err       error
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

// newTies makes an index; few Subscriptions need none.
func newTies(subs []*v1alpha1.Subscription) ties {
	x := ties{all: subs}
	if len(subs) <= fewObjects {
		return x
	}
	x.positions = map[tie][]int{}
	for i, s := range subs {
		add := func(by, value string) {
			if value != "" {
				x.positions[tie{by, value}] = append(x.positions[tie{by, value}], i)
			}
		}
		add(tieUID, string(s.UID))
		add(tieName, s.Name)
		add(tiePlan, s.Annotations[AnnotationGeneratedBy])
		if ref := s.Status.InstallPlanRef; ref != nil {
			add(tiePlan, ref.Name)
			add(tiePlanUID, string(ref.UID))
		}
		add(tieCSV, s.Status.CurrentCSV)
		add(tiePackage, packageOf(s))
	}
	return x
}

// of returns, in order, the Subscriptions that a decision about a plan looks at, and maybe
// others: those that refer to it, were made by it, own it, are named like an owner or
// contributed to it. While it is not Complete also those of the packages and versions that
// it brings, and those that it makes.
func (x *ties) of(plan *v1alpha1.InstallPlan, config Config) []*v1alpha1.Subscription {
	if x.positions == nil {
		return x.all
	}
	found := slices.Concat(x.positions[tie{tiePlan, plan.Name}], x.positions[tie{tiePlanUID, string(plan.UID)}])
	add := func(by string, values ...string) {
		for _, value := range values {
			found = append(found, x.positions[tie{by, value}]...)
		}
	}
	add(tieUID, splitList(plan.Annotations[config.contributorsKey()])...)
	for i := range plan.OwnerReferences {
		add(tieUID, string(plan.OwnerReferences[i].UID))
		add(tieName, plan.OwnerReferences[i].Name)
	}
	if plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		add(tieCSV, plan.Spec.ClusterServiceVersionNames...)
		packages := splitList(plan.Annotations[config.packagesKey()])
		if len(packages) == 0 {
			packages = packagesOfSteps(plan)
		}
		add(tiePackage, packages...)
		for _, s := range plan.Status.Plan {
			switch {
			case s == nil:
			case s.Resource.Kind == kindSubscription:
				add(tieName, s.Resource.Name, identify(s.Resource.Manifest).Metadata.Name)
			default:
				add(tieCSV, s.Resolving, s.Resource.Name)
			}
		}
	}
	slices.Sort(found)
	subs := []*v1alpha1.Subscription{}
	for _, i := range slices.Compact(found) {
		subs = append(subs, x.all[i])
	}
	return subs
}
