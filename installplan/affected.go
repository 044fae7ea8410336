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

// Affected returns the plans whose decision an object may change when it is added, changed or deleted: a plan itself,
// else the plans of a namespace (empty Name) or all plans (zero key); see olmcore.ExpandKeys. Objects of kinds that no
// step of a default Config can have and no rule looks at give none. Who else is recorded alongside a
// CustomResourceDefinition is looked at when that is written, and is no reason to look again; nor is another plan that
// refers to a bundle which a deleted plan would take along.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil
	}
	isEverywhere := false
	switch x := o.(type) {
	case *v1alpha1.InstallPlan:
		return []types.NamespacedName{{Namespace: x.Namespace}, {Namespace: x.Namespace, Name: x.Name}}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: x.Name}}
	case *operatorsv1.OperatorGroup:
	case *corev1.ConfigMap:
		isEverywhere = bundle.IsUnpacked(x) // plans of any namespace refer to it
	case *v1alpha1.ClusterServiceVersion:
		// One that owns CustomResourceDefinitions counts wherever they are installed.
		isEverywhere = len(x.Spec.CustomResourceDefinitions.Owned) > 0 && !x.IsCopied()
	case *corev1.Secret:
		// One that holds registry credentials may be copied to any namespace, any one by OLM's way.
		isEverywhere = x.Type == corev1.SecretTypeDockerConfigJson || x.Type == corev1.SecretTypeDockercfg || x.Type == corev1.SecretTypeOpaque || x.Type == ""
	case *apiregistrationv1.APIService:
		// It counts wherever a CustomResourceDefinition of its group is created, unless it follows definitions.
		if apigroup.FollowsDefinitions(x) {
			return nil
		}
		isEverywhere = true
	case *v1alpha1.CatalogSource:
		if len(x.Spec.Secrets) == 0 {
			return nil
		}
		isEverywhere = true // it may be the one that allows a copy
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		_, known := kinds.Known[olmcore.GVKOf(o).Kind]
		isEverywhere = known || x.GetNamespace() == ""
	default:
		k, served := kinds.Of(olmcore.GVKOf(o))
		if !served {
			return nil
		}
		isEverywhere = !k.Namespaced
	}
	if isEverywhere {
		return []types.NamespacedName{{}}
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace()}}
}
