// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

var managed = labels.SelectorFromSet(labels.Set{olmcore.LabelManaged: "true"})

// Gather reads the Input of Reconcile for a namespace. The caller sets Now, Lookups and Checkpoint. OtherPlans contains
// the plans of other namespaces that need an unpacked bundle of this namespace. Any failed read is an error. It is also
// an error if the Reader does not read Subscriptions or InstallPlans.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config installplan.Config) (Input, error) {
	in := Input{Namespace: namespace, Config: config}
	var err error
	if in.Namespaces, err = olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", namespace); err != nil {
		return Input{}, err
	}
	subscriptions, err := olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil)
	if err != nil {
		return Input{}, olmcore.Needed(err, "which InstallPlans are needed")
	}
	plans, err := olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about the InstallPlans of a namespace")
	}
	in.Subscriptions, in.InstallPlans = olmcore.Found(subscriptions...), olmcore.Found(plans...)
	if in.ConfigMaps, err = olmcore.Observe[*corev1.ConfigMap](ctx, r, namespace, managed); err != nil {
		return Input{}, err
	}
	in.ConfigMaps.Items = slices.DeleteFunc(in.ConfigMaps.Items, func(cm *corev1.ConfigMap) bool { return !bundle.IsUnpacked(cm) })
	if len(in.ConfigMaps.Items) > 0 {
		if in.OtherPlans, err = bundle.Needing(ctx, r, in.ConfigMaps.Items); err != nil {
			return Input{}, err
		}
		in.OtherPlans.Items = slices.DeleteFunc(in.OtherPlans.Items, func(p *v1alpha1.InstallPlan) bool { return p.Namespace == namespace })
	}
	ties := relation.NewTies(subscriptions)
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, p := range plans {
		if !isCurrent(p, ties.Subscriptions(p)) {
			continue
		}
		steps := StepObjects{InstallPlan: p.UID}
		var notRead *olmcore.NotReadError
		if steps.Objects, err = stepObjects(ctx, r, p, &crds); errors.As(err, &notRead) {
			steps.Unread = notRead.Kind
		} else if err != nil {
			return Input{}, err
		}
		in.Steps = append(in.Steps, steps)
	}
	return in, nil
}

// stepObjects reads the existing objects of the steps of a plan, and the definitions of their kinds. all contains the
// definitions of the cluster once they are read.
func stepObjects(
	ctx context.Context, r olmcore.Reader, p *v1alpha1.InstallPlan, all *[]*apiextensionsv1.CustomResourceDefinition,
) (objects []olmcore.Object, err error) {
	crds, err := definitionsFor(ctx, r, p, all)
	if err != nil {
		return nil, err
	}
	seen := map[olmcore.Key]bool{}
	for _, crd := range crds {
		seen[olmcore.KeyOf(crd)] = true
		objects = append(objects, crd)
	}
	for _, s := range p.Status.Plan {
		if s == nil || s.Resource.Name == "" {
			continue
		}
		o, err := objectOf(ctx, r, s, p.Namespace, crds)
		if err != nil {
			return nil, err
		}
		if o != nil && !seen[olmcore.KeyOf(o)] {
			seen[olmcore.KeyOf(o)] = true
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// definitionsFor returns the CustomResourceDefinitions of the kinds of the steps of a plan. all contains the
// definitions of the cluster once they are read.
func definitionsFor(
	ctx context.Context, r olmcore.Reader, p *v1alpha1.InstallPlan, all *[]*apiextensionsv1.CustomResourceDefinition,
) (crds []*apiextensionsv1.CustomResourceDefinition, err error) {
	defined := sets.New[string]()
	for _, s := range p.Status.Plan {
		if leavesObject(s) && bundle.NeedsDefinition(s) {
			defined.Insert(s.Resource.Kind)
		}
	}
	if len(defined) > 0 && *all == nil {
		*all, err = olmcore.List[*apiextensionsv1.CustomResourceDefinition](ctx, r, "", nil)
		if err != nil {
			return nil, err
		}
	}
	isUndefined := func(crd *apiextensionsv1.CustomResourceDefinition) bool { return !defined.Has(crd.Spec.Names.Kind) }
	return slices.DeleteFunc(slices.Clone(*all), isUndefined), nil
}

// objectOf reads the object of a step, or returns nil if there is none.
func objectOf(
	ctx context.Context, r olmcore.Reader, s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition,
) (olmcore.Object, error) {
	for key := range objectsOf(s, namespace, crds) {
		o, err := olmcore.GetKind(ctx, r, kinds.GVKOf(s), key.Namespace, key.Name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case o != nil:
			return o, nil
		}
	}
	return nil, nil
}
