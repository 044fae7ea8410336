// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
)

// TestTheREADMEHasTheTable: OLM's metrics first. OLMCORE_UPDATE=1 writes it.
func TestTheREADMEHasTheTable(t *testing.T) {
	const path, head = "README.md", "|---|---|---|---|---|---|\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, _, found := strings.Cut(string(text), head)
	require.True(t, found)
	rows := metrics.Families()
	slices.SortStableFunc(rows, func(a, b metrics.Family) int { return cmp.Compare(fmt.Sprint(b.OLM), fmt.Sprint(a.OLM)) })
	want := before + head
	for _, f := range rows {
		want += fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), f.Help, strings.Join(f.Reads, ", "), f.Controller)
	}
	if os.Getenv("OLMCORE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "OLMCORE_UPDATE=1 writes the table")
}

// TestTheTableIsSortedAndWhole: what is described is what the table has, and each name once.
func TestTheTableIsSortedAndWhole(t *testing.T) {
	rows := metrics.Families()
	require.True(t, slices.IsSortedFunc(rows, func(a, b metrics.Family) int {
		if a.Name == b.Name {
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	}))
	described := make(chan *prometheus.Desc, 2*len(rows))
	metrics.New(&controllers.Options{}).Describe(described)
	require.Len(t, described, len(rows))
	seen := samplesOf(t, troubled(t).registry)
	for _, f := range rows {
		require.NotEmpty(t, f.Help)
		switch f.Name {
		case "olm_action_errors_total", "olm_metrics_series_left_out", "olm_objects_not_assessed": // of what is wrong with no world
		default:
			require.NotEmpty(t, of(seen, f.Name), f.Name)
		}
	}
}
