// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Catalog is what one CatalogSource has to offer. It is read-only once made; its copies share the descriptions.
type Catalog struct {
	Source types.NamespacedName
	// Priority is that of the CatalogSource: where two catalogs have a package, the higher one is resolved from.
	Priority int
	// Packages are sorted by name.
	Packages []PackageManifest
}

// Visible returns the packages that a namespace sees: those of its own catalogs and those of the global namespace, all
// with its namespace. They are sorted by name; of one name those of its own catalogs come first, then those of a higher
// priority, then by the catalog's namespace and name. For namespace "" it returns all packages, each with the namespace
// of its catalog. What the packages point to is shared with the catalogs.
func Visible(catalogs []Catalog, namespace, global string) []PackageManifest {
	var seen []Catalog
	for _, c := range catalogs {
		if own := c.Source.Namespace; namespace == "" || own == namespace || own == global {
			seen = append(seen, c)
		}
	}
	slices.SortFunc(seen, func(a, b Catalog) int {
		return cmp.Or(
			foremost(a.Source.Namespace == namespace, b.Source.Namespace == namespace),
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Source.Namespace, b.Source.Namespace),
			cmp.Compare(a.Source.Name, b.Source.Name))
	})
	var all []PackageManifest
	for _, c := range seen {
		all = append(all, c.Packages...)
	}
	slices.SortStableFunc(all, func(a, b PackageManifest) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Namespace = cmp.Or(namespace, all[i].Namespace)
	}
	return all
}

func foremost(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
