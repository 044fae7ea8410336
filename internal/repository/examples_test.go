// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// entryPoints contains the functions that a user of a reconcile package calls first, including those about a
// configuration, such as GatherConfig. Each of them is called in an Example of its package.
var entryPoints = regexp.MustCompile(`^(Gather|Reconcile|Assess|Affected)(Configs?)?$`)

// TestEveryPublicPackageHasAnExample, which pkg.go.dev shows: of the package at all, and of its entry points.
func TestEveryPublicPackageHasAnExample(t *testing.T) {
	folders := map[string]bool{}
	for _, path := range files(t, func(name string) bool { return strings.HasSuffix(name, ".go") }) {
		folders[filepath.Dir(path)] = true
	}
	packages := 0
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "internal") {
			continue
		}
		exported, called, examples := shownOf(t, dir)
		if len(exported) == 0 {
			continue
		}
		packages++
		if examples == 0 {
			t.Errorf("%s has no Example", dir)
		}
		for _, name := range slices.Sorted(maps.Keys(exported)) {
			if entryPoints.MatchString(name) && !called[name] {
				t.Errorf("%s: no Example calls %s", dir, name)
			}
		}
	}
	if packages < 40 {
		t.Errorf("only %d packages", packages)
	}
}

func TestWhatNoExampleShowsIsNamed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package a\nfunc Gather() {}\nfunc Assess() {}\nfunc hidden() {}\nfunc (s s) Method() {}\ntype s int",
		"a_test.go": "package a_test\nfunc ExampleGather() { a.Gather(); b.Assess() }\nfunc helper() { a.Assess() }\n" +
			"func TestX() { a.Assess() }",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exported, called, examples := shownOf(t, dir)
	if !maps.Equal(exported, map[string]bool{"Gather": true, "Assess": true}) || !maps.Equal(called, map[string]bool{"Gather": true}) || examples != 1 {
		t.Errorf("exported %v, called %v, %d examples", exported, called, examples)
	}
}

// shownOf returns the names that the package of a folder exports, the names of it that its Examples use, and how many
// Examples it has. A command exports nothing.
func shownOf(t *testing.T, dir string) (exported, called map[string]bool, examples int) {
	t.Helper()
	exported, called = map[string]bool{}, map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			examples += selectorsOfExamples(file, called)
		} else if file.Name.Name != "main" {
			exportsOf(file, exported)
		}
	}
	return exported, called, examples
}

// selectorsOfExamples adds the names of the package in the Examples of a file, and returns how many Examples there are.
func selectorsOfExamples(file *ast.File, called map[string]bool) (examples int) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		examples++
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == strings.TrimSuffix(file.Name.Name, "_test") {
					called[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return examples
}

// exportsOf adds the functions and types that a file exports.
func exportsOf(file *ast.File, exported map[string]bool) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				exported[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
					exported[s.Name.Name] = true
				}
			}
		}
	}
}
