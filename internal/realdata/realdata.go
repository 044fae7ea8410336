// SPDX-License-Identifier: Apache-2.0

// Package realdata finds the published operators that tests run against. They
// are not part of this repository: they are looked for in ../shared/data beside
// the module, or in the folder that OLMCORE_DATA names, and tests that need
// them are skipped where there are none.
package realdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/olmcore/olm/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// Dir returns the data folder, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("OLMCORE_DATA")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no published operators in ../shared/data or $OLMCORE_DATA: %v", err)
	}
	return dir
}

// Bundle is one published version of an operator.
type Bundle struct {
	// Operator and Version are the names of its folders.
	Operator, Version string
	// Objects are its manifests, in file order.
	Objects []olmcore.Object
}

// Bundles returns every published bundle, sorted by operator and version, or
// skips the test.
func Bundles(t testing.TB) []Bundle {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(Dir(t), "bundles", "*", "*", "manifests"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles: %v", err)
	}
	var bundles []Bundle
	for _, dir := range dirs {
		version := filepath.Dir(dir)
		b := Bundle{Operator: filepath.Base(filepath.Dir(version)), Version: filepath.Base(version)}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b.Objects = append(b.Objects, Objects(t, file)...)
		}
		bundles = append(bundles, b)
	}
	return bundles
}

// Objects reads the YAML or JSON documents of one file.
func Objects(t testing.TB, file string) []olmcore.Object {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := manifest.Read(file, f)
	if err != nil {
		t.Fatal(err)
	}
	objects := make([]olmcore.Object, len(read))
	for i, o := range read {
		objects[i] = o.Object
	}
	return objects
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}
