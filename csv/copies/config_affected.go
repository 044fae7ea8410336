// SPDX-License-Identifier: Apache-2.0

package copies

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// AffectedConfigs returns the keys of the OLMConfigs whose outcome may change when o is added, updated or deleted. For
// an update, call it for the old and the new object, and use the keys of both calls.
//
// A ClusterServiceVersion affects an OLMConfig only if its operator watches all namespaces. AffectedConfigs returns no
// keys for copies, because each such change would require reading all copies. Instead, ReconcileConfig requests a retry
// after ten seconds until all copies are as the OLMConfig requires. From then on, the caller reconciles at the interval
// ConfigInterval.
func AffectedConfigs(o olmcore.Object) []types.NamespacedName {
	counts := []types.NamespacedName{{Name: model.OLMConfigName}}
	switch o := o.(type) {
	case *operatorsv1.OLMConfig:
		return []types.NamespacedName{{Name: o.Name}}
	case *v1alpha1.ClusterServiceVersion:
		if o == nil || o.IsCopied() {
			return nil
		}
		if targets, _ := model.AnnotatedTargets(o); targets.All() {
			return counts
		}
	case *operatorsv1.OperatorGroup, *corev1.Namespace:
		return counts
	}
	return nil
}
