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

type packageJSON struct {
	Schema         string             `json:"schema"`
	Name           string             `json:"name"`
	DefaultChannel string             `json:"defaultChannel"`
	Properties     []olmcore.Property `json:"properties,omitempty"`
}

type channelJSON struct {
	Schema     string                    `json:"schema"`
	Package    string                    `json:"package"`
	Name       string                    `json:"name"`
	Entries    []resolution.ChannelEntry `json:"entries"`
	Properties []olmcore.Property        `json:"properties,omitempty"`
}

type bundleJSON struct {
	Schema        string                    `json:"schema"`
	Package       string                    `json:"package"`
	Name          string                    `json:"name"`
	Image         string                    `json:"image,omitempty"`
	Properties    []olmcore.Property        `json:"properties,omitempty"`
	RelatedImages []resolution.RelatedImage `json:"relatedImages,omitempty"`
}

type deprecationsJSON struct {
	Schema  string             `json:"schema"`
	Package string             `json:"package"`
	Entries []deprecationEntry `json:"entries"`
}

// Write writes packages as JSON documents, one a line, that Read turns into the
// same packages. Packages, channels and bundles are sorted by name, so that
// equal content gives equal bytes. Objects of bundles are not written; the
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

func documents(p *resolution.Package) []any {
	list := []any{packageJSON{schemaPackage, p.Name, p.DefaultChannel, p.Properties}}
	channels := slices.SortedStableFunc(slices.Values(p.Channels), func(a, b resolution.Channel) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range channels {
		list = append(list, channelJSON{schemaChannel, p.Name, c.Name, c.Entries, c.Properties})
	}
	bundles := slices.SortedStableFunc(slices.Values(p.Bundles), func(a, b resolution.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	for _, b := range bundles {
		list = append(list, bundleJSON{schemaBundle, p.Name, b.Name, b.Image, b.Properties, b.RelatedImages})
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
	return append(list, deprecationsJSON{schemaDeprecations, p.Name, entries})
}
