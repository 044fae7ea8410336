// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

func TestEveryRowNamesTestsThatExist(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "conformance", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no page: %v", err)
	}
	packages := map[string]*tests{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(string(text))
		if err != nil {
			t.Errorf("%s:%v", path, err)
			continue
		}
		for _, problem := range check(p, packages) {
			t.Errorf("%s:%s", path, problem)
		}
	}
}

func TestProblemsAreNamed(t *testing.T) {
	p, err := parse(strings.Join([]string{
		"# What holds: internal/conformance",
		"## Properties",
		"| id | what holds | shown by |",
		"|---|---|---|",
		"| 1 | rows are read | `TestProblemsAreNamed`, `page_test.go` |",
		"| 2 | a case is looked for | `TestProblemsAreNamed/a case that stands here` |",
		"| 3 | a test of another package | `internal/purity:TestReconcilePackagesSeeNothingButTheirInput` |",
		"| 4 | nothing shows it | none |",
		"| 4 | | later: one day |",
		"| 5 | a missing test | `TestNowhere` |",
		"| 6 | a missing file | `testdata/nowhere.txt` |",
		"| 7 | a missing case | `TestProblemsAreNamed/" + "there is no such case` |",
		"| 8 | a missing package | `nowhere:TestX` |",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"8: Properties 4: nothing shows it",
		"9: Properties 4: twice",
		"9: Properties 4: says nothing",
		"10: Properties 5: no test TestNowhere in internal/conformance",
		"11: Properties 6: no file testdata/nowhere.txt in internal/conformance",
		`12: Properties 7: no case "there is no such case" in internal/conformance`,
		"13: Properties 8: no test TestX in nowhere",
	}
	t.Run("a case that stands here", func(t *testing.T) {
		if got := check(p, map[string]*tests{}); !slices.Equal(got, want) {
			t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	if _, err := parse("| 1 | two columns |"); err == nil || err.Error() != "1: 2 columns, expected id, what holds, shown by" {
		t.Errorf("got %v", err)
	}
}

// check returns what is wrong with a page, with line, section and id.
func check(p page, packages map[string]*tests) []string {
	var problems []string
	seen := map[string]bool{}
	for _, r := range p.rows {
		report := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%d: %s %s: ", r.line, r.section, r.id)+fmt.Sprintf(format, args...))
		}
		if seen[r.section+"/"+r.id] {
			report("twice")
		}
		seen[r.section+"/"+r.id] = true
		if r.what == "" {
			report("says nothing")
		}
		if len(r.references) == 0 && !r.deviation && !r.deferred {
			report("nothing shows it")
		}
		for _, ref := range r.references {
			if r.deviation || r.deferred {
				continue
			}
			if ref.dir == "" {
				ref.dir = p.dir
			}
			if packages[ref.dir] == nil {
				packages[ref.dir] = testsOf(ref.dir)
			}
			if problem := packages[ref.dir].problem(ref); problem != "" {
				report("%s in %s", problem, ref.dir)
			}
		}
	}
	return problems
}

// tests are the test functions of a package, and every string in their files:
// names of cases are among these.
type tests struct {
	dir       string
	functions map[string]bool
	strings   map[string]bool
}

func testsOf(dir string) *tests {
	found := &tests{dir: filepath.Join(root, dir), functions: map[string]bool{}, strings: map[string]bool{}}
	paths, _ := filepath.Glob(filepath.Join(found.dir, "*_test.go"))
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					found.functions[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					found.strings[text] = true
				}
			}
			return true
		})
	}
	return found
}

func (s *tests) problem(ref reference) string {
	switch {
	case ref.file != "":
		if _, err := os.Stat(filepath.Join(s.dir, ref.file)); err != nil {
			return "no file " + ref.file
		}
	case !s.functions[ref.test]:
		return "no test " + ref.test
	case ref.name != "" && !s.hasCase(ref.name):
		return fmt.Sprintf("no case %q", ref.name)
	}
	return ""
}

// hasCase accepts a name as a whole, or each of its parts where cases nest.
func (s *tests) hasCase(name string) bool {
	if s.named(name) {
		return true
	}
	parts := strings.Split(name, "/")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return !s.named(part) })
}

func (s *tests) named(name string) bool {
	if s.strings[name] {
		return true
	}
	_, err := os.Stat(filepath.Join(s.dir, "testdata", name+".txt"))
	return err == nil
}
