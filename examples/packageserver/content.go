// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"maps"
	"slices"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// Content is what is served: the packages of CatalogSources that exist and whose content is known. The zero value is
// empty. Its methods may be called at any time, also while it is served; it must not be copied.
type Content struct {
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see.
	GlobalNamespace string
	// Changed, when set, hears of each CatalogSource that Follow learns about; one that is gone has no UID.
	Changed func(*v1alpha1.CatalogSource)

	mu sync.RWMutex
	// described is the content of CatalogSources, whether they exist or not.
	described map[types.NamespacedName]packages.Catalog
	sources   map[types.NamespacedName]*v1alpha1.CatalogSource
	// shown is what both have, with the icons that the subresource icon serves; listed is the same without icons, as get
	// and list return it.
	shown, listed map[types.NamespacedName]packages.Catalog
}

// Put takes the content of a CatalogSource, and returns what of it cannot be shown. Only the heads of channels are
// kept.
func (c *Content) Put(source types.NamespacedName, list []resolution.Package) []olmcore.Diagnostic {
	described, problems := packages.Describe(nil, list)
	c.PutCatalog(source, described)
	return problems
}

// PutCatalog takes the content of a CatalogSource that is described already. It may not change any more.
func (c *Content) PutCatalog(source types.NamespacedName, described packages.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set(&c.described, source, described)
	c.show(source)
}

// Drop forgets the content of a CatalogSource.
func (c *Content) Drop(source types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.described, source)
	c.show(source)
}

// Know takes a CatalogSource that is in the cluster, in its present form. It is not changed, and may not change.
func (c *Content) Know(source *v1alpha1.CatalogSource) {
	key := types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	set(&c.sources, key, source)
	c.show(key)
}

// Forget takes note that a CatalogSource is gone.
func (c *Content) Forget(source types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sources, source)
	c.show(source)
}

// show makes what is served of a CatalogSource.
func (c *Content) show(key types.NamespacedName) {
	delete(c.shown, key)
	delete(c.listed, key)
	described, known := c.described[key]
	if source := c.sources[key]; known && source != nil {
		shown := described.WithSource(source)
		set(&c.shown, key, shown)
		set(&c.listed, key, withoutIcons(shown))
	}
}

func set[T any](m *map[types.NamespacedName]T, key types.NamespacedName, value T) {
	if *m == nil {
		*m = map[types.NamespacedName]T{}
	}
	(*m)[key] = value
}

// withoutIcons returns the same packages without icons, which are most of what a list would have to carry.
func withoutIcons(c packages.Catalog) packages.Catalog {
	c.Packages = slices.Clone(c.Packages)
	for i := range c.Packages {
		channels := slices.Clone(c.Packages[i].Status.Channels)
		for j := range channels {
			head := *channels[j].CurrentCSVDesc
			head.Icon = nil
			channels[j].CurrentCSVDesc = &head
		}
		c.Packages[i].Status.Channels = channels
	}
	return c
}

// Packages returns what a namespace sees, "" for all, as lists show it. What it points to is shared.
func (c *Content) Packages(namespace string) []packages.PackageManifest {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return packages.Visible(slices.Collect(maps.Values(c.listed)), namespace, c.GlobalNamespace)
}

// find returns the first package of a name that a namespace sees, without its icons, nil when there is none.
func (c *Content) find(namespace, name string) *packages.PackageManifest {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.findIn(c.listed, namespace, name)
}

// findWithIcons returns what find does, with icons.
func (c *Content) findWithIcons(namespace, name string) *packages.PackageManifest {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.findIn(c.shown, namespace, name)
}

func (c *Content) findIn(catalogs map[types.NamespacedName]packages.Catalog, namespace, name string) *packages.PackageManifest {
	var having []packages.Catalog
	for _, catalog := range catalogs {
		if i := slices.IndexFunc(catalog.Packages, func(m packages.PackageManifest) bool { return m.Name == name }); i >= 0 {
			catalog.Packages = catalog.Packages[i : i+1 : i+1]
			having = append(having, catalog)
		}
	}
	if seen := packages.Visible(having, namespace, c.GlobalNamespace); len(seen) > 0 {
		return &seen[0]
	}
	return nil
}
