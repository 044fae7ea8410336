// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// labelledKind is a kind whose objects have component labels. With here, objects in the namespace of a CSV belong to it
// by owner reference or owner labels. With elsewhere, other objects belong to it by owner labels. Kinds with neither
// have their own rules.
type labelledKind struct {
	schema.GroupVersionKind
	here, elsewhere bool
}

var labelledKinds = []labelledKind{
	{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind), false, false},
	{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind), false, false},
	{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind), false, false},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), true, false},
	{corev1.SchemeGroupVersion.WithKind("Secret"), true, false},
	{corev1.SchemeGroupVersion.WithKind("Service"), true, false},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), true, false},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), true, false},
	{operatorsv2.GroupVersion.WithKind("OperatorCondition"), true, false},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), true, true},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), true, true},
	{corev1.SchemeGroupVersion.WithKind("Namespace"), false, true},
	{apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), false, true},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), false, true},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), false, true},
	{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), false, false},
}

// GatherOwned reads the objects that inherit component labels from the given CSVs of a namespace, and the
// CustomResourceDefinitions that these CSVs list as owned. It ignores copied CSVs, CSVs without a component label, and
// kinds that r does not read. GatherOwned returns an error if a read fails, or if namespace is not a valid label value.
func GatherOwned(
	ctx context.Context,
	r olmcore.Reader,
	namespace string,
	csvs []*v1alpha1.ClusterServiceVersion,
) ([]olmcore.Object, error) {
	csvs = slices.DeleteFunc(slices.Clone(csvs), func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.IsCopied() || len(componentKeys(c.Labels)) == 0
	})
	if len(csvs) == 0 {
		return nil, nil
	}
	owned, err := k8slabels.NewRequirement(olmcore.LabelOwnerNamespace, selection.Equals, []string{namespace})
	if err != nil {
		return nil, &olmcore.InputError{Field: "namespace", Problem: "is not a valid label value: " + err.Error()}
	}
	var all []olmcore.Object
	read := func(kind schema.GroupVersionKind, where string, selector k8slabels.Selector) error {
		objects, err := olmcore.ObserveMetadata(ctx, r, kind, where, selector)
		for _, o := range objects.Items {
			if where == namespace || o.GetNamespace() != namespace { // else it was found
				all = append(all, o)
			}
		}
		return err
	}
	for _, kind := range labelledKinds {
		var errHere, errElsewhere error
		if kind.here {
			errHere = read(kind.GroupVersionKind, namespace, nil)
		}
		if kind.elsewhere {
			errElsewhere = read(kind.GroupVersionKind, "", k8slabels.NewSelector().Add(*owned))
		}
		if err := cmp.Or(errHere, errElsewhere); err != nil {
			return nil, err
		}
	}
	byName, names := relation.ByName(csvs), []string(nil)
	all = slices.DeleteFunc(all, func(o olmcore.Object) bool { return len(ownersOf(o, namespace, byName)) == 0 })
	for _, c := range csvs {
		names = append(names, ownedCRDs(c)...)
	}
	slices.Sort(names)
	crds, err := olmcore.ObserveNamed[*apiextensionsv1.CustomResourceDefinition](ctx, r, "", names...)
	for _, crd := range crds.Items {
		all = append(all, crd)
	}
	return all, err
}

// Gather reads the Operator object with the given name and all objects with the component label of that name. If the
// label is not valid, Gather reads no objects with the label. Gather returns an error if a read fails or if r does not
// read one of the kinds.
func Gather(ctx context.Context, r olmcore.Reader, name string) (Input, error) {
	in := Input{Name: name}
	var err error
	if in.Operator, err = olmcore.Get[*operatorsv1.Operator](ctx, r, "", name); err != nil {
		return Input{}, inputs.Needed(err, "everything about an Operator")
	}
	labelled, err := k8slabels.NewRequirement(olmcore.ComponentLabelPrefix+name, selection.Exists, nil)
	if err != nil {
		return in, nil // Reconcile says so
	}
	for _, kind := range labelledKinds {
		objects, err := olmcore.ListKind(ctx, r, kind.GroupVersionKind, "", k8slabels.NewSelector().Add(*labelled))
		if err != nil {
			return Input{}, inputs.Needed(err, "what belongs to an operator")
		}
		in.Components = append(in.Components, objects...)
	}
	return in, nil
}
