// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/olmcore"
)

func TestWriteJSONIsTheReportAsJSON(t *testing.T) {
	result := dryrun.Result{
		Kind: "Subscription", Name: "a", Actions: []olmcore.Record{}, Requests: []any{map[string]any{"results": []any{}}},
		Diagnostics: []olmcore.Diagnostic{{Reason: "R", Message: "<b>\n  \"results\": [] é\u2028"}},
	}
	for name, r := range map[string]*dryrun.Report{
		"no results":                  {Now: "now", Results: []dryrun.Result{}},
		"one":                         {Now: "now", Results: []dryrun.Result{result}},
		"several, and what is around": {Now: "now", Input: []string{"\n  \"results\": []"}, Results: []dryrun.Result{result, {}, result}, Simulated: []string{"<x>"}, World: []map[string]any{{"results": []any{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, escapeHTML := range []bool{false, true} {
				var want, got bytes.Buffer
				encoder := json.NewEncoder(&want)
				encoder.SetIndent("", "  ")
				encoder.SetEscapeHTML(escapeHTML)
				require.NoError(t, encoder.Encode(r))
				require.NoError(t, dryrun.WriteJSON(&got, r, escapeHTML))
				require.Equal(t, want.String(), got.String())
			}
		})
	}
}
