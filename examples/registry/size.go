// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// What content takes in memory beside its bytes, once it is indexed: measured, and a little more. A text, a value or a
// range counts once, however often a catalog has it.
const (
	packageSize     = 500
	channelSize     = 500
	bundleSize      = 500
	entrySize       = 200
	skipSize        = 16
	textSize        = 32
	deprecationSize = 64
	propertySize    = 56
	// providedSize is that of a property besides when it is an API or a label, requirementSize that of a requirement,
	// partSize that of a part of a version, a range or a constraint.
	providedSize, requirementSize, partSize = 56, 200, 48
)

// grown is how much more memory the content takes since it was asked last.
func (a *assembly) grown() int64 {
	size := a.size
	a.size = 0
	return size
}

// propertiesSize is what the properties of a bundle take beside their values.
func propertiesSize(list []olmcore.Property) int64 {
	size := int64(len(list)) * propertySize
	for i := range list {
		if kind := list[i].Type; kind == resolution.PropertyGVK || kind == resolution.PropertyLabel {
			size += providedSize
		}
	}
	return size
}

// valueSize is what a value takes beside its bytes.
func valueSize(kind string, text []byte) int64 {
	switch kind {
	case resolution.PropertyGVK, resolution.PropertyLabel:
		return textSize + 2*providedSize
	case resolution.PropertyPackage:
		return textSize + partsOf(string(text))*partSize
	case resolution.PropertyGVKRequired, resolution.PropertyPackageRequired, resolution.PropertyLabelRequired, resolution.PropertyConstraint:
		// It is kept in a canonical form, too.
		return textSize + requirementSize + int64(len(text)) + partsOf(string(text))*partSize
	}
	return textSize
}

// partsOf counts what may begin another part of a version, a range or a JSON value.
func partsOf(text string) (count int64) {
	for i := range len(text) {
		if strings.IndexByte("{[,.+-| <>=!", text[i]) >= 0 {
			count++
		}
	}
	return count
}
