// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/internal/dryrun"
)

// everyLine is a Report with each kind of line. X stands for texts of tenants.
const everyLine = `{
  "now": "X", "globalNamespace": "X",
  "catalogs": [{"name": "X", "problems": ["X"]}],
  "input": ["X"],
  "notRead": [{"resource": "X", "unknown": "X"}],
  "simulated": ["X"],
  "results": [{
    "kind": "CatalogSource", "namespace": "X", "name": "X", "requeueAfter": "X",
    "actions": [{"verb": "delete", "target": {"kind": "X", "namespace": "X", "name": "X"}, "cause": {"reason": "X", "message": "X"}}],
    "transitions": [{"target": {}, "type": "X", "from": "X", "to": "X", "reason": "X", "message": "X"}],
    "diagnostics": [{"severity": "Error", "reason": "X", "message": "X", "target": {}}],
    "requests": [{"connect": "X"}],
    "resolution": {
      "outcome": "X", "target": "X", "install": ["X"], "note": "X", "reasons": ["X"], "help": ["X"], "explanation": "X", "pathProblem": "X",
      "path": {
        "namespace": "X", "subscription": "X", "target": "X",
        "hops": [{"channel": "X", "moves": [{"to": "X", "channel": "X", "from": "X", "subscriptions": ["X"], "deprecations": ["X"]}]}],
        "stops": [{"subscription": "X", "at": "X", "code": "X", "summary": "X"}]
      }
    }
  }]
}`

// TestNoTextAddsLinesToTheTable checks that each value has one line of the table, whatever it contains.
func TestNoTextAddsLinesToTheTable(t *testing.T) {
	table := func(text string) string {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		var report dryrun.Report
		require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(everyLine, `"X"`, string(quoted))), &report))
		var out bytes.Buffer
		require.NoError(t, dryrun.Printers["table"](&out, &report))
		return out.String()
	}
	const forged = "CatalogSource olm/community"
	lines := strings.Count(table("x "+forged), "\n")
	require.Equal(t, 32, lines)
	for _, end := range []string{"\n", "\n\n", "\r", "\v", "\x1b[2K", "\u0085", "\u2028", "\u202e"} {
		shown := table("x" + end + forged)
		require.Equal(t, lines, strings.Count(shown, "\n"), "%q in %s", end, shown)
		require.NotContains(t, shown, end+forged)
	}
}
