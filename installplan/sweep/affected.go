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
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the namespaces that must be swept after o is added, updated or deleted, as keys without a name. The
// zero key means all namespaces. An InstallPlan also affects the namespaces of the unpacked bundles that it references.
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

// Terms calls add with each term under which an index must contain the InstallPlan. The Terms of Concerned are looked
// up in that index.
func Terms(p *v1alpha1.InstallPlan, add func(olmcore.Term)) {
	for _, s := range p.Status.Plan {
		if !leavesObject(s) {
			continue
		}
		if bundle.NeedsDefinition(s) {
			add(ofKind(s.Resource.Kind))
		}
		key, served := kinds.KeyOf(s, p.Namespace, nil)
		if !served || key.Namespace != "" {
			continue // the object with the name in its manifest is not cluster-scoped either
		}
		for key := range objectsOf(s, p.Namespace, nil) {
			add(ofObject(key))
		}
	}
}

// ofKind returns the Term of the name of a kind.
func ofKind(name string) olmcore.Term { return olmcore.Term{Of: "kind", Value: name} }

// ofObject returns the Term of an object.
func ofObject(key olmcore.Key) olmcore.Term {
	return olmcore.Term{Of: key.Kind + "." + key.Group, Value: key.Name}
}

// Concerned selects the InstallPlans that a change of a cluster-scoped object affects. A plan is affected if it has a
// step for the object, or for a kind that the object defines. Use Concerned to select the namespaces to sweep if
// Affected returns the zero key. isConcerned reports whether the change affects a plan. terms contains the index terms
// of the plans that may be affected, see Terms.
func Concerned(o olmcore.Object) (isConcerned func(*v1alpha1.InstallPlan) bool, terms []olmcore.Term) {
	key := olmcore.KeyOf(o)
	terms = []olmcore.Term{ofObject(key)}
	crd, defines := o.(*apiextensionsv1.CustomResourceDefinition)
	if defines {
		terms = append(terms, ofKind(crd.Spec.Names.Kind))
	}
	isFor := func(s *v1alpha1.Step, namespace string) bool {
		if defines && bundle.NeedsDefinition(s) && s.Resource.Kind == crd.Spec.Names.Kind {
			return true
		}
		for have := range objectsOf(s, namespace, nil) {
			if have == key {
				return true
			}
			if !strings.Contains(s.Resource.Manifest, key.Name) {
				return false // the name in the manifest differs too
			}
		}
		return false
	}
	return func(p *v1alpha1.InstallPlan) bool {
		return slices.ContainsFunc(p.Status.Plan, func(s *v1alpha1.Step) bool { return leavesObject(s) && isFor(s, p.Namespace) })
	}, terms
}
