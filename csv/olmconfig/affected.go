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

// Affected returns the keys of the OLMConfigs for which o's addition, change or deletion can change the outcome. Call
// it for the old and the new object and take both answers.
//
// Of ClusterServiceVersions those alone count whose annotation says that they watch all namespaces: the condition is
// about no other. Copies are not among what counts: there are as many as operators times namespaces, and each of their
// changes would have all of them looked at. Until the condition says that they are where they shall be they are looked
// at every CopiesPace; after that the caller asks now and then, each LookAgain.
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
