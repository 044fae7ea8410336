// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// module is one of the modules of the repository.
type module struct {
	// dir is its folder from the root, with slashes; the root's is ".".
	dir, path string
}

// published reports whether other repositories may require it: those below internal have only tests and commands for
// this repository.
func (m module) published() bool {
	return !slices.Contains(strings.Split(m.dir, "/"), "internal")
}

// tag is the tag by which Go finds a version of it.
func (m module) tag(version string) string { return path.Join(m.dir, version) }

// modulesOf returns the modules of a repository, the root's first.
func modulesOf(root string) ([]module, error) {
	files, err := git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	var modules []module
	for _, file := range strings.Fields(files) {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		m := module{path.Dir(file), modfile.ModulePath(data)}
		if m.path == "" {
			return nil, fmt.Errorf("%s: has no module path", file)
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	for _, m := range modules {
		if want := path.Join(modules[0].path, m.dir); m.path != want {
			return nil, fmt.Errorf("%s/go.mod: the module is %s, and Go would look for %s there", m.dir, m.path, want)
		}
	}
	return modules, nil
}

// pin makes every module require this version of the others that it requires, and returns the files that changed.
// Their replace directives stay: Go heeds them in this repository alone.
func pin(root string, modules []module, version string) (changed []string, err error) {
	published := map[string]bool{}
	for _, m := range modules {
		published[m.path] = m.published()
	}
	for _, m := range modules {
		file := path.Join(m.dir, "go.mod")
		name := filepath.Join(root, filepath.FromSlash(file))
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		parsed, err := modfile.Parse(file, data, nil)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Clone(parsed.Require) {
			ours, known := published[r.Mod.Path]
			switch {
			case !known:
				continue
			case !ours && m.published():
				return nil, fmt.Errorf("%s requires %s, which other repositories cannot get", file, r.Mod.Path)
			case !ours:
				continue
			}
			if err := parsed.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
		next, err := parsed.Format()
		if err != nil {
			return nil, err
		}
		if string(next) != string(data) {
			changed = append(changed, file)
			if err := os.WriteFile(name, next, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}
