// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// library are the folders whose code readers must be able to hold in their heads.
var library = []string{"olmcore", "catalog", "subscription", "installplan", "csv", "controllers", "preview"}

// others are the folders whose code keeps the same limits.
var others = []string{"fake", "examples", "internal"}

// larger are the folders that may have more, and may not grow. The cluster of fake is one type: its clock and the
// requests of its API server.
var larger = map[string]struct{ files, methods int }{
	"fake": {methods: 53},
}

// limits of the house. Beyond them a folder, a type or a function is two.
const (
	maxFiles   = 22 // of a folder, without tests
	maxLines   = 500
	maxMethods = 25
	maxScreen  = 60  // lines of a function
	maxSteps   = 100 // lines of a function whose blocks are numbered steps
)

func TestTheHouseKeepsItsLimits(t *testing.T) {
	folders := 0
	for _, dir := range slices.Concat(library, others) {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			folders++
			for _, problem := range measure(t, path) {
				t.Error(problem)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if folders < len(library)+len(others) {
		t.Errorf("only %d folders", folders)
	}
}

// measure returns what is too large in a folder.
func measure(t *testing.T, dir string) (problems []string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files, methods := 0, map[string]int{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > maxLines {
			problems = append(problems, fmt.Sprintf("%s has %d lines", path, n))
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n, limit := set.Position(f.End()).Line-set.Position(f.Pos()).Line+1, maxScreen
			if hasNumberedSteps(set, file, f) {
				limit = maxSteps
			}
			if n > limit {
				problems = append(problems, fmt.Sprintf("%s: %s has %d lines", path, f.Name.Name, n))
			}
			if f.Recv != nil {
				methods[receiverOf(f)]++
			}
		}
	}
	most := larger[filepath.ToSlash(strings.TrimPrefix(dir, root+string(filepath.Separator)))]
	for receiver, n := range methods {
		if n > max(maxMethods, most.methods) {
			problems = append(problems, fmt.Sprintf("%s: %s has %d methods", dir, receiver, n))
		}
	}
	if files > max(maxFiles, most.files) {
		problems = append(problems, fmt.Sprintf("%s has %d files", dir, files))
	}
	return problems
}

func receiverOf(f *ast.FuncDecl) string {
	for t := f.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// hasNumberedSteps reports whether each block of a function starts with a comment that has the next number, such as
// "// 1. Repair the Service." A block ends at an empty line and at the next numbered comment.
func hasNumberedSteps(set *token.FileSet, file *ast.File, f *ast.FuncDecl) bool {
	if f.Body == nil {
		return false
	}
	// 1. The last line of each comment, and which of them have the next number.
	steps, isNumbered := 0, map[int]bool{}
	starts := map[int]int{}
	for _, group := range file.Comments {
		if group.Pos() < f.Body.Pos() || group.End() > f.Body.End() {
			continue
		}
		end := set.Position(group.End()).Line
		starts[end] = set.Position(group.Pos()).Line
		if strings.HasPrefix(group.List[0].Text, fmt.Sprintf("// %d. ", steps+1)) {
			steps++
			isNumbered[end] = true
		}
	}
	// 2. Each statement after an empty line needs a numbered comment above it.
	last := -1
	for _, statement := range f.Body.List {
		line := set.Position(statement.Pos()).Line
		start, hasComment := starts[line-1]
		if !hasComment {
			start = line
		}
		if start > last+1 && !isNumbered[line-1] {
			return false
		}
		last = set.Position(statement.End()).Line
	}
	return steps > 1
}
