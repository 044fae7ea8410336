// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

const (
	annotationProperties = relation.Properties
	// maxBundles bounds the unpacked bundles that a plan may refer to.
	maxBundles = 100
	// maxInflatedBytes bounds the files of all bundles that a plan refers to.
	maxInflatedBytes = 256 << 20
)

func sortedByName[T olmcore.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// bundleContent is what a ConfigMap holds.
type bundleContent struct {
	bundle olmcore.Bundle
	digest string
	err    error
}

func contentOf(cm *corev1.ConfigMap, files bundle.Files) bundleContent {
	c := bundle.ContentOf(cm, files)
	return bundleContent{bundle: c.Bundle, digest: c.Digest}
}

func lastCSV(b olmcore.Bundle) string { return bundle.Content{Bundle: b}.Version() }

func needs(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool { return relation.Needs(s, p) }

func parseProperties(text string) ([]olmcore.Property, error) { return bundle.DecodeProperties(text) }

func notUnpackedAt(now time.Time) []v1alpha1.BundleLookupCondition {
	return bundle.Again(v1alpha1.BundleLookup{}, now).Conditions
}

// mayRefer reports whether plans of a namespace may be made of what was unpacked
// in another: in their own, where their catalogs are, and where those are that
// all namespaces see.
func (c Config) mayRefer(plan, bundle string) bool {
	return bundle == plan || bundle == cmp.Or(c.GlobalNamespace, c.OLMNamespace, DefaultOLMNamespace)
}

// ownBundles are the ConfigMaps that a plan refers to and may refer to.
func (c Config) ownBundles(plan *v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	own := bundle.Referred(plan)
	for key := range own {
		if !c.mayRefer(plan.Namespace, key.Namespace) {
			delete(own, key)
		}
	}
	return own
}

func bundlesOf(plan *v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	return bundle.Referred(plan)
}

// valuesOf is olmcore.ToMap for objects that a caller made by hand, whose
// untyped values may be of any Go type that encodes.
func valuesOf(object olmcore.Object) (map[string]any, error) { return bundle.Values(object) }
