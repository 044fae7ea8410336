// SPDX-License-Identifier: Apache-2.0

package olmconfig

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/copied"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the OLMConfigs whose outcome may change when o is added, updated or deleted. For an
// update, call it for the old and the new object, and use the keys of both calls.
//
// A ClusterServiceVersion counts only if its annotation says that it watches all namespaces, because the condition is
// about no others. Copies do not count, because there are as many as operators times namespaces, and every change would
// require reading all of them. Instead, Reconcile requests a retry after CopiesPace until all copies are as the
// OLMConfig requires. Afterwards the caller reconciles every LookAgain.
func Affected(o olmcore.Object) []types.NamespacedName {
	counts := []types.NamespacedName{{Name: copied.ConfigName}}
	switch o := o.(type) {
	case *operatorsv1.OLMConfig:
		return []types.NamespacedName{{Name: o.Name}}
	case *v1alpha1.ClusterServiceVersion:
		if o == nil || o.IsCopied() {
			return nil
		}
		if targets, _ := group.AnnotatedTargets(o); targets.All() {
			return counts
		}
	case *operatorsv1.OperatorGroup, *corev1.Namespace:
		return counts
	}
	return nil
}
