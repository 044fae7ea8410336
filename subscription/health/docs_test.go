// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription/health"
)

// TestHealthDocumentContainsTheTables checks that docs/health.md contains the tables. OLMCORE_UPDATE=1 rewrites it.
func TestHealthDocumentContainsTheTables(t *testing.T) {
	const name = "../../docs/health.md"
	shown := strings.NewReplacer("{object}", "OBJECT", "{subscription}", "SUBSCRIPTION", "{what}", "WHAT", "{remove}", "OBJECTS")
	table := func(head string, rows []string, text func(row string) string) string {
		b := "| " + head + " | |\n|---|---|\n"
		for _, r := range rows {
			b += "| `" + r + "` | " + shown.Replace(text(r)) + " |\n"
		}
		return b
	}
	meanings, phases := map[string]string{}, []string(nil)
	for _, r := range health.Phases() {
		phases, meanings[string(r.Phase)] = append(phases, string(r.Phase)), r.Meaning
	}
	advice := func(s string) string { return health.Advices()[s] }
	example, err := os.ReadFile("testdata/health.json")
	require.NoError(t, err)
	parts := map[string]string{
		"health.json": "```json\n" + string(example) + "```\n",
		"phases":      table("phase", phases, func(p string) string { return meanings[p] }),
		"troubles":    table("reason", health.Troubles(), advice),
		"situations":  table("situation", health.Situations(), advice),
	}
	have, err := os.ReadFile(name)
	require.NoError(t, err)
	want := string(have)
	for part, text := range parts {
		place := regexp.MustCompile(`(?s)<!-- ` + part + ` -->\n.*?<!-- end -->`)
		require.Len(t, place.FindAllString(want, -1), 1, part)
		want = place.ReplaceAllLiteralString(want, "<!-- "+part+" -->\n"+text+"<!-- end -->")
	}
	if os.Getenv("OLMCORE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(have))
}
