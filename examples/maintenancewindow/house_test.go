// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestItStaysSmall counts all lines of the operator, its process and comments included.
func TestItStaysSmall(t *testing.T) {
	total := 0
	for _, pattern := range []string{"*.go", "cmd/*/*.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			total += bytes.Count(text, []byte("\n"))
		}
	}
	require.Less(t, total, 300)
}

// TestItCanBeCopied: another repository cannot import what is internal in this one, in tests neither.
func TestItCanBeCopied(t *testing.T) {
	imports := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			imports++
			require.NotContains(t, i.Path.Value, "/internal/", path)
		}
		return nil
	}))
	require.Greater(t, imports, 50)
}
