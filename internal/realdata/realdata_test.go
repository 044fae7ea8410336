// SPDX-License-Identifier: Apache-2.0

package realdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhereTheDataIs: the folder that is named and no other, else the first beside the module; without one tests are
// skipped.
func TestWhereTheDataIs(t *testing.T) {
	beside := t.TempDir()
	root := filepath.Join(beside, "olm")
	makeDir := func(elements ...string) string {
		dir := filepath.Join(append([]string{beside}, elements...)...)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		return dir
	}
	makeDir("olm")
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600))
	t.Chdir(root)
	looks := func(named string) (dir string) {
		t.Setenv("OLMCORE_DATA", named)
		t.Run("look", func(t *testing.T) { dir = Dir(t) })
		return dir
	}
	require.Empty(t, looks(""))
	shared := makeDir("shared", "data")
	require.Equal(t, shared, looks(""))
	own := makeDir("olm-data")
	require.Equal(t, own, looks(""))
	named := makeDir("elsewhere")
	require.Equal(t, named, looks(named))
	require.Empty(t, looks(filepath.Join(beside, "missing")))
}
