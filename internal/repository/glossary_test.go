// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// glossaryType is a type in backticks, with the name of its package.
var glossaryType = regexp.MustCompile("`([a-z0-9]+)\\.([A-Z]\\w*)`")

// TestGlossaryListsEachWordOnce also checks that the types that the glossary names exist.
func TestGlossaryListsEachWordOnce(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Glossary\n")
	section, _, _ = strings.Cut(section, "\n## ")
	types := declaredTypes(t)
	seen := map[string]bool{}
	for _, line := range strings.Split(section, "\n") {
		cells := cellsOf(line)
		if len(cells) != 3 || cells[0] == "word" || strings.HasPrefix(cells[0], "-") {
			continue
		}
		for _, word := range strings.Split(cells[0], ", ") {
			if seen[word] {
				t.Errorf("the glossary lists %q twice", word)
			}
			seen[word] = true
		}
		for _, match := range glossaryType.FindAllStringSubmatch(cells[2], -1) {
			isOfAPI := strings.HasPrefix(match[1], "v1")
			if !isOfAPI && !types[match[1]+"."+match[2]] {
				t.Errorf("the glossary names %s.%s, which does not exist: correct the row of %q", match[1], match[2], cells[0])
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("the glossary lists only %d words", len(seen))
	}
}

// declaredTypes returns the types of the repository, each with the name of its package.
func declaredTypes(t *testing.T) map[string]bool {
	types, fset := map[string]bool{}, token.NewFileSet()
	isSource := func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") }
	for _, path := range files(t, isSource) {
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range typeNames(file) {
			types[file.Name.Name+"."+name] = true
		}
	}
	return types
}

// typeNames returns the names of the types that a file declares.
func typeNames(file *ast.File) (names []string) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			names = append(names, spec.(*ast.TypeSpec).Name.Name)
		}
	}
	return names
}
