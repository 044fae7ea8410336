// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Package is one package of a catalog as its author wrote it. Its content may be invalid.
type Package struct {
	Name           string
	DefaultChannel string
	// Description and Icon are for user interfaces. Resolution does not use them. The data of Icon is base64.
	Description  string
	Icon         v1alpha1.Icon
	Properties   []olmcore.Property
	Channels     []Channel
	Bundles      []Bundle
	Deprecations []Deprecation
}

// Channel is one channel of a package. The edges of the upgrade graph are in its entries, and not in the bundles.
type Channel struct {
	Name       string
	Entries    []ChannelEntry
	Properties []olmcore.Property
}

// ChannelEntry is a bundle in a channel.
type ChannelEntry struct {
	// Name is the name of the bundle, which is also the name of its ClusterServiceVersion.
	Name string `json:"name,omitempty"`
	// Replaces and Skips contain the names of the entries from which this entry upgrades. The entries in Skips are not
	// part of the Chain of the channel.
	Replaces string   `json:"replaces,omitempty"`
	Skips    []string `json:"skips,omitempty"`
	// SkipRange is a version range. This entry upgrades from every version in the range.
	SkipRange string `json:"skipRange,omitempty"`
}

// Bundle is one version of an operator. Objects contains the inline manifests. If Objects is empty, the manifests are
// taken from the properties of type olm.bundle.object.
type Bundle struct {
	Name string
	olmcore.Bundle
	// RelatedImages contains the images that the operator uses. Resolution does not use them.
	RelatedImages []RelatedImage
}

// RelatedImage is an image that the operator of a bundle uses.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Deprecation is the deprecation message of a channel, a bundle or a package. Channel or Bundle names the deprecated
// object. If both are empty, the package is deprecated. A deprecation message does not affect the resolution.
type Deprecation struct {
	Channel, Bundle string
	Message         string
}

// These are the property types that resolution reads. Other properties are passed on unchanged.
const (
	PropertyPackage         = "olm.package"
	PropertyPackageRequired = "olm.package.required"
	PropertyGVK             = "olm.gvk"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyConstraint      = "olm.constraint"
	PropertyLabel           = "olm.label"
	PropertyLabelRequired   = "olm.label.required"
	PropertyDeprecated      = "olm.deprecated"
	// PropertyBundleObject is the type of a property with an inline manifest. PropertyCSVMetadata is the type of a
	// property with a summary for user interfaces. Properties of these types are not copied to an installed
	// ClusterServiceVersion.
	PropertyBundleObject = "olm.bundle.object"
	PropertyCSVMetadata  = "olm.csv.metadata"
)
