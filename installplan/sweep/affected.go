// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/manifest"
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

// Concerned returns the test for the InstallPlans whose namespace a change of a cluster-scoped object concerns, for which
// Affected, which knows no plan, returns the key of all: those with a step for it or for a kind that it defines.
func Concerned(o olmcore.Object) func(*v1alpha1.InstallPlan) bool {
	key := olmcore.KeyOf(o)
	crd, defines := o.(*apiextensionsv1.CustomResourceDefinition)
	isFor := func(s *v1alpha1.Step, namespace string) bool {
		if defines && manifest.NeedsDefinition(s) && s.Resource.Kind == crd.Spec.Names.Kind {
			return true
		}
		for have := range objectsOf(s, namespace, nil) {
			if have == key {
				return true
			}
			if !strings.Contains(s.Resource.Manifest, key.Name) {
				return false // nor has the manifest this name
			}
		}
		return false
	}
	return func(p *v1alpha1.InstallPlan) bool {
		return slices.ContainsFunc(p.Status.Plan, func(s *v1alpha1.Step) bool { return leavesObject(s) && isFor(s, p.Namespace) })
	}
}
