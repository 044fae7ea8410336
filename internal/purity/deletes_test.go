// SPDX-License-Identifier: Apache-2.0

package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// decidesDeletes are the packages that decide which objects are deleted, with everything below them.
var decidesDeletes = []string{"catalog", "subscription", "installplan", "csv", "controllers", "preview"}

// deletesByUID are the functions that may delete an object whatever its resourceVersion is, each with the reason why
// the UID is enough. A Delete of olmcore.DeleteOf has both as preconditions, and needs no row. A row is right only
// where nothing that the object itself contains is a reason for its deletion: labels, annotations, owner references,
// spec and status may change between the read and the write. No function of today is of that kind. Even an operand,
// which is deleted because its ClusterServiceVersion is, stays if it has the annotation that keeps it.
var deletesByUID = map[string]string{}

// TestDeletesCarryTheResourceVersion checks that packages make a Delete with olmcore.DeleteOf, which carries the
// resourceVersion, or have a row in deletesByUID.
func TestDeletesCarryTheResourceVersion(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range decidesDeletes {
		eachFile(t, dir, func(path string, file *ast.File, fset *token.FileSet) {
			for _, function := range unversionedDeletes(filepath.ToSlash(filepath.Dir(path)), file) {
				found[function] = true
				if deletesByUID[function] == "" {
					t.Errorf("%s: %s makes a Delete without olmcore.DeleteOf: use it, or say in deletesByUID why the UID is enough", path, function)
				}
			}
		})
	}
	for _, function := range slices.Sorted(maps.Keys(deletesByUID)) {
		if !found[function] {
			t.Errorf("deletesByUID has a row for %s, which makes no such Delete", function)
		}
	}
}

// TestTheCheckFindsUnversionedDeletes checks each way to make a Delete that has no resourceVersion.
func TestTheCheckFindsUnversionedDeletes(t *testing.T) {
	for body, want := range map[string]int{
		`return olmcore.DeleteOf(o, why)`:                                                 0,
		`a := olmcore.DeleteOf(o, why); a.As = nil; return a`:                             0,
		`return olmcore.Delete{Target: olmcore.RefOf(o)}`:                                 1,
		`return &olmcore.Delete{}`:                                                        1,
		`var a olmcore.Delete; return a`:                                                  1,
		`a := olmcore.DeleteOf(o, why); a.Target = olmcore.RefOf(o); return a`:            1,
		`a := olmcore.DeleteOf(o, why); a.Target.ResourceVersion = ""; return a`:          1,
		`a := []olmcore.Delete{{Target: olmcore.RefOf(o)}}; return a[0]`:                  1,
		`_, target, _ := a.Describe(); return target.Unversioned()`:                       0,
		`pl.deletes = append(pl.deletes, olmcore.DeleteOf(o, why)); return pl.deletes[0]`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p; func f() any { "+body+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := unversionedDeletes("p", file); len(got) != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// unversionedDeletes returns the functions of a file, as "folder.Function", that make a Delete other than with
// olmcore.DeleteOf, or that change the target of an action.
func unversionedDeletes(folder string, file *ast.File) (functions []string) {
	for _, declaration := range file.Decls {
		name := "variables"
		function, isFunction := declaration.(*ast.FuncDecl)
		if isFunction {
			name = function.Name.Name
		} else if d := declaration.(*ast.GenDecl); d.Tok != token.VAR {
			continue // types do not make a Delete
		}
		makes, calls, retargets := false, false, false
		ast.Inspect(declaration, func(n ast.Node) bool {
			_, isSignature := n.(*ast.FuncType)
			makes, calls, retargets = makes || makesDelete(n), calls || callsDeleteOf(n), retargets || changesTarget(n)
			return !isSignature
		})
		if makes || calls && retargets {
			functions = append(functions, folder+"."+name)
		}
	}
	return functions
}

func makesDelete(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		list, isList := n.Type.(*ast.ArrayType)
		return isDelete(n.Type) || isList && isDelete(list.Elt) && len(n.Elts) > 0
	case *ast.ValueSpec:
		return isDelete(n.Type)
	}
	return false
}

func callsDeleteOf(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	return ok && isOf(call.Fun, "DeleteOf")
}

func changesTarget(n ast.Node) bool {
	a, ok := n.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, isTarget)
}

// isDelete reports whether an expression is the type olmcore.Delete.
func isDelete(e ast.Expr) bool { return isOf(e, "Delete") }

// isOf reports whether an expression is a name of package olmcore.
func isOf(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "olmcore"
}

// isTarget reports whether an expression is the target of an action, or a field of it.
func isTarget(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Target" || isTarget(s.X))
}
