// SPDX-License-Identifier: Apache-2.0

// Package packages describes what a catalog offers to users. It generates the content of `kubectl get
// packagemanifests` from a catalog, in the JSON form of OLM's packages.operators.coreos.com/v1.
//
//	content, _, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	catalog, diagnostics := packages.Describe(source, content)
//	for _, m := range packages.Visible([]packages.Catalog{catalog}, "operators", "olm") { ... }
//
// As in OLM, only the heads of channels are described. The description is taken from the head's ClusterServiceVersion
// or from its property olm.csv.metadata, and the icon and description of the package are added. For all other bundles,
// only the name, the version and the deprecation are kept. These descriptions make a catalog large. To keep only those
// of the heads, read the catalog twice, the second time with the Heads of the first.
//
//	small := fbc.Options{OmitProperties: []string{resolution.PropertyCSVMetadata, resolution.PropertyBundleObject}}
//	content, _, err := fbc.Load(fsys, ".", small)
//	small.OmitNothingOf = packages.Heads(content)
//	content, _, err = fbc.Load(fsys, ".", small)
//
// To read a catalog piece by piece, use a Describer. It needs only one head in memory at a time:
//
//	var d packages.Describer
//	pending := d.Begin(p)
//	for _, head := range pending.Heads() {
//		pending.Describe(...) // the bundle of that name, with the properties that describe it
//	}
//	manifest, diagnostics := pending.End()
//
// Catalogs are untrusted input. Content that cannot be used is left out and reported as a Diagnostic. The size of what
// is kept of a head, an icon and a catalog is limited.
package packages
