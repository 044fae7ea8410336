// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// subscriptions reads the Subscriptions of the namespace. For a plan that stays Complete,
// as nearly all are, a Reader that keeps an index gives those that are tied to it: no
// other one is looked at.
func (g *gatherer) subscriptions() (err error) {
	namespace := g.in.InstallPlan.Namespace
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok || !g.in.isComplete() {
		g.in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		return err
	}
	kept := keeper.Index("installplan Subscription "+namespace, func() any {
		x := &ties{positions: map[string][]int{}}
		x.all, x.err = olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		for i, s := range x.all {
			for _, tie := range tiesOf(s) {
				x.positions[tie] = append(x.positions[tie], i)
			}
		}
		return x
	}).(*ties)
	g.in.Subscriptions = kept.of(g.in.InstallPlan, g.in.Config)
	return kept.err
}

// ties are the Subscriptions of a namespace by what may tie them to a plan: its name
// after a slash, or their own UID.
type ties struct {
	all       []*v1alpha1.Subscription
	positions map[string][]int
	err       error
}

func tiesOf(s *v1alpha1.Subscription) []string {
	ties := []string{string(s.UID)}
	if from := s.Annotations[AnnotationGeneratedBy]; from != "" {
		ties = append(ties, "/"+from)
	}
	if ref := s.Status.InstallPlanRef; ref != nil {
		ties = append(ties, "/"+ref.Name)
	}
	return ties
}

// of returns, in order, the Subscriptions that refer to a plan, were made by it, own it or
// contributed to it, and maybe others.
func (x *ties) of(plan *v1alpha1.InstallPlan, config Config) []*v1alpha1.Subscription {
	found := slices.Clone(x.positions["/"+plan.Name])
	for _, uid := range splitList(plan.Annotations[config.contributorsKey()]) {
		found = append(found, x.positions[uid]...)
	}
	for i := range plan.OwnerReferences {
		found = append(found, x.positions[string(plan.OwnerReferences[i].UID)]...)
	}
	slices.Sort(found)
	subs := []*v1alpha1.Subscription{}
	for _, i := range slices.Compact(found) {
		subs = append(subs, x.all[i])
	}
	return subs
}
