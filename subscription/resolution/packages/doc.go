// SPDX-License-Identifier: Apache-2.0

// Package packages tells people what they could install: from the content of a catalog it makes what
// `kubectl get packagemanifests` shows, as values in the JSON form of OLM's packages.operators.coreos.com/v1.
//
//	content, _, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	catalog, diagnostics := packages.Describe(source, content)
//	for _, m := range packages.Visible([]packages.Catalog{catalog}, "operators", "olm") { ... }
//
// Only the heads of channels are described, as OLM does it: their ClusterServiceVersion, or the summary of it that a
// catalog has (olm.csv.metadata), beside the icon and the description of the package. Of all other bundles the name,
// the version and the deprecation are kept. A catalog is large because of these descriptions: who only wants the heads'
// reads it twice, the second time with Heads of the first.
//
//	small := fbc.Options{OmitProperties: []string{resolution.PropertyCSVMetadata, resolution.PropertyBundleObject}}
//	content, _, err := fbc.Load(fsys, ".", small)
//	small.OmitNothingOf = packages.Heads(content)
//	content, _, err = fbc.Load(fsys, ".", small)
//
// Who reads a catalog piece by piece has a Describer, which needs one head in memory at a time:
//
//	var d packages.Describer
//	pending := d.Begin(p)
//	for _, head := range pending.Heads() {
//		pending.Describe(...) // the bundle of that name, with what describes it
//	}
//	manifest, diagnostics := pending.End()
//
// Content is what anybody may have written. What cannot be used is left out and named by a Diagnostic; what is kept of
// a head, of an icon and of a catalog is bounded.
package packages
