// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the namespaces that must be swept when an object was added, changed or deleted, as keys without a
// name; the zero key means all. A plan also counts in the namespaces of the unpacked bundles that it refers to.
func Affected(o olmcore.Object) []types.NamespacedName {
	keys := installplan.Affected(o)
	switch x := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		for i := range keys {
			keys[i].Namespace = x.Namespace
		}
	case *v1alpha1.InstallPlan:
		if x != nil {
			keys = slices.AppendSeq(keys, maps.Keys(bundle.Needed(x)))
		}
	}
	for i := range keys {
		keys[i].Name = ""
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.Namespace, b.Namespace) })
	return slices.Compact(keys)
}
