// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/subscription/resolution"
)

// Write writes packages as JSON documents, one per line. Read returns the same packages from these documents. Packages,
// channels and bundles are sorted by name, so equal content gives equal bytes. Write writes the properties that contain
// the Objects of a bundle, but not the Objects themselves.
func Write(w io.Writer, packages []resolution.Package) error {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false) // version ranges are to be read by people, too
	for _, p := range sorted(packages, func(p resolution.Package) string { return p.Name }) {
		for _, d := range documents(&p) {
			if err := encoder.Encode(d); err != nil {
				return err
			}
		}
	}
	return buffered.Flush()
}

func sorted[T any](list []T, name func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(name(a), name(b)) })
}

func documents(p *resolution.Package) []document {
	list := []document{
		{
			Schema:         schemaPackage,
			Name:           p.Name,
			DefaultChannel: p.DefaultChannel,
			Description:    ornament[string]{p.Description},
			Icon:           ornament[v1alpha1.Icon]{p.Icon},
			Properties:     p.Properties,
		},
	}
	for _, c := range sorted(p.Channels, func(c resolution.Channel) string { return c.Name }) {
		d := document{Schema: schemaChannel, Package: p.Name, Name: c.Name, Properties: c.Properties}
		for _, e := range c.Entries {
			d.Entries = append(d.Entries, entry{ChannelEntry: e})
		}
		list = append(list, d)
	}
	for _, b := range sorted(p.Bundles, func(b resolution.Bundle) string { return b.Name }) {
		list = append(
			list,
			document{Schema: schemaBundle, Package: p.Name, Name: b.Name, Image: b.Image, Properties: b.Properties, RelatedImages: b.RelatedImages},
		)
	}
	if len(p.Deprecations) == 0 {
		return list
	}
	d := document{Schema: schemaDeprecations, Package: p.Name}
	for _, about := range p.Deprecations {
		e := entry{deprecation: deprecation{Message: about.Message, Reference: reference{Schema: schemaPackage}}}
		switch {
		case about.Bundle != "":
			e.Reference = reference{schemaBundle, about.Bundle}
		case about.Channel != "":
			e.Reference = reference{schemaChannel, about.Channel}
		}
		d.Entries = append(d.Entries, e)
	}
	return append(list, d)
}
