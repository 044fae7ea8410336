// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the ClusterServiceVersions for which o's addition, change or deletion can change the
// outcome; an empty Name stands for every one of the Namespace, the zero key for every one (olmcore.ExpandKeys). Call it
// for the old and the new object and take both answers. An object of another that is in the way is looked at again
// after at most a minute.
func Affected(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		if from := o.Labels[olmcore.LabelCopiedFrom]; from != "" {
			return []types.NamespacedName{{Namespace: from, Name: o.Name}}
		}
		return inNamespace(o.Namespace, o.Name)
	case *operatorsv1.OperatorGroup, *corev1.ServiceAccount:
		return inNamespace(o.GetNamespace(), "")
	case *rbacv1.Role, *rbacv1.RoleBinding:
		owner, labelled := olmcore.OwnerOf(o.GetLabels())
		if from := o.GetLabels()[olmcore.LabelCopiedFrom]; from != "" && labelled {
			return []types.NamespacedName{{Namespace: from, Name: owner.Name}}
		}
		return inNamespace(o.GetNamespace(), "")
	case *rbacv1.ClusterRole, *apiregistrationv1.APIService:
		return []types.NamespacedName{{}} // whom it grants what, and whose group it shares, is not known from it
	case *rbacv1.ClusterRoleBinding:
		return affectedByBinding(o)
	case *apiextensionsv1.CustomResourceDefinition:
		keys := owned.Alongside(o)
		if owner, ok := olmcore.OwnerOf(o.Labels); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
			keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
		}
		return keys
	}
	return nil
}

func inNamespace(namespace, name string) []types.NamespacedName {
	if namespace == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}

// affectedByBinding: those that it was lifted for, and those whose ServiceAccounts it can mean.
func affectedByBinding(b *rbacv1.ClusterRoleBinding) []types.NamespacedName {
	namespaces, all := rbac.SubjectNamespaces(b.Subjects)
	if all {
		return []types.NamespacedName{{}}
	}
	var keys []types.NamespacedName
	if owner, ok := olmcore.OwnerOf(b.Labels); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
	}
	for _, n := range namespaces {
		keys = append(keys, types.NamespacedName{Namespace: n})
	}
	return keys
}
