// SPDX-License-Identifier: Apache-2.0

package seeded_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/olmcore/olm/internal/seeded"
)

func TestRapidHasTheDefaults(t *testing.T) {
	for name, d := range map[string]struct{ variable, want string }{
		"rapid.seed":       {"RAPID_SEED", "20260102"},
		"rapid.checks":     {"RAPID_CHECKS", "20"},
		"rapid.nofailfile": {"RAPID_NOFAILFILE", "true"},
	} {
		if _, set := os.LookupEnv(d.variable); !set {
			require.Equal(t, d.want, flag.Lookup(name).DefValue, name)
		}
	}
}

// TestEveryPackageWithPropertiesIsSeeded reads the tests of the module and of those nested in it.
func TestEveryPackageWithPropertiesIsSeeded(t *testing.T) {
	properties, seeded := map[string]bool{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		properties[filepath.Dir(path)] = properties[filepath.Dir(path)] || strings.Contains(string(source), "rapid.Check(")
		seeded[filepath.Dir(path)] = seeded[filepath.Dir(path)] || strings.Contains(string(source), `/seeded"`)
		return err
	}))
	require.Greater(t, len(properties), 20)
	for dir, has := range properties {
		require.True(t, !has || seeded[dir], "the tests of %s do not import internal/seeded", dir)
	}
}
