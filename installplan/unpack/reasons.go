// SPDX-License-Identifier: Apache-2.0

package unpack

import "github.com/olmcore/olm/installplan/internal/reasons"

// Reasons of actions, with nothing to do for the user.
const (
	// ReasonObjectAbsent means that the Job that unpacks a bundle, or an object that the Job needs, does not exist and is
	// created. Nothing to do.
	ReasonObjectAbsent = "UnpackObjectAbsent"
	// ReasonObjectDiffers means that the Job that unpacks a bundle, or an object that the Job needs, differs from the
	// desired one. The object is updated, or deleted and created again. Nothing to do.
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
	// ReasonNameTaken means that the bundle cannot be unpacked, because an unmanaged object has a name that the unpack Job
	// or one of its objects needs. Delete the unmanaged object.
	ReasonNameTaken = "UnpackNameTaken"
	// ReasonBundleEmpty means that the Job succeeded, but its ConfigMap has no valid ClusterServiceVersion. If a file
	// contains an invalid one, the message contains the name of the file and the error. Ask the author to correct the
	// bundle.
	ReasonBundleEmpty = "BundleEmpty"
	// ReasonBundleInvalid means that the bundle cannot be installed. The message contains the problem. Ask the author
	// to correct the bundle.
	ReasonBundleInvalid = reasons.BundleInvalid
	// ReasonManifestSkipped means that a file of a bundle cannot be parsed, so its object is not installed. Ask the
	// author to correct the bundle.
	ReasonManifestSkipped = reasons.ManifestSkipped
	// ReasonExtraDocumentsIgnored means that a file of a bundle contains several YAML documents. Only the first one is
	// installed. Ask the author to split the file.
	ReasonExtraDocumentsIgnored = reasons.ExtraDocumentsIgnored
	// ReasonKeyCase means that a key of a manifest differs from the API field only in upper and lower case, for example
	// MinKubeVersion. OLM reads such a key as the field, except in CustomResourceDefinitions. An API server ignores it.
	// Ask the author of the bundle to correct the key.
	ReasonKeyCase = reasons.KeyCase
)
