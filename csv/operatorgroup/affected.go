// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the OperatorGroups whose outcome may change when o is added, updated or deleted. A key
// with an empty Name means all OperatorGroups of the Namespace. The zero key means all OperatorGroups of the cluster.
// See olmcore.ExpandKeys. For an update, call Affected for the old and the new object, and use the keys of both calls.
func Affected(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		owner, ok := olmcore.OwnerOf(o.Labels)
		if ok && owner.Kind == operatorsv1.OperatorGroupKind {
			return []types.NamespacedName{{Namespace: owner.Namespace, Name: owner.Name}}
		}
		if strings.HasPrefix(o.Name, roleNamePrefix) {
			return []types.NamespacedName{{}} // its owner labels were removed
		}
	case *operatorsv1.OperatorGroup, *corev1.ServiceAccount, *v1alpha1.ClusterServiceVersion:
		if strings.TrimSpace(o.GetNamespace()) != "" {
			return []types.NamespacedName{{Namespace: o.GetNamespace()}}
		}
	case *corev1.Namespace:
		return []types.NamespacedName{{}}
	}
	return nil
}
