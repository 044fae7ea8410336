// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of a function and of a line. Beyond them a reader loses the thread.
const (
	maxComplexity = 14
	maxColumns    = 140
	maxComment    = 120 // columns of a comment
)

// A finding is one violation of a ruler. Its key is the function or folder that an exception names.
type finding struct{ key, problem string }

// rulers measure a file. To add one, add a row, and its exceptions of today to testdata/exceptions.txt.
var rulers = []struct {
	name    string
	measure func(goFile) []finding
}{
	{"complexity", complexFunctions},
	{"columns", longLines},
	{"message", decisionsFromMessages},
	{"if", ifsWithForeignVariables},
	{"assignment", crowdedAssignments},
	{"embedding", embeddedFacts},
}

// goFile is a parsed file, with its path below the root of the repository.
type goFile struct {
	path string
	text string
	set  *token.FileSet
	file *ast.File
}

func (f goFile) folder() string { return filepath.ToSlash(filepath.Dir(f.path)) }

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns the place of a node, for a message.
func (f goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(n.Pos()).Line)
}

// functions calls do for each function of a file that is not a test, with the key that exceptions use. Functions in the
// rows of a table count, too.
func (f goFile) functions(do func(key string, function ast.Node)) {
	f.declarations(func(key string, d ast.Decl) {
		if _, ok := d.(*ast.FuncDecl); ok {
			do(key, d)
			return
		}
		ast.Inspect(d, func(n ast.Node) bool {
			literal, ok := n.(*ast.FuncLit)
			if ok {
				do(key, literal)
			}
			return !ok
		})
	})
}

// declarations calls do for each declaration of a file that is not a test. The key of variables is their folder.
func (f goFile) declarations(do func(key string, d ast.Decl)) {
	if f.isTest() {
		return
	}
	for _, d := range f.file.Decls {
		key := f.folder()
		if d, ok := d.(*ast.FuncDecl); ok {
			key += ":" + d.Name.Name
			if d.Recv != nil {
				key = f.folder() + ":" + receiverOf(d) + "." + d.Name.Name
			}
		}
		do(key, d)
	}
}

// TestRulersFindNothingNew checks that every file keeps the limits, except for the violations in
// testdata/exceptions.txt. The list may only get shorter: OLMCORE_UPDATE=1 removes what is repaired and never adds.
func TestRulersFindNothingNew(t *testing.T) {
	allowed, places := readExceptions(t), map[exception][]string{}
	for _, f := range goFiles(t) {
		for _, ruler := range rulers {
			for _, found := range ruler.measure(f) {
				e := exception{ruler.name, found.key}
				places[e] = append(places[e], found.problem)
			}
		}
	}
	for e, problems := range places {
		if len(problems) > allowed[e] {
			t.Errorf("%s %s: %d violations, %d allowed:\n\t%s", e.ruler, e.key, len(problems), allowed[e], strings.Join(problems, "\n\t"))
		}
	}
	left := map[exception]int{}
	for e, n := range allowed {
		if n = min(n, len(places[e])); n > 0 {
			left[e] = n
		}
	}
	switch {
	case maps.Equal(left, allowed):
	case os.Getenv("OLMCORE_UPDATE") != "":
		writeExceptions(t, left)
	default:
		t.Error("testdata/exceptions.txt allows more than there is: run OLMCORE_UPDATE=1 go test ./internal/repository -run Rulers")
	}
}

// exception is a row of testdata/exceptions.txt: it allows a number of violations.
type exception struct{ ruler, key string }

var exceptionsPath = filepath.Join("testdata", "exceptions.txt")

func readExceptions(t *testing.T) map[exception]int {
	text, err := os.ReadFile(exceptionsPath)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[exception]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("%s: %q does not have three fields", exceptionsPath, line)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		allowed[exception{fields[0], fields[1]}] = n
	}
	return allowed
}

