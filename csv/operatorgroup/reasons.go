// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"github.com/olmcore/olm/csv/internal/group"
)

// Reasons of this package's Causes: why an action is asked for.
const (
	// ReasonStatusChanged: the status follows what was observed. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonGroupChanged: labels or ClusterRoles follow the OperatorGroup. Nothing to do.
	ReasonGroupChanged = "GroupChanged"
	// ReasonProvidedAPIsChanged: the annotation of the OperatorGroup follows what its operators provide. Nothing to do.
	ReasonProvidedAPIsChanged = group.ReasonProvidedAPIsChanged
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: a list was not read, and what it would decide stays as it is. Give the caller access to the
	// kind that it names.
	ReasonNotObserved = "NotObserved"
	// ReasonInvalidTargets: the group lists the empty name among its target namespaces; its targets stay as they were.
	// To target all, list none.
	ReasonInvalidTargets = "InvalidTargets"
	// ReasonServiceAccountMissing: the ServiceAccount that the group prescribes does not exist, so nothing is installed
	// in its namespace. Create it.
	ReasonServiceAccountMissing = "ServiceAccountMissing"
)
