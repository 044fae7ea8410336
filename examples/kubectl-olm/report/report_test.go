// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/subscription/health"
)

var full = report.New(health.Health{
	Phase: health.Installing, Reason: "ImagePullBackOff", Message: "container broker: Back-off pulling image",
	Object: olmcore.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "apps", Name: "broker-1", UID: "u", ResourceVersion: "7"},
	Since:  time.Date(2026, 1, 1, 13, 32, 0, 0, time.FixedZone("CET", 3600)), Advice: "Make the image available.",
})

// TestTheJSONDoesNotChange: programs read it. The names are those that the documentation promises, and each is there.
func TestTheJSONDoesNotChange(t *testing.T) {
	s := report.Subscription{Namespace: "apps", Name: "broker", Package: "broker", Channel: "stable", Version: "2.1.0", InstalledCSV: "broker.v2.1.0", CurrentCSV: "broker.v2.1.0", Report: full}
	object := *full.Object
	golden := map[string]any{
		"report":      full,
		"reportEmpty": report.Report{},
		"status":      report.Status{Now: *full.Since, Summary: report.Summary{Total: 1, Phases: map[string]int{"Installing": 1}}, Subscriptions: []report.Subscription{s}, NotRead: []string{"pods"}},
		"audit":       report.Audit{Findings: []report.Finding{{Severity: "Warning", Reason: "R", Message: "m", Object: object, Path: "spec", Source: "csv", Repair: []string{"update Pod a/b"}}}, NotRead: []string{}},
		"hops":        report.Hops{Namespace: "apps", Subscription: "broker", Hops: []preview.Preview{preview.Between(nil, nil)}, NotRead: []string{"Pod"}},
		"catalogs": report.Catalogs{NotRead: []string{}, Packages: []report.Package{{Catalog: "olm/c", Name: "p", DefaultChannel: "s", Deprecation: "d", Channels: []report.Channel{
			{Name: "s", Head: "p.v1", Version: "1.0.0", Entries: []report.Entry{{Name: "p.v1", Version: "1.0.0", Replaces: "p.v0", Skips: []string{}, SkipRange: "<1.0.0"}}},
		}}}},
	}
	got, err := json.MarshalIndent(golden, "", "  ")
	require.NoError(t, err)
	const file = "testdata/report.json"
	if os.Getenv("OLMCORE_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

func TestHealthy(t *testing.T) {
	for _, phase := range health.Phases() {
		require.Equal(t, phase.Phase == health.Installed, report.New(health.Health{Phase: phase.Phase}).Healthy(), phase.Phase)
	}
	for phase, want := range map[string]bool{"Complete": true, "Succeeded": true, "READY": true, "": false, report.Unknown: false, "CONNECTING": false, "Pending": false} {
		require.Equal(t, want, report.Report{Phase: phase}.Healthy(), phase)
	}
}
