// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// partial keeps the objects of some kinds of a dump, one a line.
func partial(dump string, kinds ...string) string {
	var kept []string
	for _, line := range strings.Split(dump, "\n") {
		for _, kind := range kinds {
			if strings.Contains(line, `"kind":"`+kind+`","metadata"`) {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "\n")
}

func reportOf(t *testing.T, stdin string, args ...string) report {
	t.Helper()
	code, out, errs := runDry(t, stdin, append(args, "--output", "json")...)
	require.Zero(t, code, errs)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

// TestNothingIsConcludedFromKindsThatAreNotInTheInput: of a healthy operator whose
// Deployment, roles and the like were not exported nothing bad is said.
func TestNothingIsConcludedFromKindsThatAreNotInTheInput(t *testing.T) {
	dump := largeCluster(tenantObjects)
	input := partial(dump, "Subscription", "InstallPlan", "ClusterServiceVersion")
	r := reportOf(t, input)
	require.NotEmpty(t, r.NotRead)
	seen := map[string]bool{}
	for _, k := range r.NotRead {
		require.False(t, seen[k.Resource], "%s is named twice", k.Resource)
		require.NotEmpty(t, k.Unknown)
		seen[k.Resource] = true
	}
	require.True(t, seen["deployments"] && seen["operatorgroups.operators.coreos.com"], seen)
	for _, found := range r.Results {
		if found.Kind != "ClusterServiceVersion" {
			continue
		}
		require.Empty(t, found.Transitions, found.Name)
		for _, a := range found.Actions {
			require.NotEqual(t, olmcore.VerbUpdateStatus, a.Verb, found.Name)
		}
		require.Equal(t, "Succeeded", found.Status.(map[string]any)["phase"])
	}

	_, text, _ := runDry(t, input)
	for _, k := range r.NotRead {
		require.Equal(t, 1, strings.Count(text, "\n  "+k.Resource+" "), "%s in\n%s", k.Resource, text)
	}

	require.Empty(t, reportOf(t, dump, "--complete").NotRead)
}

// TestNothingIsResolvedWithoutWhatIsInstalled: the CSVs, plans and the like of the namespace were not read.
func TestNothingIsResolvedWithoutWhatIsInstalled(t *testing.T) {
	const dir = "testdata/resolve/"
	code, out, errs := runDry(t, "", "--catalog", "olm/community="+dir+"catalog.yaml", dir+"subscriptions.yaml")
	require.Zero(t, code, errs)
	require.NotContains(t, out, "  resolves ")
	require.Contains(t, out, "\n  clusterserviceversions.operators.coreos.com ")
	require.NotContains(t, out, "\n  catalogsources", "--catalog names them")
}

// TestWhatACompleteInputLacksDoesNotExist: there is no cache that could be late.
func TestWhatACompleteInputLacksDoesNotExist(t *testing.T) {
	input := partial(largeCluster(tenantObjects), "Subscription", "OperatorGroup")
	input = strings.ReplaceAll(input, `"installedCSV":"etcd.v1","state":"AtLatestKnown"`, `"state":"UpgradePending"`)
	input = strings.ReplaceAll(input, `"lastUpdated":"2026-01-01T11:00:00Z"`, `"lastUpdated":"2026-01-01T11:59:59Z"`)
	r := reportOf(t, input, "--complete")
	require.Empty(t, r.NotRead)
	var said []string
	for _, found := range r.Results {
		if found.Kind == "Subscription" {
			for _, transition := range found.Transitions {
				said = append(said, transition.To)
			}
		}
	}
	require.Contains(t, said, "Missing", "the reference is to a plan that does not exist")
	_, text, _ := runDry(t, input, "--complete")
	require.NotContains(t, text, "Unverified")

	_, text, _ = runDry(t, input)
	require.NotContains(t, text, "-> Missing")
	require.Contains(t, text, "\n  installplans.operators.coreos.com ")
}

// TestTheDocumentedCommandIsComplete: README and --help print the command that is made from the table of kinds.
func TestTheDocumentedCommandIsComplete(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "\n"+decode.KubectlGet()+" | go run ./examples/dryrun --complete\n")
	_, _, help := runDry(t, "", "--help")
	require.Contains(t, help, decode.KubectlGet())
	for _, k := range olmcore.Kinds() {
		if len(k.ReadBy) > 0 {
			require.Contains(t, decode.KubectlGet(), k.Resource())
		}
	}
}
