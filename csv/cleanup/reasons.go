// SPDX-License-Identifier: Apache-2.0

package cleanup

// Reasons of this package's Causes: why an action is asked for.
const (
	// ReasonCleanup: an object goes because its ClusterServiceVersion is being deleted. Nothing to do.
	ReasonCleanup = "Cleanup"
	// ReasonStatusChanged: the status says what is waited for. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonCopyReleased: a copied ClusterServiceVersion carries the finalizer, which only originals need. Nothing to
	// do.
	ReasonCopyReleased = "CopyReleased"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: a list that the cleanup needs was not read, so it waits. Give the caller access to the kind
	// that it names.
	ReasonNotObserved = "NotObserved"
	// ReasonCleanupStarted: cleanup has begun and holds the ClusterServiceVersion. Wait.
	ReasonCleanupStarted = "CleanupStarted"
	// ReasonCleanupComplete: nothing is left, the ClusterServiceVersion is released; also the reason of the action that
	// takes the finalizer off. Nothing to do.
	ReasonCleanupComplete = "CleanupComplete"
	// ReasonCleanupBlocked: something holds the ClusterServiceVersion that will not pass by itself: a stopped operator,
	// missing permissions, a finalizer. Repair it, or set the annotation AnnotationCleanup.
	ReasonCleanupBlocked = "CleanupBlocked"
	// ReasonCleanupSkipped: an object was left behind on purpose, or because it could not be deleted; the message says
	// why. Delete it yourself if it must go.
	ReasonCleanupSkipped = "CleanupSkipped"
	// ReasonHandedOver: a cluster-scoped object stays because another ClusterServiceVersion needs it, too; its owner
	// labels name that one from now on. Also the reason of the action. Nothing to do.
	ReasonHandedOver = "HandedOver"
	// ReasonBadOverride: the annotation AnnotationCleanup has a value that means nothing. Use OverrideSkipOperands or
	// OverrideAbandon.
	ReasonBadOverride = "BadOverride"
	// ReasonNameTooLong: the name fits no label value, so nothing can be labelled as belonging to the
	// ClusterServiceVersion. Clean up what it left by hand.
	ReasonNameTooLong = "NameTooLong"
)
