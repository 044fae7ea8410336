// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Affected returns the namespaces whose Subscriptions must be reconciled after an object was created, changed or
// deleted. Each key contains only a namespace. The zero key means all namespaces; it is returned for CatalogSources,
// for example. After an update, call Affected with both the old and the new version of the object.
//
// If a CatalogSource is not in the global catalog namespace, the caller may reconcile only the CatalogSource's own
// namespace. After a change of a CatalogSource, do not pass the old Input.Resolution any more.
func Affected(o olmcore.Object) []types.NamespacedName {
	kind := olmcore.KeyOf(o) // the zero Key for a nil pointer of any type
	switch {
	case kind.Kind == "":
		return nil
	case kind.Kind == "CustomResourceDefinition":
		return []types.NamespacedName{{}} // any CSV may own it, and the CRD does not say which
	case kind.Group == v1alpha1.GroupName && isInputKind(kind.Kind):
		return []types.NamespacedName{{Namespace: o.GetNamespace()}}
	case kind.Group == v1alpha1.GroupName && kind.Kind == v1alpha1.CatalogSourceKind:
		return []types.NamespacedName{{}}
	}
	return affectedByComponent(o, kind)
}

// isInputKind reports whether Input contains the objects of a kind of OLM.
func isInputKind(kind string) bool {
	switch kind {
	case v1alpha1.SubscriptionKind, v1alpha1.InstallPlanKind, v1alpha1.ClusterServiceVersionKind, operatorsv1.OperatorGroupKind:
		return true
	}
	return false
}

// affectedByComponent returns the namespaces in which a CSV may own an object: by owner reference or by owner labels. A
// Namespace also affects itself.
func affectedByComponent(o olmcore.Object, kind olmcore.Key) []types.NamespacedName {
	var keys []types.NamespacedName
	if kind.Kind == "Namespace" && kind.Group == "" {
		keys = append(keys, types.NamespacedName{Namespace: o.GetName()})
	}
	isOfCSV := func(ref metav1.OwnerReference) bool { return ref.Kind == v1alpha1.ClusterServiceVersionKind }
	if slices.ContainsFunc(o.GetOwnerReferences(), isOfCSV) {
		keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace()})
	}
	owner, hasOwner := olmcore.OwnerOf(o.GetLabels())
	if !hasOwner || owner.Kind != v1alpha1.ClusterServiceVersionKind {
		return keys
	}
	if len(keys) == 0 || keys[0].Namespace != owner.Namespace {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace})
	}
	return keys
}
