// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

// large writes a list of about that many objects: the world of the stories, again and again in other namespaces.
func large(b *testing.B, objects int) string {
	var template []string
	for _, o := range objectsOf(b, worldFile) {
		m, err := olmcore.ToMap(o)
		require.NoError(b, err)
		text, err := json.Marshal(m)
		require.NoError(b, err)
		template = append(template, string(text))
	}
	file := filepath.Join(b.TempDir(), "large.json")
	f, err := os.Create(file)
	require.NoError(b, err)
	defer f.Close()
	separator := `{"apiVersion":"v1","kind":"List","items":[`
	for i := range objects / len(template) {
		names := strings.NewReplacer(`"tools"`, fmt.Sprintf(`"tools-%d"`, i), `"apps"`, fmt.Sprintf(`"apps-%d"`, i), `"broken"`, fmt.Sprintf(`"broken-%d"`, i),
			`"olm"`, fmt.Sprintf(`"olm-%d"`, i), `"uid":"`, fmt.Sprintf(`"uid":"%d-`, i), `"uuid":"`, fmt.Sprintf(`"uuid":"%d-`, i))
		for _, one := range template {
			_, err := fmt.Fprint(f, separator, names.Replace(one))
			require.NoError(b, err)
			separator = ",\n"
		}
	}
	_, err = fmt.Fprint(f, "]}")
	require.NoError(b, err)
	return file
}

// BenchmarkFiles is what commands take for the files of a large cluster.
func BenchmarkFiles(b *testing.B) {
	for _, args := range []string{"status", "status -o json", "audit", "why broker -n apps-7", "next -o json"} {
		for _, objects := range []int{5_000, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(args, " ", "_"), objects), func(b *testing.B) {
				file := large(b, objects)
				b.ReportAllocs()
				for b.Loop() {
					code, _, errs := run(b, "", append(strings.Fields(args), "-f", file, "--complete")...)
					require.Zero(b, code, errs)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(objects), "µs/object")
			})
		}
	}
}
