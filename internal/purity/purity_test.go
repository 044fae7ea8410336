// SPDX-License-Identifier: Apache-2.0

package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages whose functions see nothing but their arguments.
var pure = []string{
	"internal/apigroup", "internal/builtin", "internal/checkpoint", "internal/inputs", "internal/installer", "internal/jsonvalue",
	"internal/nilcheck", "internal/objecthash", "internal/ownerrefs", "internal/plans", "internal/printable",
	"internal/ruletable", "internal/spelling", "internal/terms", "internal/yamljson",
	"olmcore", "catalog", "subscription", "installplan", "csv",
}

// quiet are the other packages that users import: they may simulate, not reach out.
var quiet = []string{"fake", "preview"}

// withContext are the only files of pure packages that may import context.
var withContext = []string{"execute.go", "reader.go", "snapshot.go", "gather.go"}

// forbiddenImports are refused with everything below them.
var forbiddenImports = []string{
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net", "os", "log", "math/rand", "crypto/rand",
	"sync", "unsafe", "runtime", "github.com/sirupsen/logrus", "k8s.io/klog", "github.com/go-logr/logr", "github.com/prometheus",
	"testing", "syscall", "plugin", "io/ioutil", "path/filepath",
}

// forbiddenCalls are functions of allowed packages.
var forbiddenCalls = []string{
	"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Sleep", "time.Tick", "time.NewTimer", "time.NewTicker",
	"metav1.Now", "metav1.NowMicro", "fmt.Print", "fmt.Println", "fmt.Printf", "context.Background", "context.TODO",
	"uuid.NewUUID", "uuid.New",
}

// forbiddenMethods start goroutines, panic or read the clock in the API types.
var forbiddenMethods = []string{"SetPhaseWithEvent", "SetPhaseWithEventIfChanged"}

// reconcilers never import each other; only what is listed here may be imported from this module.
var allowedModuleImports = map[string][]string{
	"internal/apigroup":   {"olmcore"},
	"internal/builtin":    nil,
	"internal/checkpoint": {"internal/nilcheck"},
	"internal/inputs":     {"internal/checkpoint", "internal/nilcheck", "olmcore"},
	"internal/installer":  nil,
	"internal/jsonvalue":  nil,
	"internal/nilcheck":   nil,
	"internal/objecthash": nil,
	"internal/ownerrefs":  {"olmcore"},
	"internal/plans":      {"olmcore"},
	"internal/printable":  nil,
	"internal/ruletable":  {"olmcore"},
	"internal/terms":      {"olmcore"},
	"internal/yamljson":   nil,
	"internal/spelling":   nil,
	// olmcore/decode needs spelling and yamljson.
	"olmcore": {
		"internal/checkpoint",
		"internal/jsonvalue",
		"internal/nilcheck",
		"internal/objecthash",
		"internal/printable",
		"internal/spelling",
		"internal/yamljson",
	},
	"catalog": {
		"internal/checkpoint", "internal/inputs", "internal/objecthash", "internal/ownerrefs", "internal/printable", "olmcore",
	},
	"subscription": {
		"internal/checkpoint", "internal/inputs", "internal/plans", "internal/printable", "internal/spelling", "internal/yamljson",
		"olmcore", "olmcore/decode",
	},
	"installplan": {
		"internal/apigroup", "internal/builtin", "internal/checkpoint", "internal/inputs", "internal/installer", "internal/objecthash",
		"internal/ownerrefs", "internal/plans",
		"internal/printable", "internal/ruletable", "internal/yamljson", "olmcore", "olmcore/decode",
	},
	"csv": {
		"internal/apigroup", "internal/builtin", "internal/checkpoint", "internal/inputs", "internal/installer", "internal/objecthash",
		"internal/ownerrefs", "internal/printable",
		"internal/ruletable", "internal/terms", "olmcore", "olmcore/decode",
	},
}

const module = "github.com/olmcore/olm/"

func TestReconcilePackagesSeeNothingButTheirInput(t *testing.T) {
	for _, dir := range pure {
		eachFile(t, dir, func(path string, file *ast.File, fset *token.FileSet) {
			checkModuleImports(t, dir, path, file)
			if !isLoop(path) {
				check(t, path, file, fset, true)
			}
		})
	}
}

// isLoop reports whether a file belongs to the package that runs reconcile functions. It has a context and a lock.
func isLoop(path string) bool {
	return strings.HasPrefix(filepath.ToSlash(path), "olmcore/controller/")
}

func TestTheLoopUsesOnlyALockAndAContext(t *testing.T) {
	eachFile(t, "olmcore/controller", func(path string, file *ast.File, fset *token.FileSet) {
		for _, problem := range problems(path, file, fset, false) {
			if !strings.Contains(problem, "uses sync.RWMutex") {
				t.Error(problem)
			}
		}
	})
}

