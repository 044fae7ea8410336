// SPDX-License-Identifier: Apache-2.0

package bundle

// Reasons of Diagnostics. The packages that hand them out have constants of their
// own for them, which say what the user does.
const (
	ReasonBundleInvalid         = "BundleInvalid"
	ReasonBundleNotUnpacked     = "BundleNotUnpacked"
	ReasonManifestSkipped       = "ManifestSkipped"
	ReasonExtraDocumentsIgnored = "ExtraDocumentsIgnored"
	ReasonKeyCase               = "KeyCase"
)
