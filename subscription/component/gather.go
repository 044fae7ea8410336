// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// namespacedKinds are the kinds in a CSV's namespace that get its component
// labels; clusterKinds, and in other namespaces spreadKinds, carry owner labels
// instead of references.
// olmKinds and crdKind carry the labels too, by rules of their own.
var (
	olmKinds = []schema.GroupVersionKind{
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind),
	}
	crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

	namespacedKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
	clusterKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	}
	spreadKinds = []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
)

// GatherOwned reads the objects that belong to ClusterServiceVersions of a namespace
// which carry a component label, of every kind that inherits it; kinds that were not read
// are left out. Any other failed read is an error.
func GatherOwned(ctx context.Context, r olmcore.Reader, namespace string, csvs []*v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	csvs = slices.DeleteFunc(slices.Clone(csvs), func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.IsCopied() || len(componentKeys(c.Labels)) == 0
	})
	if len(csvs) == 0 {
		return nil, nil
	}
	owners := ownersIndex(csvs)
	var found []olmcore.Object
	for _, kind := range namespacedKinds {
		objects, err := olmcore.ObserveKind(ctx, r, kind, namespace, nil)
		if err != nil {
			return nil, err
		}
		for _, o := range objects.Items {
			if owners.own(o) {
				found = append(found, o)
			}
		}
	}
	owned, err := k8slabels.NewRequirement(olmcore.LabelOwnerNamespace, selection.Equals, []string{namespace})
	if err != nil {
		return nil, &olmcore.InputError{Field: "namespace", Problem: "is no label value: " + err.Error()}
	}
	for _, kind := range slices.Concat(clusterKinds, spreadKinds) {
		objects, err := olmcore.ObserveKind(ctx, r, kind, "", k8slabels.NewSelector().Add(*owned))
		if err != nil {
			return nil, err
		}
		for _, o := range objects.Items {
			if o.GetNamespace() == namespace {
				continue // found already
			}
			if owners.own(o) {
				found = append(found, o)
			}
		}
	}
	crds, err := ownedCRDs(ctx, r, csvs)
	return append(found, crds...), err
}

func ownedCRDs(ctx context.Context, r olmcore.Reader, csvs []*v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	var names []string
	for _, c := range csvs {
		for i := range c.Spec.CustomResourceDefinitions.Owned {
			names = append(names, c.Spec.CustomResourceDefinitions.Owned[i].Name)
		}
	}
	slices.Sort(names)
	crds, err := olmcore.ObserveNamed[*apiextensionsv1.CustomResourceDefinition](ctx, r, "", names...)
	if err != nil {
		return nil, err
	}
	var found []olmcore.Object
	for _, crd := range crds.Items {
		found = append(found, crd)
	}
	return found, nil
}

// owners are CSVs of one namespace, by name and by UID.
type owners struct {
	byName map[string]*v1alpha1.ClusterServiceVersion
	byUID  map[types.UID]*v1alpha1.ClusterServiceVersion
}

func ownersIndex(csvs []*v1alpha1.ClusterServiceVersion) owners {
	index := owners{byName: map[string]*v1alpha1.ClusterServiceVersion{}, byUID: map[types.UID]*v1alpha1.ClusterServiceVersion{}}
	for _, c := range csvs {
		index.byName[c.Name], index.byUID[c.UID] = c, c
	}
	return index
}

// own reports whether an object belongs to one of them.
func (index owners) own(o olmcore.Object) bool {
	for _, r := range o.GetOwnerReferences() {
		if c := index.byUID[r.UID]; c != nil && belongsTo(o, c) {
			return true
		}
	}
	named, _ := olmcore.OwnerOf(o.GetLabels())
	c := index.byName[named.Name]
	return c != nil && belongsTo(o, c)
}

// belongsTo reports whether a CSV owns an object, by reference or by labels.
func belongsTo(o olmcore.Object, c *v1alpha1.ClusterServiceVersion) bool {
	if olmcore.OwnedBy(o, c.UID) {
		return true
	}
	owner := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	return owner.Owns(o.GetLabels())
}

// Gather reads what carries one component label, and the Operator object
// of its name. A failed read is an error, and so is a kind that was not read: its status
// would lack what is there.
func Gather(ctx context.Context, r olmcore.Reader, name string) (Input, error) {
	in := Input{Name: name}
	var err error
	if in.Operator, err = olmcore.Get[*operatorsv1.Operator](ctx, r, "", name); err != nil {
		return Input{}, olmcore.Needed(err, "everything about an Operator")
	}
	labelled, err := k8slabels.NewRequirement(olmcore.ComponentLabelPrefix+name, selection.Exists, nil)
	if err != nil {
		return in, nil // Reconcile says so
	}
	for _, kinds := range [...][]schema.GroupVersionKind{olmKinds, namespacedKinds, clusterKinds, {crdKind}} {
		for _, kind := range kinds {
			objects, err := olmcore.ListKind(ctx, r, kind, "", k8slabels.NewSelector().Add(*labelled))
			if err != nil {
				return Input{}, olmcore.Needed(err, "what belongs to an operator")
			}
			in.Components = append(in.Components, objects...)
		}
	}
	return in, nil
}