func writeExceptions(t *testing.T, allowed map[exception]int) {
	var rows []string
	for e, n := range allowed {
		rows = append(rows, fmt.Sprintf("%s %s %d\n", e.ruler, e.key, n))
	}
	slices.Sort(rows)
	text := "# Violations that are allowed: ruler, function or folder, number. The list may only get shorter.\n" + strings.Join(rows, "")
	if err := os.WriteFile(exceptionsPath, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goFiles returns the files of the library and of the other folders.
func goFiles(t *testing.T) (files []goFile) {
	for _, dir := range slices.Concat(library, others) {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go":
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			below, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			f, err := parseFile(below, string(text))
			files = append(files, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func parseFile(path, text string) (goFile, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	return goFile{path: path, text: text, set: set, file: file}, err
}

// complexFunctions finds functions with more than maxComplexity paths: one, and one more for each branch and each &&
// and ||.
func complexFunctions(f goFile) (found []finding) {
	f.functions(func(key string, d ast.Node) {
		paths := 1
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
				paths++
			case *ast.CaseClause:
				if n.List != nil {
					paths++
				}
			case *ast.CommClause:
				if n.Comm != nil {
					paths++
				}
			case *ast.BinaryExpr:
				if n.Op == token.LAND || n.Op == token.LOR {
					paths++
				}
			}
			return true
		})
		if paths > maxComplexity {
			found = append(found, finding{key: key, problem: fmt.Sprintf("%s: complexity %d", f.at(d), paths)})
		}
	})
	return found
}

// longLines finds lines with more than maxColumns, and comments with more than maxComment. A tab counts as one column.
func longLines(f goFile) (found []finding) {
	number := 0
	for line := range strings.Lines(f.text) {
		number++
		columns, limit := utf8.RuneCountInString(strings.TrimRight(line, "\n")), maxColumns
		if strings.HasPrefix(strings.TrimSpace(line), "// ") {
			limit = maxComment
		}
		if columns > limit {
			found = append(found, finding{key: keyOfFolder(f), problem: fmt.Sprintf("%s:%d: %d columns", f.path, number, columns)})
		}
	}
	return found
}

// keyOfFolder returns the folder of a file, with a mark for tests.
func keyOfFolder(f goFile) string {
	if f.isTest() {
		return f.folder() + ":tests"
	}
	return f.folder()
}

// readers are the functions of package strings that a decision from a text uses.
var readers = regexp.MustCompile(`^(HasPrefix|HasSuffix|Contains|ContainsAny|Cut|CutPrefix|CutSuffix|Index|LastIndex|EqualFold)$`)

// matchers are the methods of regular expressions that a decision from a text uses.
var matchers = regexp.MustCompile(`^(MatchString|FindString|FindStringSubmatch|FindStringIndex)$`)

// foreign are the files that read messages which OLM, the API server or a kubelet wrote.
var foreign = map[string]string{
	"olmcore/errors.go":              "the API server, whose reasons do not tell a webhook or a precondition from other errors",
	"subscription/health/plan.go":    "OLM, whose failed InstallPlans name the step only in a message",
	"subscription/health/version.go": "OLM, whose requirements contain the rule of a missing permission only in a message",
	"installplan/memory.go":          "OLM, whose InstallPlans record only in a message why they do not progress",
	"subscription/unpacking.go":      "a kubelet and OLM's unpacker, whose bundle lookups say only in a message why an image is not pulled",
	"examples/registry/problem.go":   "gRPC, whose client reports a message that is too large with a code of many meanings",
}

// decisionsFromMessages finds conditions that depend on the text of a message. What a call must remember is a reason or
// an annotation, so that a message can be reworded.
func decisionsFromMessages(f goFile) (found []finding) {
	if foreign[f.path] != "" {
		return nil
	}
	constants := constantsOf(f)
	f.declarations(func(key string, d ast.Decl) {
		ast.Inspect(d, func(n ast.Node) bool {
			reads := false
			switch n := n.(type) {
			case *ast.CallExpr:
				callee, ok := n.Fun.(*ast.SelectorExpr)
				isReader := ok && (isName(callee.X, "strings") && readers.MatchString(callee.Sel.Name) || matchers.MatchString(callee.Sel.Name))
				reads = isReader && slices.ContainsFunc(n.Args, isMessage)
			case *ast.SwitchStmt:
				reads = n.Tag != nil && isMessage(n.Tag)
			case *ast.IndexExpr:
				reads = isMessage(n.Index)
			case *ast.BinaryExpr:
				isComparison := n.Op == token.EQL || n.Op == token.NEQ
				reads = isComparison && (isMessage(n.X) && isText(n.Y, constants) || isText(n.X, constants) && isMessage(n.Y))
			}
			if reads {
				found = append(found, finding{key: key, problem: f.at(n)})
			}
			return true
		})
	})
	return found
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// isMessage reports whether an expression is a message: a field with this name, or a variable.
func isMessage(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return strings.HasSuffix(strings.ToLower(e.Sel.Name), "message")
	case *ast.Ident:
		return e.Name == "message" || e.Name == "msg"
	}
	return false
}

// isText reports whether an expression builds a text: a literal that is not empty, a constant, a concatenation or a
// call.
func isText(e ast.Expr, constants map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && len(e.Value) > 2
	case *ast.BinaryExpr, *ast.CallExpr:
		return true
	case *ast.Ident:
		return constants[e.Name]
	}
	return false
}

// constantsOf returns the names of the constants that a file declares for its package.
func constantsOf(f goFile) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				names[name.Name] = true
			}
		}
	}
	return names
}

