// SPDX-License-Identifier: Apache-2.0

package copies

// Reasons of this package's Causes: why an action is asked for. Those of deletions are in the order in which they are
// looked for.
const (
	// ReasonCopyMissing: a namespace that the operator watches has no copy. Nothing to do.
	ReasonCopyMissing = "CopyMissing"
	// ReasonCopyDiffers: a copy holds something else than its original. Nothing to do.
	ReasonCopyDiffers = "CopyDiffers"
	// ReasonMarksDisagree: the label olm.copiedFrom and the annotation olm.operatorNamespace of a copy do not name the
	// same namespace. Nothing to do: where it belongs it is made again.
	ReasonMarksDisagree = "MarksDisagree"
	// ReasonSourceGone: the original does not exist, is being deleted, or is a copy itself. Nothing to do.
	ReasonSourceGone = "SourceGone"
	// ReasonSourceUncopiable: the status of the original says that its operator may not run for others. See there.
	ReasonSourceUncopiable = "SourceUncopiable"
	// ReasonNotWatched: the operator does not watch the namespace of the copy. Nothing to do.
	ReasonNotWatched = "NotWatched"
	// ReasonDisabled: the OLMConfig disables copies of operators that watch all namespaces. To have them, set its
	// features.disableCopiedCSVs to false.
	ReasonDisabled = "CopiedCSVsDisabled"
	// ReasonEnabled: copies are not disabled any more. Nothing to do.
	ReasonEnabled = "CopiedCSVsEnabled"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: a list was not read, and what it would decide stays as it is. Give the caller access to the
	// kind that it names.
	ReasonNotObserved = "NotObserved"
	// ReasonNameTaken: a namespace that the operator watches has a ClusterServiceVersion of the same name that is no
	// copy of it, so its users do not see the operator. Delete one of the two.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused: the API server refuses a write of copies, for which they wait longer from time to time. See the
	// message.
	ReasonRefused = "Refused"
	// ReasonUnmarked: the status of a ClusterServiceVersion says that it is a copy, and its metadata does not, so
	// nothing is decided about it. Delete it, or install the operator anew.
	ReasonUnmarked = "Unmarked"
)

// EventDisabledCopiedCSVs is the reason of the Event on an original whose copies are disabled.
const EventDisabledCopiedCSVs = "DisabledCopiedCSVs"
