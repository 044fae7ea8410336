// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Affected returns the namespaces of Subscriptions to reconcile when an object was added, changed or deleted, as keys
// without a name; the zero key means all. Call it with the old and the new version.
//
// A CatalogSource affects all namespaces, as it may be a global one; whoever knows the global catalog namespace may
// keep those of others to themselves. It also changes what a resolution answers: drop Input.Resolution with it.
func Affected(o olmcore.Object) []types.NamespacedName {
	kind := olmcore.KeyOf(o) // the zero Key for a nil pointer of any type
	if kind.Kind == "" {
		return nil
	}
	if kind.Group == v1alpha1.GroupName {
		switch kind.Kind {
		case v1alpha1.SubscriptionKind, v1alpha1.InstallPlanKind, v1alpha1.ClusterServiceVersionKind, operatorsv1.OperatorGroupKind:
			return []types.NamespacedName{{Namespace: o.GetNamespace()}}
		case v1alpha1.CatalogSourceKind:
			return []types.NamespacedName{{}}
		}
	}
	if kind.Kind == "CustomResourceDefinition" {
		return []types.NamespacedName{{}} // any CSV may own it, and the CRD does not say which
	}
	var keys []types.NamespacedName
	if kind.Kind == "Namespace" && kind.Group == "" {
		keys = append(keys, types.NamespacedName{Namespace: o.GetName()})
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == v1alpha1.ClusterServiceVersionKind {
			keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace()})
			break
		}
	}
	if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind &&
		(len(keys) == 0 || keys[0].Namespace != owner.Namespace) {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace})
	}
	return keys
}