// ifsWithForeignVariables finds an if that declares a variable and tests more than that variable.
func ifsWithForeignVariables(f goFile) (found []finding) {
	f.functions(func(key string, d ast.Node) {
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.IfStmt)
			if !ok || s.Init == nil {
				return true
			}
			if assign, ok := s.Init.(*ast.AssignStmt); ok && !testsOnly(s.Cond, assign) {
				found = append(found, finding{key: f.folder(), problem: f.at(s)})
			}
			return true
		})
	})
	return found
}

// testsOnly reports whether a condition tests one variable that an assignment declares, and nothing else. A comparison
// may name constants and what the variable is compared with.
func testsOnly(cond ast.Expr, assign *ast.AssignStmt) bool {
	simple := true
	ast.Inspect(cond, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			simple = false
		}
		return simple
	})
	if !simple {
		return false
	}
	tested := false
	ast.Inspect(cond, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		tested = tested || ok && slices.ContainsFunc(assign.Lhs, func(l ast.Expr) bool { return isName(l, id.Name) })
		return !tested
	})
	return tested
}

// crowdedAssignments finds assignments of three and more values that are not results of one call.
func crowdedAssignments(f goFile) (found []finding) {
	f.functions(func(key string, d ast.Node) {
		ast.Inspect(d, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Rhs) > 2 {
				found = append(found, finding{key: f.folder(), problem: f.at(assign)})
			}
			return true
		})
	})
	return found
}

// embeddedFacts finds unexported structs that embed facts, a decision or an Input. Embedded, their fields look like
// those of the struct, and a reader does not see what is only read.
func embeddedFacts(f goFile) (found []finding) {
	f.declarations(func(key string, d ast.Decl) {
		ast.Inspect(d, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.IsExported() {
				return !ok
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range s.Fields.List {
				if len(field.Names) == 0 && isFacts(field.Type) {
					found = append(found, finding{key: key, problem: f.at(field)})
				}
			}
			return false
		})
	})
	return found
}

// isFacts reports whether a type is named facts, decision or Input, of whatever package, or a pointer to it.
func isFacts(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return isFacts(e.X)
	case *ast.SelectorExpr:
		return isFacts(e.Sel)
	case *ast.Ident:
		return e.Name == "facts" || e.Name == "decision" || e.Name == "Input"
	}
	return false
}
