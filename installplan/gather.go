// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"context"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at for one plan; the caller adds Now and
// what only it knows. The steps of a plan that has nothing left to do are not
// read. A plan that does not exist is an error for which apierrors.IsNotFound
// holds; a read that failed is its error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	g := gatherer{ctx: ctx, r: r, in: Input{Config: config}}
	plan, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about an InstallPlan")
	}
	if plan == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "installplans"}, key.Name)
	}
	g.in.InstallPlan = plan
	var namespaceRead bool
	if g.in.Namespace, namespaceRead, err = namespaceIfRead(ctx, r, key.Namespace); err != nil {
		return Input{}, err
	}
	if err := g.subscriptions(); err != nil {
		return Input{}, olmcore.Needed(err, "who needs an InstallPlan")
	}
	if plan.DeletionTimestamp != nil && slices.Contains(plan.Finalizers, Finalizer) {
		err = g.leftBundles()
		return g.in, err
	}
	if conditionOf(&plan.Status, ConditionRetrying) != nil && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && !isNeeded(plan, g.in.Subscriptions) {
		return g.in, olmcore.Needed(g.named(plan.Spec.ClusterServiceVersionNames), "whether an InstallPlan that failed has brought its versions")
	}
	if !looksAtSteps(g.in) {
		return g.in, nil
	}
	if err := g.steps(); err != nil {
		return Input{}, olmcore.Needed(err, "what an InstallPlan has still to do")
	}
	if !namespaceRead {
		return Input{}, &olmcore.NotReadError{Kind: namespaceKind, Unknown: "whether the namespace of an InstallPlan is being deleted"}
	}
	return g.in, nil
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// namespaceIfRead returns a Namespace, nil when it does not exist or was not read.
func namespaceIfRead(ctx context.Context, r olmcore.Reader, name string) (found *corev1.Namespace, read bool, err error) {
	list, err := olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", name)
	if err != nil || len(list.Items) == 0 {
		return nil, list.Complete, err
	}
	return list.Items[0], true, nil
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its
// Subscriptions.
func looksAtSteps(in Input) bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return mayHeal(plan, in.Subscriptions)
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor() == ""
}

type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	in   Input
	seen map[olmcore.Key]bool
}

// otherPlans lists the plans of all namespaces but those that it is told to
// leave out, where these were read.
func otherPlans(ctx context.Context, r olmcore.Reader, leaveOut func(*v1alpha1.InstallPlan) bool) (olmcore.Observed[*v1alpha1.InstallPlan], error) {
	all, err := olmcore.Observe[*v1alpha1.InstallPlan](ctx, r, "", nil)
	all.Items = slices.DeleteFunc(all.Items, leaveOut)
	return all, err
}