func TestTheFakeWorldIsDeterministic(t *testing.T) {
	for _, dir := range quiet {
		eachFile(t, dir, func(path string, file *ast.File, fset *token.FileSet) {
			if strings.HasPrefix(filepath.ToSlash(path), "fake/gen/") || strings.HasPrefix(filepath.ToSlash(path), "fake/scenario/") {
				return // generators import rapid; the runner reads and writes its files
			}
			check(t, path, file, fset, false)
		})
	}
}

// TestTheCheckItselfFindsWhatItForbids keeps the checker honest.
func TestTheCheckItselfFindsWhatItForbids(t *testing.T) {
	for name, source := range map[string]string{
		"a client":         `package p; import _ "k8s.io/client-go/kubernetes"`,
		"the network":      `package p; import _ "net/http"`,
		"the clock":        `package p; import "time"; var _ = time.Now()`,
		"a renamed clock":  `package p; import clock "time"; var _ = clock.Since`,
		"a nameless clock": `package p; import . "time"; var _ = Now()`,
		"the file system":  `package p; import _ "path/filepath"`,
		"a goroutine":      `package p; func f() { go f() }`,
		"a context":        `package p; import _ "context"`,
		"an API goroutine": `package p; func f(c interface{ SetPhaseWithEvent() }) { c.SetPhaseWithEvent() }`,
		"a panic":          `package p; func f() { panic("no") }`,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems("p/p.go", file, fset, true)) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestTheFakeWorldMayOnlyMakeTablesOnce: of package sync it has OnceValue alone.
func TestTheFakeWorldMayOnlyMakeTablesOnce(t *testing.T) {
	for source, want := range map[string]int{
		`package p; import "sync"; var _ = sync.OnceValue(func() int { return 1 })`: 0,
		`package p; import "sync"; var _ sync.Mutex`:                                1,
		`package p; import s "sync"; var _ s.Map`:                                   1,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := problems("p/p.go", file, fset, false); len(got) != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

func eachFile(t *testing.T, dir string, visit func(string, *ast.File, *token.FileSet)) {
	t.Helper()
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != filepath.Join(root, dir) {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // a module of its own
			}
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files++
		visit(relative, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatalf("no sources in %s", dir)
	}
}

func check(t *testing.T, path string, file *ast.File, fset *token.FileSet, strict bool) {
	t.Helper()
	for _, p := range problems(path, file, fset, strict) {
		t.Error(p)
	}
}

func problems(path string, file *ast.File, fset *token.FileSet, strict bool) []string {
	var found []string
	report := func(node ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", path, fset.Position(node.Pos()).Line, fmt.Sprintf(format, args...)))
	}
	names := map[string]string{} // local name to import path
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		local := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imported
		if local == "." {
			report(spec, "imports %s without a name, so that its functions cannot be told", imported)
		}
		if imported == "sync" && !strict {
			continue // what is computed once
		}
		if i := slices.IndexFunc(forbiddenImports, func(f string) bool { return imported == f || strings.HasPrefix(imported, f+"/") }); i >= 0 {
			report(spec, "imports %s", imported)
		}
		if imported == "context" && strict && !slices.Contains(withContext, filepath.Base(path)) {
			report(spec, "imports context, which only %v may", withContext)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "starts a goroutine")
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && strict && (id.Name == "panic" || id.Name == "print" || id.Name == "println") {
				report(n, "calls %s", id.Name)
			}
		case *ast.SelectorExpr:
			if slices.Contains(forbiddenMethods, n.Sel.Name) {
				report(n, "calls %s", n.Sel.Name)
			}
			if id, ok := n.X.(*ast.Ident); ok && names[id.Name] == "sync" && n.Sel.Name != "OnceValue" {
				report(n, "uses sync.%s; only a table made once is allowed", n.Sel.Name)
			}
			if id, ok := n.X.(*ast.Ident); ok && isForbidden(names[id.Name], id.Name, n.Sel.Name) && (strict || names[id.Name] != "context") {
				report(n, "uses %s.%s", id.Name, n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// isForbidden looks a qualified name up by the real package, whatever its local
// name, and by the alias that the house prescribes.
func isForbidden(importPath, local, name string) bool {
	real := importPath[strings.LastIndex(importPath, "/")+1:]
	if importPath == "k8s.io/apimachinery/pkg/apis/meta/v1" {
		real = "metav1"
	}
	return importPath != "" && (slices.Contains(forbiddenCalls, real+"."+name) || slices.Contains(forbiddenCalls, local+"."+name))
}

func checkModuleImports(t *testing.T, dir, path string, file *ast.File) {
	t.Helper()
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		inside, ok := strings.CutPrefix(imported, module)
		if !ok || inside == dir || strings.HasPrefix(inside, dir+"/") {
			continue
		}
		if !slices.Contains(allowedModuleImports[dir], inside) {
			t.Errorf("%s: %s may not import %s", path, dir, inside)
		}
	}
}
