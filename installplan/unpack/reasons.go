// SPDX-License-Identifier: Apache-2.0

package unpack

import "github.com/olmcore/olm/installplan/internal/report"

// Reasons of actions, with nothing to do for the user.
const (
	// ReasonObjectAbsent: an object that unpacks a bundle is missing.
	ReasonObjectAbsent = "UnpackObjectAbsent"
	// ReasonObjectDiffers: an object that unpacks a bundle is not as it should be.
	ReasonObjectDiffers = "UnpackObjectDiffers"
	// ReasonRetried: the bundle could not be unpacked some time ago and is tried again.
	ReasonRetried = "UnpackRetried"
	// ReasonHistory: a Job of an earlier try is deleted.
	ReasonHistory = "UnpackHistory"
)

// Reasons of diagnostics and conditions. Where they are about a bundle, its author corrects it.
const (
	// ReasonSettingInvalid: an annotation of the OperatorGroup is no duration, so the default counts. The user corrects it.
	ReasonSettingInvalid = "UnpackSettingInvalid"
	// ReasonImageUnavailable: the bundle's image cannot be pulled. The user checks its name, the mirrors and the
	// CatalogSource's secrets.
	ReasonImageUnavailable = "UnpackImageUnavailable"
	// ReasonNameTaken: an unmanaged object has the name of one that unpacks the bundle. The user removes it.
	ReasonNameTaken = "UnpackNameTaken"
	// ReasonBundleEmpty means that the Job ended well, and its ConfigMap has no ClusterServiceVersion that can be read. The message
	// names the file that contains one, and the error. The author of the bundle corrects it.
	ReasonBundleEmpty = "BundleEmpty"
	// ReasonBundleInvalid: the bundle cannot be installed; the message says why.
	ReasonBundleInvalid = report.BundleInvalid
	// ReasonManifestSkipped: a file of a bundle cannot be read and is left out.
	ReasonManifestSkipped = report.ManifestSkipped
	// ReasonExtraDocumentsIgnored: a file holds several YAML documents, of which the first one counts.
	ReasonExtraDocumentsIgnored = report.ExtraDocumentsIgnored
	// ReasonKeyCase: a manifest spells a key in another case than the API does. OLM reads it all the same, but for
	// CustomResourceDefinitions; an API server would not.
	ReasonKeyCase = report.KeyCase
)
