// SPDX-License-Identifier: Apache-2.0

package sweep

// Reasons of this package's Diagnostics and Causes.
const (
	// ReasonOrphaned: an object belongs to a ClusterServiceVersion or an OperatorGroup that does not exist any more.
	// Delete it, or set Config.SweepDelete.
	ReasonOrphaned = "Orphaned"
	// ReasonNotObserved: a list was not read, so nothing is swept. Give the caller access to the kind that it names.
	ReasonNotObserved = "NotObserved"
)
