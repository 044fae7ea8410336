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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// TestDocumentsNameTestsThatExist looks at everything in backticks that is written as
// DIR:TestName, DIR:TestName/case or a file of testdata, in every document.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	packages, named := map[string]*tests{}, 0
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, match := range backticked.FindAllStringSubmatch(line, -1) {
				ref, ok := parseReference(match[1])
				if !ok {
					continue
				}
				named++
				if problem := ref.problem(packages); problem != "" {
					t.Errorf("%s:%d: %s", path, i+1, problem)
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d tests are named", named)
	}
}

// documents are the Markdown files of the repository.
func documents(t *testing.T) []string {
	return files(t, func(name string) bool { return strings.HasSuffix(name, ".md") })
}

// files are the files of the repository whose name is wanted, test data aside.
func files(t *testing.T, wanted func(name string) bool) (paths []string) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() && wanted(d.Name()) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// securityColumns are those of the tables about what a tenant may write.
var securityColumns = []string{"what he may write", "what the library does with it, as which identity", "what is refused", "how to switch", "test"}

func TestEveryRowOfTheSecurityPageHasATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkSecurity(string(text)) {
		t.Error("docs/security.md:" + problem)
	}
}

func TestRowsOfTheSecurityPageWithoutATestAreNamed(t *testing.T) {
	head := "| " + strings.Join(securityColumns, " | ") + " |\n|---|---|---|---|---|\n"
	want := []string{
		"4: nothing shows it",
		"5: no test TestNowhere in internal/repository",
		"6: 3 columns, expected 5",
		"7: says nothing",
	}
	got := checkSecurity(head + strings.Join([]string{
		"| a | b | c | d | `internal/repository:TestRowsOfTheSecurityPageWithoutATestAreNamed` |",
		"| a | b | c | d | one day |",
		"| a | b | c | d | `internal/repository:TestNowhere` |",
		"| a | b | c |",
		"| | b | c | d | `internal/repository:TestNowhereElse` |",
		"",
		"| another | table |",
		"|---|---|",
		"| is | free |",
	}, "\n"))
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := checkSecurity("no table"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// checkSecurity returns what is wrong with the tables of the security page.
func checkSecurity(text string) []string {
	var problems []string
	packages := map[string]*tests{}
	var columns []string // of the table that the line is in
	rows := 0
	for i, line := range strings.Split(text, "\n") {
		cells := cellsOf(line)
		switch {
		case cells == nil:
			columns = nil
			continue
		case columns == nil:
			columns = cells
			continue
		case !slices.Equal(columns, securityColumns) || strings.Trim(line, "|- ") == "":
			continue
		}
		rows++
		for _, problem := range checkSecurityRow(cells, packages) {
			problems = append(problems, fmt.Sprintf("%d: %s", i+1, problem))
		}
	}
	if rows == 0 {
		problems = append(problems, "no row")
	}
	return problems
}

func checkSecurityRow(cells []string, packages map[string]*tests) []string {
	if len(cells) != len(securityColumns) {
		return []string{fmt.Sprintf("%d columns, expected %d", len(cells), len(securityColumns))}
	}
	if cells[0] == "" || cells[1] == "" {
		return []string{"says nothing"}
	}
	var problems []string
	shown := backticked.FindAllStringSubmatch(cells[len(cells)-1], -1)
	if len(shown) == 0 {
		problems = append(problems, "nothing shows it")
	}
	for _, match := range shown {
		ref, ok := parseReference(match[1])
		if !ok {
			problems = append(problems, match[1]+" is no test")
		} else if problem := ref.problem(packages); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

// cellsOf returns the cells of a line of a table, nil for any other line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

var (
	backticked = regexp.MustCompile("`([^`]+)`")
	testName   = regexp.MustCompile(`^(?:([a-z][a-z/-]*):)?((?:Test|Fuzz|Example|Benchmark)[A-Z]\w*)(?:/(.+))?$`)
	testFile   = regexp.MustCompile(`^(?:([a-z][a-z/-]*):)?(testdata/[\w./-]+\.\w+)$`)
)

// reference is what a document names: a test of a package, a case of it, or a file.
// Without a folder it may be of any package.
type reference struct{ dir, test, name, file string }

func parseReference(text string) (reference, bool) {
	if m := testName.FindStringSubmatch(text); m != nil {
		return reference{dir: m[1], test: m[2], name: m[3]}, true
	}
	if m := testFile.FindStringSubmatch(text); m != nil {
		return reference{dir: m[1], file: m[2]}, true
	}
	return reference{}, false
}

// problem says what the reference names that does not exist.
func (r reference) problem(packages map[string]*tests) string {
	dirs := []string{r.dir}
	if r.dir == "" {
		dirs = testDirs()
	}
	for _, dir := range dirs {
		if packages[dir] == nil {
			packages[dir] = testsOf(dir)
		}
		if packages[dir].have(r) {
			return ""
		}
	}
	where := " in " + r.dir
	if r.dir == "" {
		where = ""
	}
	switch {
	case r.file != "":
		return "no file " + r.file + where
	case r.name != "" && r.dir != "" && packages[r.dir].functions[r.test]:
		return fmt.Sprintf("no case %q of %s%s", r.name, r.test, where)
	}
	return "no test " + r.test + where
}

// testDirs are the folders with tests.
var testDirs = sync.OnceValue(func() []string {
	found := map[string]bool{}
	_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			dir, _ := filepath.Rel(root, filepath.Dir(path))
			found[dir] = true
		}
		return nil
	})
	dirs := make([]string, 0, len(found))
	for dir := range found {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
})

// tests are the test functions of a package, and every string in their files: names
// of cases are among these.
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

func (s *tests) have(ref reference) bool {
	if ref.file != "" {
		_, err := os.Stat(filepath.Join(s.dir, ref.file))
		return err == nil
	}
	return s.functions[ref.test] && (ref.name == "" || s.hasCase(ref.name))
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
