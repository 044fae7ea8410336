// SPDX-License-Identifier: Apache-2.0

package unpack

import "github.com/olmcore/olm/installplan/internal/report"

// Reasons of actions, with nothing to do for the user.
const (
	// ReasonObjectAbsent means that a missing object that unpacks a bundle is created. Nothing to do.
	ReasonObjectAbsent = "UnpackObjectAbsent"
	// ReasonObjectDiffers means that an object that unpacks a bundle is corrected, or deleted to be created again.
	// Nothing to do.
	ReasonObjectDiffers = "UnpackObjectDiffers"
	// ReasonRetried means that unpacking a bundle failed and is retried. Nothing to do.
	ReasonRetried = "UnpackRetried"
	// ReasonHistory means that a Job of an earlier try is deleted. Nothing to do.
	ReasonHistory = "UnpackHistory"
)

// Reasons of diagnostics and conditions.
const (
	// ReasonSettingInvalid means that an annotation of the OperatorGroup is not a duration, so the default is used.
	// Correct the annotation.
	ReasonSettingInvalid = "UnpackSettingInvalid"
	// ReasonImageUnavailable means that the image of the bundle cannot be pulled. Check the name of the image, the
	// mirrors, and the secrets of the CatalogSource.
	ReasonImageUnavailable = "UnpackImageUnavailable"
	// ReasonNameTaken means that an unmanaged object has the name of an object that unpacks the bundle. Delete it.
	ReasonNameTaken = "UnpackNameTaken"
	// ReasonBundleEmpty means that the Job succeeded, but its ConfigMap has no valid ClusterServiceVersion. The message
	// contains the name of the file and the error, if there is such a file. Ask the author to correct the bundle.
	ReasonBundleEmpty = "BundleEmpty"
	// ReasonBundleInvalid means that the bundle cannot be installed. The message contains the problem. Ask the author
	// to correct the bundle.
	ReasonBundleInvalid = report.BundleInvalid
	// ReasonManifestSkipped means that a file of a bundle cannot be parsed, so its object is not installed. Ask the
	// author to correct the bundle.
	ReasonManifestSkipped = report.ManifestSkipped
	// ReasonExtraDocumentsIgnored means that a file of a bundle contains several YAML documents. Only the first one is
	// installed. Ask the author to split the file.
	ReasonExtraDocumentsIgnored = report.ExtraDocumentsIgnored
	// ReasonKeyCase means that a manifest spells a key in another case than the API. OLM accepts such a key, except in
	// a CustomResourceDefinition, but an API server would not. Ask the author to correct the bundle.
	ReasonKeyCase = report.KeyCase
)
