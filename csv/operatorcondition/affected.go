// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys whose outcome may change when o is added, updated or deleted. For an update, call it for
// the old and the new object, and use the keys of both calls. Affected returns a key for every Role and RoleBinding,
// because their owners do not matter. For most of these keys, Gather returns an error for which apierrors.IsNotFound
// reports true.
func Affected(o olmcore.Object) []types.NamespacedName {
	var key types.NamespacedName
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		if o.IsCopied() {
			return nil // a copy has no OperatorCondition
		}
		key = types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	case *operatorsv2.OperatorCondition, *rbacv1.Role, *rbacv1.RoleBinding:
		key = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	case *appsv1.Deployment:
		owner, labelled := model.LabelledOwner(o)
		if !labelled || owner.Namespace != o.Namespace {
			return nil
		}
		key = owner
	}
	if strings.TrimSpace(key.Namespace) == "" || key.Name == "" {
		return nil
	}
	return []types.NamespacedName{key}
}
