// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Catalog contains the packages of one CatalogSource. It is read-only, because copies of a Catalog share the
// descriptions.
type Catalog struct {
	Source types.NamespacedName
	// Priority is the priority of the CatalogSource. If two catalogs contain the same package, the catalog with the higher
	// priority is preferred.
	Priority int
	// Packages contains the packages of the catalog, sorted by name.
	Packages []PackageManifest
}

// Visible returns the packages of the catalogs in namespace and in the namespace global. It sets metadata.namespace of
// each package to namespace. The packages are sorted by name. Packages with the same name are sorted in this order:
//   - packages of catalogs in namespace come first
//   - then packages of catalogs with a higher priority
//   - then by the namespace and the name of the catalog
//
// If namespace is empty, Visible returns all packages, each with the namespace of its catalog. The result shares memory
// with the catalogs.
func Visible(catalogs []Catalog, namespace, global string) []PackageManifest {
	var own, others []Catalog
	for _, c := range catalogs {
		switch c.Source.Namespace {
		case namespace:
			own = append(own, c)
		case global:
			others = append(others, c)
		default:
			if namespace == "" {
				others = append(others, c)
			}
		}
	}
	slices.SortFunc(own, compareCatalogs)
	slices.SortFunc(others, compareCatalogs)
	var all []PackageManifest
	for _, c := range slices.Concat(own, others) {
		all = append(all, c.Packages...)
	}
	slices.SortStableFunc(all, func(a, b PackageManifest) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Namespace = cmp.Or(namespace, all[i].Namespace)
	}
	return all
}

// compareCatalogs sorts catalogs by priority, the highest first, then by namespace and name.
func compareCatalogs(a, b Catalog) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.Source.Namespace, b.Source.Namespace),
		cmp.Compare(a.Source.Name, b.Source.Name))
}
