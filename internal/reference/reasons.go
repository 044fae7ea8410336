// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/olmcore/olm/"

const reasons = `# Reasons

Every reason that the library gives: in conditions, in the causes of actions, in Transitions and in Diagnostics. Where a sentence
names nothing to do, nothing needs to be done. This page is made from the constants; after a change of one,
` + "`OLMCORE_UPDATE=1 go test ./internal/reference`" + ` writes it again.
`

// library are the folders whose reasons users see.
var library = []string{"catalog", "subscription", "installplan", "csv", "controllers", "olmcore"}

// constant is a constant of a package.
type constant struct {
	name, doc string
	value     ast.Expr
	file      *ast.File
}

// Reasons returns docs/reasons.md. Root is the folder of the module. The error is that of a file that cannot be read,
// or names a reason whose value or sentence is not found.
func Reasons(root string) (string, error) {
	var b strings.Builder
	b.WriteString(reasons)
	packages := map[string][]constant{}
	var folders []string
	for _, dir := range library {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			folder, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			folders = append(folders, filepath.ToSlash(folder))
			packages[filepath.ToSlash(folder)], err = constantsOf(p)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	for _, folder := range folders {
		if slices.Contains(strings.Split(folder, "/"), "internal") {
			continue
		}
		table, err := reasonsOf(folder, packages)
		if err != nil {
			return "", err
		}
		b.WriteString(table)
	}
	return b.String(), nil
}

// reasonsOf returns the table of one package, sorted by reason; empty when it has none.
func reasonsOf(folder string, packages map[string][]constant) (string, error) {
	rows := map[string]string{}
	for _, c := range packages[folder] {
		if !strings.HasPrefix(c.name, "Reason") || c.name == "Reason" {
			continue
		}
		value, from := valueOf(folder, c, packages)
		doc := sentence(c)
		if doc == "" {
			doc = sentence(from)
		}
		if value == "" || doc == "" {
			return "", fmt.Errorf("%s: constant %s has no value or no sentence", folder, c.name)
		}
		if old, twice := rows[value]; twice && old != doc {
			doc = old + " Or: " + doc
		}
		rows[value] = doc
	}
	if len(rows) == 0 {
		return "", nil
	}
	lines := make([]string, 0, len(rows))
	for value, doc := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s |\n", value, doc))
	}
	slices.Sort(lines)
	return fmt.Sprintf("\n## %s\n\n| reason | what it means |\n|---|---|\n%s", folder, strings.Join(lines, "")), nil
}

// sentence returns what the comment of a constant says about it, as a cell of a table.
func sentence(c constant) string {
	doc := strings.Join(strings.Fields(c.doc), " ")
	doc = strings.TrimPrefix(strings.TrimPrefix(doc, c.name+" means that"), c.name+":")
	if doc = strings.TrimSpace(doc); doc == "" {
		return ""
	}
	if first, _, _ := strings.Cut(doc, " "); !strings.Contains(first, ".") { // the name of a field stays as it is
		doc = strings.ToUpper(doc[:1]) + doc[1:]
	}
	return strings.ReplaceAll(strings.TrimSuffix(doc, ".")+".", "|", `\|`)
}

// valueOf follows a constant to its string, and to the constant that has it; empty when it has none.
func valueOf(folder string, c constant, packages map[string][]constant) (string, constant) {
	var name string
	switch v := c.value.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(v.Value)
		return text, c
	case *ast.Ident:
		name = v.Name
	case *ast.SelectorExpr:
		name, folder = v.Sel.Name, imported(c.file, v.X.(*ast.Ident).Name)
	}
	i := slices.IndexFunc(packages[folder], func(c constant) bool { return c.name == name })
	if i < 0 {
		return "", c
	}
	return valueOf(folder, packages[folder][i], packages)
}

// imported returns the folder of the package that a file imports under a name.
func imported(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(p) == name {
			return strings.TrimPrefix(p, module)
		}
	}
	return ""
}

// constantsOf returns the constants of a folder's package, without those of tests.
func constantsOf(dir string) (all []constant, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				all = append(all, constantsIn(d, file)...)
			}
		}
	}
	return all, nil
}

func constantsIn(d *ast.GenDecl, file *ast.File) (all []constant) {
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		doc := spec.Doc.Text() + spec.Comment.Text()
		if doc == "" && len(d.Specs) == 1 {
			doc = d.Doc.Text()
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				all = append(all, constant{name: name.Name, doc: doc, value: spec.Values[i], file: file})
			}
		}
	}
	return all
}
