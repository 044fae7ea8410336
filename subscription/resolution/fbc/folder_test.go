// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fbc_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// write makes a folder on disk: names that end in a slash are folders, texts that begin with an arrow are links.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if target, link := strings.CutPrefix(text, "-> "); link {
			require.NoError(t, os.Symlink(target, path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	return dir
}

func names(t *testing.T, fsys fs.FS, root string) (names, said string) {
	t.Helper()
	packages, diagnostics, err := fbc.Load(fsys, root, fbc.Options{})
	require.NoError(t, err)
	for _, p := range packages {
		names += p.Name
	}
	for _, d := range diagnostics {
		require.Equal(t, fbc.ReasonUnreadableFile, d.Reason)
		said += d.Message + "\n"
	}
	return names, said
}

const packageA, packageB = `{"schema":"olm.package","name":"a"}`, `{"schema":"olm.package","name":"b"}`

// TestAMountedFolder is laid out as a mounted ConfigMap or projected volume: files and folders are links into a
// folder whose name begins with two dots, and a link stands for that folder.
func TestAMountedFolder(t *testing.T) {
	dir := write(t, map[string]string{
		"..2026/catalog.json": packageA, "..2026/more/catalog.json": packageB,
		"..data": "-> ..2026", "catalog.json": "-> ..data/catalog.json", "more": "-> ..data/more",
	})
	packages, diagnostics, err := fbc.Load(os.DirFS(dir), ".", fbc.Options{Strict: true})
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	require.Len(t, packages, 2)
}

func TestLinksOutOfTheFolderAreRejected(t *testing.T) {
	dir := write(t, map[string]string{
		"in/a.json": packageA, "in/sub/..hidden/x.json": "broken", "secret.json": packageB, "other/b.json": packageB,
		"in/absolute.json": "-> /etc/hostname", "in/out.json": "-> ../secret.json", "in/twice.json": "-> out.json", "in/folder": "-> ../other",
		"in/far.json": "-> ../../../../../../../../../../etc/hostname", "in/loop.json": "-> loop.json", "in/gone.json": "-> nothing", "in/through.json": "-> folder/b.json",
		"in/within": "-> sub", "in/sub/back": "-> ../sub",
	})
	for fsys, root := range map[fs.FS]string{os.DirFS(dir): "in", os.DirFS(filepath.Join(dir, "in")): "."} {
		found, said := names(t, fsys, root)
		require.Equal(t, "a", found)
		for _, name := range []string{"absolute.json", "out.json", "twice.json", "folder", "far.json", "through.json"} {
			require.Contains(t, said, name+": is a link that leads out of the folder\n")
		}
		require.Contains(t, said, "loop.json: is a link that leads through too many others\n")
		require.Contains(t, said, "gone.json: ")
		require.Equal(t, 8, strings.Count(said, "\n"), said)
		_, _, err := fbc.Load(fsys, root, fbc.Options{Strict: true})
		require.ErrorContains(t, err, "absolute.json: is a link that leads out of the folder")
	}
	outside := write(t, map[string]string{"a.json": packageA, ".indexignore": "-> /etc/hostname"})
	_, _, err := fbc.Load(os.DirFS(outside), ".", fbc.Options{})
	require.ErrorContains(t, err, ".indexignore: is a link that leads out of the folder", "what it excludes is not known")
}

func TestSpecialFilesAreRejected(t *testing.T) {
	dir := write(t, map[string]string{"a.json": packageA, "link": "-> pipe"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	found, said := names(t, os.DirFS(dir), ".")
	require.Equal(t, "a", found)
	require.Equal(t, "link: is neither a file nor a folder but of the type p---------\npipe: is neither a file nor a folder but of the type p---------\n", said)

	device := fstest.MapFS{"a.json": {Data: []byte(packageA)}, "zero": {Mode: fs.ModeDevice | fs.ModeCharDevice}}
	found, said = names(t, device, ".")
	require.Equal(t, "a", found)
	require.Contains(t, said, "zero: is neither a file nor a folder")
}
