// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository makes a Git repository of files, committed.
func repository(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	for key, value := range map[string]string{"NAME": "test", "EMAIL": "test@example.com"} {
		t.Setenv("GIT_AUTHOR_"+key, value)
		t.Setenv("GIT_COMMITTER_"+key, value)
	}
	for _, command := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "all"}} {
		_, err := git(root, command...)
		require.NoError(t, err)
	}
	return root
}

func write(t *testing.T, name, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func small() map[string]string {
	return map[string]string{
		"CHANGELOG.md":      "## Unreleased\n\n## v0.2.0\n\n## v0.1.0\n",
		"go.mod":            "module example.com/m\n",
		"a/go.mod":          "module example.com/m/a\n\nrequire (\n\texample.com/m v0.0.0\n\texample.com/other v1.2.3\n)\n\nreplace example.com/m => ..\n",
		"a/b/go.mod":        "module example.com/m/a/b\n\nrequire (\n\texample.com/m v0.0.0-00010101000000-000000000000 // indirect\n\texample.com/m/a v0.0.0\n)\n",
		"internal/t/go.mod": "module example.com/m/internal/t\n\nrequire example.com/m/a v0.0.0\n",
		"examples/a.yaml":   "image: registry.example.com/olm:dev\n",
	}
}

func TestRelease(t *testing.T) {
	root := repository(t, small())
	tags, err := release(root, "v0.1.0")
	require.NoError(t, err)
	require.Equal(t, []string{"v0.1.0", "a/v0.1.0", "a/b/v0.1.0"}, tags)
	for file, want := range map[string]string{
		"go.mod":            "module example.com/m\n",
		"a/go.mod":          "module example.com/m/a\n\nrequire (\n\texample.com/m v0.1.0\n\texample.com/other v1.2.3\n)\n\nreplace example.com/m => ..\n",
		"a/b/go.mod":        "module example.com/m/a/b\n\nrequire (\n\texample.com/m v0.1.0 // indirect\n\texample.com/m/a v0.1.0\n)\n",
		"internal/t/go.mod": "module example.com/m/internal/t\n\nrequire example.com/m/a v0.1.0\n",
		"examples/a.yaml":   "image: registry.example.com/olm:v0.1.0\n",
	} {
		for _, tag := range tags {
			have, err := git(root, "show", tag+":"+file)
			require.NoError(t, err)
			require.Equal(t, strings.TrimRight(want, "\n"), have, "%s at %s", file, tag)
		}
	}
	listed, err := git(root, "tag", "--list")
	require.NoError(t, err)
	require.ElementsMatch(t, tags, strings.Fields(listed))
	changes, err := git(root, "status", "--porcelain")
	require.NoError(t, err)
	require.Empty(t, changes)

	_, err = release(root, "v0.1.0")
	require.EqualError(t, err, "the version has tags already: a/b/v0.1.0, a/v0.1.0, v0.1.0")
	tags, err = release(root, "v0.2.0")
	require.NoError(t, err)
	require.Len(t, tags, 3)
}

func TestNothingIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		change  func(files map[string]string)
		dirty   bool
		problem string
	}{
		"of what is no version":      {version: "0.1.0", problem: `"0.1.0" is no version such as v0.1.0 or v0.1.0-rc.1`},
		"of a part of a version":     {version: "v1", problem: `"v1" is no version such as v0.1.0 or v0.1.0-rc.1`},
		"of build metadata":          {version: "v0.1.0+1", problem: `"v0.1.0+1" is no version such as v0.1.0 or v0.1.0-rc.1`},
		"of a second major version":  {version: "v2.0.0", problem: "v2.0.0: the module paths have no /v2 at their end"},
		"that CHANGELOG.md has not":  {version: "v0.3.0", problem: `CHANGELOG.md has no section "## v0.3.0": name the section Unreleased so, and begin a new one`},
		"with changes of the folder": {version: "v0.1.0", dirty: true, problem: "there are changes that are not committed:\n?? new.txt"},
		"of a module with another path": {version: "v0.1.0", change: func(files map[string]string) { files["a/go.mod"] = "module example.com/m/c\n" },
			problem: "a/go.mod: the module is example.com/m/c, and Go would look for example.com/m/a there"},
		"of a module without a path": {version: "v0.1.0", change: func(files map[string]string) { files["a/go.mod"] = "\n" }, problem: "a/go.mod: has no module path"},
		"that requires what is internal": {version: "v0.1.0", change: func(files map[string]string) {
			files["a/go.mod"] = "module example.com/m/a\n\nrequire example.com/m/internal/t v0.0.0\n"
		}, problem: "a/go.mod requires example.com/m/internal/t, which other repositories cannot get"},
	} {
		t.Run(name, func(t *testing.T) {
			files := small()
			if c.change != nil {
				c.change(files)
			}
			root := repository(t, files)
			if c.dirty {
				write(t, filepath.Join(root, "new.txt"), "")
			}
			_, err := release(root, c.version)
			require.EqualError(t, err, c.problem)
			listed, err := git(root, "tag", "--list")
			require.NoError(t, err)
			require.Empty(t, listed)
		})
	}
	require.ErrorContains(t, run(nil), "usage: go run . VERSION")
}
