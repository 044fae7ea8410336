// SPDX-License-Identifier: Apache-2.0

package copies

import "github.com/olmcore/olm/csv/internal/read"

// Reasons of this package's Causes. The reasons of deletions are listed in the order in which they are checked.
const (
	// ReasonCopyMissing means that a copy is created in a namespace that the operator watches. Nothing to do.
	ReasonCopyMissing = "CopyMissing"
	// ReasonCopyDiffers means that a copy is updated because its content differs from the original. Nothing to do.
	ReasonCopyDiffers = "CopyDiffers"
	// ReasonMarksDisagree means that a copy is deleted because its label olm.copiedFrom and its annotation
	// olm.operatorNamespace do not name the same namespace. If the namespace should have a copy, it is created again.
	// Nothing to do.
	ReasonMarksDisagree = "MarksDisagree"
	// ReasonSourceGone means that a copy is deleted because its original does not exist, is being deleted, or is a copy
	// itself. Nothing to do.
	ReasonSourceGone = "SourceGone"
	// ReasonSourceUncopiable means that a copy is deleted because the status of the original does not allow copies, for
	// example after an OperatorGroup conflict. Resolve the problem that the status of the original reports.
	ReasonSourceUncopiable = "SourceUncopiable"
	// ReasonNotWatched means that a copy is deleted because the operator does not watch its namespace. Nothing to do.
	ReasonNotWatched = "NotWatched"
	// ReasonDisabled means that the OLMConfig disables copies of operators that watch all namespaces. A copy is deleted,
	// or the Event that reports disabled copies is created. To enable copies, set features.disableCopiedCSVs of the
	// OLMConfig to false.
	ReasonDisabled = "CopiedCSVsDisabled"
	// ReasonStatusChanged means that the condition of the OLMConfig is updated. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonEnabled means that the Event about disabled copies is deleted because copies are enabled again. Nothing to
	// do.
	ReasonEnabled = "CopiedCSVsEnabled"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the copies that depend on it, or the condition of the
	// OLMConfig, stay as they are. Give the caller access to the kind in the message.
	ReasonNotObserved = read.ReasonNotObserved
	// ReasonNameTaken means that a namespace has a ClusterServiceVersion of the same name that is not a copy of the
	// original. The namespace gets no copy, so its users do not see the operator. Delete one of the two
	// ClusterServiceVersions.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused means that the API server rejected a write of a copied CSV. The write is retried with backoff.
	// Resolve the error in the message.
	ReasonRefused = "Refused"
	// ReasonNameIgnored means that an OLMConfig has another name than cluster, so the OLMConfig has no effect. Move its
	// settings to the OLMConfig named cluster, and delete the other one.
	ReasonNameIgnored = "NameIgnored"
	// ReasonUnmarked means that the status of a ClusterServiceVersion says that it is a copy, but its label and annotation
	// do not. The ClusterServiceVersion is not reconciled. Delete it, or reinstall the operator.
	ReasonUnmarked = "Unmarked"
)

// EventDisabledCopiedCSVs is the reason of the Event that reports disabled copies of an original.
const EventDisabledCopiedCSVs = "DisabledCopiedCSVs"
