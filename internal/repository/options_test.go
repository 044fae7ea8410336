// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxOptions is how many fields the Configs of the library may have together. An option
// is a promise and doubles what must be tested.
const maxOptions = 45

// TestEveryOptionHasAUser looks each field of each Config up in docs/deviations.md, which says who needs it.
func TestEveryOptionHasAUser(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "deviations.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, dir := range []string{"catalog", "subscription", "installplan", "csv"} {
		for _, field := range options(t, dir) {
			count++
			if !strings.Contains(string(text), "`"+field+"`") {
				t.Errorf("%s: docs/deviations.md does not say who needs %s", dir, field)
			}
		}
	}
	if t.Logf("%d options", count); count > maxOptions || count == 0 {
		t.Errorf("%d options", count)
	}
}

// options are the fields of the types named Config, or ending so, below a folder; of one
// Config within another its own fields.
func options(t *testing.T, dir string) (fields []string) {
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") || !spec.Name.IsExported() {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range structure.Fields.List {
				if name, nested := field.Type.(*ast.Ident); nested && strings.HasSuffix(name.Name, "Config") {
					continue
				}
				for _, name := range field.Names {
					fields = append(fields, name.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fields
}
