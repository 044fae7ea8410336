// SPDX-License-Identifier: Apache-2.0

package cleanup

// Reasons of this package's Causes.
const (
	// ReasonCleanup means that an object is deleted because its ClusterServiceVersion is being deleted. Nothing to do.
	ReasonCleanup = "Cleanup"
	// ReasonStatusChanged means that the status of the ClusterServiceVersion is updated with the objects that it waits
	// for. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonCopyReleased means that the finalizer is removed from a copied ClusterServiceVersion, because only
	// originals need it. Nothing to do.
	ReasonCopyReleased = "CopyReleased"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list that the cleanup needs was not read, so the cleanup waits. Give the caller
	// access to the kind in the message.
	ReasonNotObserved = "NotObserved"
	// ReasonCleanupStarted means that the cleanup has started. The ClusterServiceVersion exists until the cleanup is
	// complete. Wait for the cleanup.
	ReasonCleanupStarted = "CleanupStarted"
	// ReasonCleanupComplete means that the finalizer of the ClusterServiceVersion is removed, because the cleanup is
	// done, disabled or abandoned. Nothing to do.
	ReasonCleanupComplete = "CleanupComplete"
	// ReasonCleanupBlocked means that the cleanup cannot continue: the operator does not run, or the API server or a
	// webhook rejects a write. Repair the operator or the webhook, or set the annotation olmcore/csv-cleanup of the
	// ClusterServiceVersion to skip-operands or abandon.
	ReasonCleanupBlocked = "CleanupBlocked"
	// ReasonCleanupSkipped means that the cleanup kept an object on purpose, or could not delete it. The message contains
	// the reason. Delete the object yourself if it is not needed.
	ReasonCleanupSkipped = "CleanupSkipped"
	// ReasonHandedOver means that a cluster-scoped object is kept because another ClusterServiceVersion needs it too. The
	// owner labels of the object are changed to name that ClusterServiceVersion. Nothing to do.
	ReasonHandedOver = "HandedOver"
	// ReasonBadOverride means that the annotation olmcore/csv-cleanup has an unknown value. Set the annotation to
	// skip-operands or abandon, or remove the annotation.
	ReasonBadOverride = "BadOverride"
	// ReasonNameTooLong means that the name of the ClusterServiceVersion is too long for a label value, so no object has
	// its owner labels. Delete the remaining objects of the operator yourself.
	ReasonNameTooLong = "NameTooLong"
)
