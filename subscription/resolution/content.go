// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// What a catalog holds, as its author wrote it.
type (
	// Package is one package of a catalog: the input of Build, the output of fbc.Load. Nothing in it needs to be
	// valid.
	Package = content.Package
	// Channel is one stream of upgrades of a Package, ChannelEntry a bundle's place in it.
	Channel      = content.Channel
	ChannelEntry = content.ChannelEntry
	// Bundle is one version of an operator, RelatedImage an image that it uses.
	Bundle       = content.Bundle
	RelatedImage = content.RelatedImage
	// Deprecation is a message about a package, a channel or a bundle.
	Deprecation = content.Deprecation
)

// Catalog is the content of one catalog, indexed for Resolve. It never changes: any number of calls may use it at the
// same time.
type Catalog = content.Catalog

// Build indexes the content of one catalog. What is unusable is left out or marked, with a Diagnostic whose Path
// names package, channel and bundle, and the rest works. Build panics on no input. It keeps references into packages,
// which must not be changed any more.
//
// Source: operator-registry alpha/declcfg, ConvertToModel, and alpha/model, Validate.
// Differs: one broken package does not take the whole catalog down.
func Build(packages []Package) (*Catalog, []olmcore.Diagnostic) { return content.Build(packages) }

// Types of properties that resolution reads. All others are carried along.
const (
	PropertyPackage         = content.PropertyPackage
	PropertyPackageRequired = content.PropertyPackageRequired
	PropertyGVK             = content.PropertyGVK
	PropertyGVKRequired     = content.PropertyGVKRequired
	PropertyConstraint      = content.PropertyConstraint
	PropertyLabel           = content.PropertyLabel
	PropertyLabelRequired   = content.PropertyLabelRequired
	PropertyDeprecated      = content.PropertyDeprecated
	PropertyBundleObject    = content.PropertyBundleObject
	PropertyCSVMetadata     = content.PropertyCSVMetadata
)
