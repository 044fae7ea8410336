// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namedVersions returns the ClusterServiceVersions that steps describe, resolve
// to or name as owners, and those that definitions record. all: any may count.
func namedVersions(plan *v1alpha1.InstallPlan, crds []*apiextensionsv1.CustomResourceDefinition, bundles []*corev1.ConfigMap) (names map[string]bool, all bool) {
	names, all = map[string]bool{}, nameVersions(bundles)
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		if s.Resource.Kind == kindCSV {
			names[s.Resource.Name] = true
			names[identify(s.Resource.Manifest).Metadata.Name] = true
			all = all || !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resource.Name)
		}
		names[s.Resolving] = true
		if _, ok := parseBundleRef(s.Resource.Manifest); !ok && strings.Contains(s.Resource.Manifest, "ownerReferences") {
			if m, err := parseManifest(s.Resource.Manifest); err == nil {
				for _, r := range manifestOwners(m) {
					names[r.Name] = true
				}
			}
		}
	}
	for _, crd := range crds {
		all = all || crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
		for key, value := range crd.Annotations {
			if namespace, name, _ := strings.Cut(value, "/"); namespace == plan.Namespace && strings.HasPrefix(key, alongsidePrefix) {
				names[name] = true
			}
		}
	}
	for _, s := range plan.Status.Plan {
		if s != nil && s.Resource.Kind == kindCRD && strings.Contains(s.Resource.Manifest, alongsidePrefix) {
			all = true
		}
	}
	delete(names, "")
	return names, all
}

// nameVersions reports whether what was unpacked may name versions of its own: as
// owners, or as installed alongside a definition. What is too much to look at
// may.
func nameVersions(bundles []*corev1.ConfigMap) bool {
	inflated := 0
	for _, cm := range bundles {
		files, err := bundle.FilesOf(cm)
		if err != nil {
			continue // nothing is made of it
		}
		if inflated += files.Size(); inflated > maxInflatedBytes {
			return true
		}
		for _, data := range files {
			if bytes.Contains(data, []byte("ownerReferences")) || bytes.Contains(data, []byte(alongsidePrefix)) {
				return true
			}
		}
	}
	return false
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// gvkOf returns the kind that a step's manifest describes.
func gvkOf(s *v1alpha1.Step) schema.GroupVersionKind {
	if id := identify(s.Resource.Manifest); id.Kind != "" {
		return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
	}
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}
