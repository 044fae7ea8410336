// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at for one plan; the caller adds Now and
// what only it knows. The steps of a plan that has nothing left to do are not
// read. A plan that does not exist is an error for which apierrors.IsNotFound
// holds; a read that failed is its error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	plan, err := olmcore.Require[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about an InstallPlan")
	}
	g := gatherer{ctx: ctx, r: r, in: Input{InstallPlan: plan, Config: config}}
	if g.in.Namespace, err = olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", key.Namespace); err != nil {
		return Input{}, err
	}
	if g.in.Subscriptions, err = g.subscriptions(); err != nil {
		return Input{}, olmcore.Needed(err, "who needs an InstallPlan")
	}
	_, passes := retryingSince(&plan.Status)
	switch {
	case plan.DeletionTimestamp != nil && relation.HasFinalizer(plan):
		err = g.leftBundles()
	case passes && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && !g.in.isNeeded():
		err = olmcore.Needed(g.versionsNamed(plan.Spec.ClusterServiceVersionNames), "whether an InstallPlan that failed has brought its versions")
	case g.in.looksAtSteps():
		err = olmcore.Needed(g.steps(), "what an InstallPlan has still to do")
		if err == nil && !g.in.Namespace.Complete {
			err = &olmcore.NotReadError{
				Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Unknown: "whether the namespace of an InstallPlan is being deleted",
			}
		}
	}
	if err != nil {
		return Input{}, err
	}
	return g.in, nil
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its Subscriptions.
func (in *Input) looksAtSteps() bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, input.Terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return step.IsRefusal(plan.Status.Message) && in.isNeeded()
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor() == ""
}

// gatherer reads the parts of an Input.
type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	in   Input
	seen map[olmcore.Key]bool // whether objects that were read exist
}

// subscriptions reads the Subscriptions of the namespace; where the Reader keeps an index,
// those that are tied to the plan: no other one is looked at.
func (g *gatherer) subscriptions() (olmcore.Observed[*v1alpha1.Subscription], error) {
	namespace := g.in.InstallPlan.Namespace
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok {
		all, err := olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		return olmcore.Found(all...), err
	}
	type index struct {
		relation.Ties
		err error
	}
	kept := keeper.Index("installplan Subscription "+namespace, func() any {
		all, err := olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, namespace, nil)
		return &index{relation.NewTies(all), err}
	}).(*index)
	if kept.err != nil {
		return olmcore.Observed[*v1alpha1.Subscription]{}, kept.err
	}
	return olmcore.Found(kept.Of(g.in.InstallPlan)...), nil
}

// leftBundles reads what a deleted plan may be the last to refer to.
func (g *gatherer) leftBundles() error {
	plan := g.in.InstallPlan
	err := g.bundles()
	if errors.Is(err, olmcore.ErrNotRead) {
		return nil // package sweep finds them
	}
	if err != nil || len(g.in.ConfigMaps.Items) == 0 {
		return err
	}
	g.in.OtherPlans, err = olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, "", nil)
	g.in.OtherPlans.Items = slices.DeleteFunc(g.in.OtherPlans.Items, func(p *v1alpha1.InstallPlan) bool {
		return p.Namespace == plan.Namespace && p.Name == plan.Name
	})
	return err
}

// bundles reads the ConfigMaps that the plan's steps refer to and may refer to.
func (g *gatherer) bundles() error {
	plan := g.in.InstallPlan
	referred := bundle.Referred(plan)
	maps.DeleteFunc(referred, func(key types.NamespacedName, _ bool) bool {
		return !g.in.Config.mayRefer(plan.Namespace, key.Namespace)
	})
	var found []*corev1.ConfigMap
	keys := slices.SortedFunc(maps.Keys(referred), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) > step.MaxBundles {
		keys = nil // none of it will be applied
	}
	for _, key := range keys {
		cm, err := olmcore.Get[*corev1.ConfigMap](g.ctx, g.r, key.Namespace, key.Name)
		if err != nil {
			return err
		}
		if cm != nil {
			found = append(found, cm)
		}
	}
	g.in.ConfigMaps = olmcore.Found(found...)
	return nil
}
