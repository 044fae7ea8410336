// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the CatalogSources to reconcile when an object was added,
// changed or deleted; of a change, ask for the old object and the new one. An
// empty Name stands for every CatalogSource of the Namespace, the zero key for
// all; see olmcore.ExpandKeys. It is nil for objects that do not matter.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil // no object
	}
	if keys, whole := affectedWhole(o); whole {
		return keys
	}
	var keys []types.NamespacedName
	add := func(name string) {
		if name != "" {
			keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace(), Name: name})
		}
	}
	addWithout := func(suffix string) {
		if name, ok := strings.CutSuffix(o.GetName(), suffix); ok {
			add(name)
		}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		add(o.Labels[registry.LabelServing])
		add(o.Labels[registry.LabelCandidate])
		source, cut := registry.SourceOfPodName(o.Name)
		if cut {
			return []types.NamespacedName{{Namespace: o.Namespace}} // any name may begin so
		}
		add(source)
	case *corev1.ServiceAccount:
		add(o.Name)
		addWithout(registry.SuffixAccount)
	case *rbacv1.Role:
		addWithout(registry.SuffixRole)
	case *rbacv1.RoleBinding:
		addWithout(registry.SuffixBinding)
	case *networkingv1.NetworkPolicy:
		addWithout(registry.SuffixServerPolicy)
		addWithout(registry.SuffixUnpackPolicy)
	case *corev1.Service, *policyv1.PodDisruptionBudget:
		add(o.GetName())
	default:
		return nil
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == v1alpha1.CatalogSourceKind && strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/") {
			add(ref.Name)
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(keys)
}

// affectedWhole answers for objects whose owners do not matter.
func affectedWhole(o olmcore.Object) (keys []types.NamespacedName, whole bool) {
	all := []types.NamespacedName{{Namespace: o.GetNamespace()}}
	switch o := o.(type) {
	case *v1alpha1.CatalogSource:
		return []types.NamespacedName{{Namespace: o.Namespace, Name: o.Name}}, true
	case *corev1.Node:
		return []types.NamespacedName{{}}, true
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: o.Name}}, true
	case *corev1.ConfigMap:
		return all, true // any CatalogSource may name it
	case *corev1.Service, *policyv1.PodDisruptionBudget:
		return all, strings.Contains(o.GetName(), "-") // any dash may stand for a dot
	case *v1alpha1.Subscription:
		if o.Spec == nil || o.Spec.CatalogSource == "" || o.Spec.CatalogSourceNamespace == "" {
			return nil, true
		}
		return []types.NamespacedName{{Namespace: o.Spec.CatalogSourceNamespace, Name: o.Spec.CatalogSource}}, true
	}
	return nil, false
}
