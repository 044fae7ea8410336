// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

func TestUnreadListsAreReportedAndReadAgain(t *testing.T) {
	target := olmcore.Ref{Kind: "OperatorGroup", Namespace: "ns", Name: "og"}
	require.Equal(t, olmcore.Result{}, read.NotRead(nil, target, "", "nothing is decided"))
	require.Equal(t, olmcore.Result{
		Diagnostics: []olmcore.Diagnostic{{
			Severity: olmcore.Warning, Reason: read.ReasonNotObserved, Target: target, Path: "spec.serviceAccountName",
			Message: "the list of ServiceAccounts was not read, so nothing is decided",
		}},
		RequeueAfter: 5 * time.Second,
	}, read.NotRead([]string{"ServiceAccounts"}, target, "spec.serviceAccountName", "nothing is decided"))
}

func TestMessageNamesAllUnreadLists(t *testing.T) {
	for want, lists := range map[string][]string{
		"the list of Roles was not read, so no Role is written":                   {"Roles"},
		"the lists of Roles and Nodes were not read, so no Role is written":       {"Roles", "Nodes"},
		"the lists of Roles, Pods and Nodes were not read, so no Role is written": {"Roles", "Pods", "Nodes"},
	} {
		result := read.NotRead(lists, olmcore.Ref{}, "", "no Role is written")
		require.Equal(t, want, result.Diagnostics[0].Message)
	}
}
