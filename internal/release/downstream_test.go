// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// calls are what programs of other repositories do with a module besides importing all of its packages.
var calls = map[string]string{
	".": `if len(controllers.Options{}.Rights().Cluster) == 0 { panic("no rights") }`,
}

// TestOtherRepositoriesCanRequireAVersion releases the files as they are into a module proxy of files, and builds for
// each module a program that requires it from there, imports all of its packages, and runs. Modules of others come from
// the cache of downloads; what it lacks, as on a machine that has not built all modules yet, is fetched before.
func TestOtherRepositoriesCanRequireAVersion(t *testing.T) {
	source, err := git(".", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	root, version := copyOf(t, source)
	modules, err := modulesOf(root)
	require.NoError(t, err)
	_, err = pin(root, modules, version)
	require.NoError(t, err)
	modules = slices.DeleteFunc(modules, func(m module) bool { return !m.published() })
	require.Greater(t, len(modules), 5)
	proxy := t.TempDir()
	for _, m := range modules {
		publish(t, proxy, root, m, version)
	}
	online, offline := environments(t, proxy, modules, version)
	for _, m := range modules {
		t.Run(m.path, func(t *testing.T) {
			packages := packagesOf(t, root, m)
			downstream := func(environment []string, command ...string) (dir, output string, err error) {
				dir = t.TempDir()
				write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module example.com/downstream\n\ngo 1.26.3\n\nrequire %s %s\n", m.path, version))
				write(t, filepath.Join(dir, "main.go"), program(packages, calls[m.dir]))
				run := exec.CommandContext(t.Context(), "go", command...)
				run.Dir, run.Env = dir, environment
				text, err := run.CombinedOutput()
				return dir, string(text), err
			}
			if _, output, err := downstream(online, "list", "-deps", "."); err != nil {
				t.Log("what is missing could not be fetched: " + output)
			}
			dir, output, err := downstream(offline, "run", ".")
			require.NoError(t, err, output)
			gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			require.NoError(t, err)
			require.NotContains(t, string(gomod), "v0.0.0-00010101000000", "a module of this repository was required as none that can be had")
			t.Logf("%d packages", len(packages))
		})
	}
}

// copyOf copies the files of a repository, also those that are not committed, and returns a version that no other
// content has: Go keeps modules by their version.
func copyOf(t *testing.T, source string) (root, version string) {
	root = repository(t, map[string]string{"empty": ""})
	files, err := git(source, "ls-files", "--cached", "--others", "--exclude-standard")
	require.NoError(t, err)
	sum := sha256.New()
	for _, file := range strings.Split(files, "\n") {
		data, err := os.ReadFile(filepath.Join(source, file))
		if os.IsNotExist(err) {
			continue // deleted, and not committed
		}
		require.NoError(t, err)
		fmt.Fprintf(sum, "%s %d\n%s", file, len(data), data)
		write(t, filepath.Join(root, file), string(data))
	}
	return root, "v0.0.1-test." + hex.EncodeToString(sum.Sum([]byte("t"))[:6])
}

// publish puts a module into a proxy.
func publish(t *testing.T, proxy, root string, m module, version string) {
	dir := filepath.Join(proxy, filepath.FromSlash(m.path), "@v")
	gomod, err := os.ReadFile(filepath.Join(root, m.dir, "go.mod"))
	require.NoError(t, err)
	write(t, filepath.Join(dir, version+".mod"), string(gomod))
	write(t, filepath.Join(dir, version+".info"), fmt.Sprintf(`{"Version": %q, "Time": "2026-01-01T00:00:00Z"}`, version))
	write(t, filepath.Join(dir, "list"), version+"\n")
	var archive bytes.Buffer
	require.NoError(t, zip.CreateFromDir(&archive, gomodule.Version{Path: m.path, Version: version}, filepath.Join(root, m.dir)))
	write(t, filepath.Join(dir, version+".zip"), archive.String())
}

// environments returns those in which go gets modules from the proxy, from the cache of downloads, and online from
// where it is told to, offline from nowhere else. What it keeps of this version goes with the test.
func environments(t *testing.T, proxy string, modules []module, version string) (online, offline []string) {
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	cache, others, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	t.Cleanup(func() {
		for _, m := range modules {
			downloads, err := filepath.Glob(filepath.Join(cache, "cache", "download", m.path, "@v", version+".*"))
			require.NoError(t, err)
			extracted := filepath.Join(cache, m.path+"@"+version)
			require.NoError(t, filepath.WalkDir(extracted, func(name string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					return os.Chmod(name, 0o755) // Go makes them read-only
				}
				if os.IsNotExist(err) {
					return nil
				}
				return err
			}))
			for _, name := range append(downloads, extracted) {
				require.NoError(t, os.RemoveAll(name))
			}
		}
	})
	both := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOSUMDB=off", "GOWORK=off", "GONOPROXY=", "GOPRIVATE=")
	from := "GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + ","
	return append(slices.Clip(both), from+others), append(slices.Clip(both), from+"off")
}

// packagesOf returns the import paths of the packages of a module that others may import.
func packagesOf(t *testing.T, root string, m module) (packages []string) {
	base := filepath.Join(root, m.dir)
	require.NoError(t, filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if !entry.IsDir() {
			return nil
		}
		_, err = os.Stat(filepath.Join(name, "go.mod"))
		if base := entry.Name(); err == nil && name != filepath.Join(root, m.dir) || base == "internal" || base == "testdata" || base == ".git" {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
			require.NoError(t, err)
			if strings.HasSuffix(file, "_test.go") || parsed.Name.Name == "main" {
				continue
			}
			relative, err := filepath.Rel(base, name)
			require.NoError(t, err)
			packages = append(packages, path.Join(m.path, filepath.ToSlash(relative)))
			break
		}
		return nil
	}))
	return packages
}

// program imports packages and makes a call.
func program(packages []string, call string) string {
	var text strings.Builder
	text.WriteString("package main\n\nimport (\n")
	for _, p := range packages {
		name := "_"
		if strings.Contains(call, path.Base(p)+".") {
			name = path.Base(p)
		}
		fmt.Fprintf(&text, "\t%s %q\n", name, p)
	}
	fmt.Fprintf(&text, ")\n\nfunc main() { %s }\n", call)
	return text.String()
}
