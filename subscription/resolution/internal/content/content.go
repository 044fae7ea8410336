// SPDX-License-Identifier: Apache-2.0

// Package content is what a catalog holds: as its author wrote it, parsed, and indexed for who looks for a bundle.
package content

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Package is one package of a catalog as its author wrote it. Nothing in it needs to be valid.
type Package struct {
	Name           string
	DefaultChannel string
	// Description and Icon are for user interfaces; resolution does not look at them. An icon's data is base64.
	Description  string
	Icon         v1alpha1.Icon
	Properties   []olmcore.Property
	Channels     []Channel
	Bundles      []Bundle
	Deprecations []Deprecation
}

// Channel is one stream of upgrades. The edges of the upgrade graph live in its entries, not in the bundles.
type Channel struct {
	Name       string
	Entries    []ChannelEntry
	Properties []olmcore.Property
}

// ChannelEntry is a bundle's place in a channel.
type ChannelEntry struct {
	// Name is the bundle's, that is the name of its ClusterServiceVersion.
	Name string `json:"name,omitempty"`
	// Replaces and Skips are names of entries that this one upgrades from; those in Skips are also taken out of the
	// channel.
	Replaces string   `json:"replaces,omitempty"`
	Skips    []string `json:"skips,omitempty"`
	// SkipRange is a version range; every version in it upgrades to this entry.
	SkipRange string `json:"skipRange,omitempty"`
}

// Bundle is one version of an operator. Objects are the inline manifests; where there are none, they are taken from
// properties of type olm.bundle.object.
type Bundle struct {
	Name string
	olmcore.Bundle
	// RelatedImages are kept for the reader; resolution does not look at them.
	RelatedImages []RelatedImage
}

// RelatedImage is an image that a bundle's operator uses.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Deprecation is a message about a package (both other fields empty), a channel or a bundle. It never changes what is
// chosen.
type Deprecation struct {
	Channel, Bundle string
	Message         string
}

// Property types that resolution reads. All others are carried along.
const (
	PropertyPackage         = "olm.package"
	PropertyPackageRequired = "olm.package.required"
	PropertyGVK             = "olm.gvk"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyConstraint      = "olm.constraint"
	PropertyLabel           = "olm.label"
	PropertyLabelRequired   = "olm.label.required"
	PropertyDeprecated      = "olm.deprecated"
	// PropertyBundleObject holds an inline manifest, PropertyCSVMetadata a summary for user interfaces. Neither
	// reaches an installed ClusterServiceVersion.
	PropertyBundleObject = "olm.bundle.object"
	PropertyCSVMetadata  = "olm.csv.metadata"
)

// Diagnostic reasons; package resolution says what they mean.
const (
	ReasonInvalidContent         = "InvalidContent"
	ReasonDuplicateContent       = "DuplicateContent"
	ReasonInvalidBundle          = "InvalidBundle"
	ReasonMalformedChannel       = "MalformedChannel"
	ReasonSkippedObject          = "SkippedObject"
	ReasonCatalogUnavailable     = "CatalogUnavailable"
	ReasonStaleCatalog           = "StaleCatalog"
	ReasonInstalledCSVMissing    = "InstalledCSVMissing"
	ReasonUnreadableCSV          = "UnreadableCSV"
	ReasonBrokenReplacementChain = "BrokenReplacementChain"
	ReasonInvalidPin             = "InvalidPin"
	ReasonUnknownExclusion       = "UnknownExclusion"
	ReasonMissingCSV             = "MissingCSV"
	ReasonNameCollision          = "NameCollision"
	ReasonInstallModeUnsupported = "InstallModeUnsupported"
)
