// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"bytes"
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
