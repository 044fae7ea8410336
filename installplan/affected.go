// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the plans whose decision an object may change when it is
// added, changed or deleted: a plan itself, else the plans of a namespace (empty
// Name) or all plans (zero key); see olmcore.ExpandKeys. Objects of kinds that no
// step of a default Config can have and no rule looks at give none. Who else is
// recorded alongside a CustomResourceDefinition is looked at when that is
// written, and is no reason to look again; nor is another plan that refers to a
// bundle which a deleted plan would take along.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil
	}
	namespace := []types.NamespacedName{{Namespace: o.GetNamespace()}}
	everywhere := []types.NamespacedName{{}}
	switch x := o.(type) {
	case *v1alpha1.InstallPlan:
		return []types.NamespacedName{{Namespace: x.Namespace, Name: x.Name}}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: x.Name}}
	case *operatorsv1.OperatorGroup:
		return namespace
	case *corev1.ConfigMap:
		if bundle.IsUnpacked(x) {
			return everywhere // plans of any namespace refer to it
		}
		return namespace
	case *v1alpha1.ClusterServiceVersion:
		// One that owns CustomResourceDefinitions counts wherever they are installed.
		if len(x.Spec.CustomResourceDefinitions.Owned) > 0 && !x.IsCopied() {
			return everywhere
		}
		return namespace
	case *corev1.Secret:
		// One that holds registry credentials may be copied to any namespace, any one
		// by OLM's way.
		if x.Type == corev1.SecretTypeDockerConfigJson || x.Type == corev1.SecretTypeDockercfg || x.Type == corev1.SecretTypeOpaque || x.Type == "" {
			return everywhere
		}
		return namespace
	case *v1alpha1.CatalogSource:
		if len(x.Spec.Secrets) > 0 {
			return everywhere // it may be the one that allows a copy
		}
		return nil
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if _, known := kinds.Known[olmcore.GVKOf(o).Kind]; known || x.GetNamespace() == "" {
			return everywhere
		}
		return namespace
	}
	switch k, served := kinds.Of(olmcore.GVKOf(o)); {
	case !served:
		return nil
	case k.Namespaced:
		return namespace
	}
	return everywhere
}
