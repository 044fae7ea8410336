// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/internal/apigroup"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the plans to reconcile after an object was created, changed or deleted. A key with an empty Name
// means all plans of the namespace, and the zero key means all plans; see olmcore.ExpandKeys. Affected returns nil
// for an object on which no decision depends, for example of a kind that no step can have.
//
// An InstallPlan does not affect plans of other namespaces, although Gather reads it for Input.Announced and
// Input.OtherPlans.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil
	}
	switch x := o.(type) {
	case *v1alpha1.InstallPlan:
		return []types.NamespacedName{{Namespace: x.Namespace}, {Namespace: x.Namespace, Name: x.Name}}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: x.Name}}
	}
	switch {
	case affectsNoPlan(o):
		return nil
	case affectsAllNamespaces(o):
		return []types.NamespacedName{{}}
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace()}}
}

// affectsNoPlan reports whether no plan depends on an object.
func affectsNoPlan(o olmcore.Object) bool {
	switch x := o.(type) {
	case *apiregistrationv1.APIService:
		return apigroup.FollowsDefinitions(x)
	case *v1alpha1.CatalogSource:
		return len(x.Spec.Secrets) == 0
	case *operatorsv1.OperatorGroup, *v1alpha1.ClusterServiceVersion, *corev1.ConfigMap, *corev1.Secret,
		*unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return false
	}
	_, isServed := kinds.Find(olmcore.GVKOf(o))
	return !isServed
}

// affectsAllNamespaces reports whether plans of all namespaces may depend on an object, not only those of its own
// namespace.
func affectsAllNamespaces(o olmcore.Object) bool {
	switch x := o.(type) {
	case *operatorsv1.OperatorGroup:
		return false
	case *corev1.ConfigMap:
		return bundle.IsUnpacked(x) // plans of any namespace may refer to it
	case *v1alpha1.ClusterServiceVersion:
		// A version that owns CustomResourceDefinitions affects plans of every namespace in which they are installed.
		return len(x.Spec.CustomResourceDefinitions.Owned) > 0 && !x.IsCopied()
	case *corev1.Secret:
		return mayBePullSecret(x)
	case *apiregistrationv1.APIService, *v1alpha1.CatalogSource:
		// An APIService affects plans of every namespace in which a definition of its group is created. A CatalogSource may
		// allow the copy of a Secret to any namespace.
		return true
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		_, isKnown := kinds.Known[olmcore.GVKOf(o).Kind]
		return isKnown || x.GetNamespace() == ""
	}
	kind, _ := kinds.Find(olmcore.GVKOf(o))
	return !kind.Namespaced
}

// mayBePullSecret reports whether a plan of another namespace may copy a Secret: it contains registry credentials, or,
// as OLM allows it, any other content.
func mayBePullSecret(s *corev1.Secret) bool {
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg, corev1.SecretTypeOpaque, "":
		return true
	}
	return false
}
