// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// written is a document of any schema as Write writes it.
type written struct {
	Schema         string                    `json:"schema"`
	Package        string                    `json:"package,omitempty"`
	Name           string                    `json:"name,omitempty"`
	DefaultChannel string                    `json:"defaultChannel,omitempty"`
	Image          string                    `json:"image,omitempty"`
	Entries        any                       `json:"entries,omitempty"`
	Properties     []olmcore.Property        `json:"properties,omitempty"`
	RelatedImages  []resolution.RelatedImage `json:"relatedImages,omitempty"`
}

// Write writes packages as JSON documents, one a line, that Read turns into the same packages. Packages, channels and
// bundles are sorted by name, so that equal content gives equal bytes. Objects of bundles are not written; the
// properties that carry them are.
func Write(w io.Writer, packages []resolution.Package) error {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false) // version ranges are to be read by people, too
	sorted := slices.SortedStableFunc(slices.Values(packages), func(a, b resolution.Package) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		for _, document := range documents(&sorted[i]) {
			if err := encoder.Encode(document); err != nil {
				return err
			}
		}
	}
	return buffered.Flush()
}

func documents(p *resolution.Package) []written {
	list := []written{{Schema: schemaPackage, Name: p.Name, DefaultChannel: p.DefaultChannel, Properties: p.Properties}}
	channels := slices.SortedStableFunc(slices.Values(p.Channels), func(a, b resolution.Channel) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range channels {
		list = append(list, written{Schema: schemaChannel, Package: p.Name, Name: c.Name, Entries: c.Entries, Properties: c.Properties})
	}
	bundles := slices.SortedStableFunc(slices.Values(p.Bundles), func(a, b resolution.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	for _, b := range bundles {
		list = append(list, written{Schema: schemaBundle, Package: p.Name, Name: b.Name, Image: b.Image, Properties: b.Properties, RelatedImages: b.RelatedImages})
	}
	if len(p.Deprecations) == 0 {
		return list
	}
	entries := make([]deprecationEntry, len(p.Deprecations))
	for i, d := range p.Deprecations {
		e := &entries[i]
		e.Message = d.Message
		switch {
		case d.Bundle != "":
			e.Reference.Schema, e.Reference.Name = schemaBundle, d.Bundle
		case d.Channel != "":
			e.Reference.Schema, e.Reference.Name = schemaChannel, d.Channel
		default:
			e.Reference.Schema = schemaPackage
		}
	}
	return append(list, written{Schema: schemaDeprecations, Package: p.Name, Entries: entries})
}
