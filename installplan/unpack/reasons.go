// SPDX-License-Identifier: Apache-2.0

package unpack

import "github.com/olmcore/olm/installplan/internal/report"

// Reasons of actions, diagnostics and conditions.
const (
	// ReasonObjectAbsent: an object that unpacks a bundle is missing. Nothing to do for the user.
	ReasonObjectAbsent = "UnpackObjectAbsent"
	// ReasonObjectDiffers: an object that unpacks a bundle is not as it should be. Nothing to do for the user.
	ReasonObjectDiffers = "UnpackObjectDiffers"
	// ReasonRetried: the bundle could not be unpacked some time ago and is tried again. Nothing to do for the user.
	ReasonRetried = "UnpackRetried"
	// ReasonHistory: a Job of an earlier try is deleted. Nothing to do for the user.
	ReasonHistory = "UnpackHistory"
	// ReasonSettingInvalid: an annotation of the OperatorGroup is no duration; the default counts. The user corrects
	// it.
	ReasonSettingInvalid = "UnpackSettingInvalid"
	// ReasonImageUnavailable: the bundle's image cannot be pulled. The user checks its name, the mirrors and the
	// CatalogSource's secrets.
	ReasonImageUnavailable = "UnpackImageUnavailable"
	// ReasonNameTaken: an unmanaged object has the name of one that unpacks the bundle. The user removes it.
	ReasonNameTaken = "UnpackNameTaken"
	// ReasonBundleEmpty: the Job ended well and its ConfigMap holds no bundle. The author of the bundle corrects the
	// image.
	ReasonBundleEmpty = "BundleEmpty"
	// ReasonBundleInvalid: the bundle cannot be installed; the message says why. The author of the bundle corrects it.
	ReasonBundleInvalid = report.BundleInvalid
	// ReasonManifestSkipped: a file of a bundle cannot be read and is left out. The author of the bundle corrects it.
	ReasonManifestSkipped = report.ManifestSkipped
	// ReasonExtraDocumentsIgnored: a file holds several YAML documents, of which the first one counts. The author of
	// the bundle splits it.
	ReasonExtraDocumentsIgnored = report.ExtraDocumentsIgnored
	// ReasonKeyCase: a manifest spells a key in another case than the API does. OLM reads it all the same, but for
	// CustomResourceDefinitions; an API server would not. The author of the bundle corrects it.
	ReasonKeyCase = report.KeyCase
)
