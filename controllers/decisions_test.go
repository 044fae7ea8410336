// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notCalled are the exported decisions that controllers do not call, with the reason.
var notCalled = map[string]string{
	"catalog.Assess":            "tells a person what a CatalogSource is at",
	"catalog.Content":           "is asked for by clients that read catalogs, such as examples/registry",
	"subscription.Assess":       "tells a person what a Subscription is at",
	"installplan.Assess":        "tells a person what an InstallPlan is at",
	"subscription.PlanDeletion": "is asked for by whoever is about to delete a Subscription",
	"cleanup.Reconcile":         "is part of csv.Reconcile",
	"component.Labels":          "is part of subscription.Reconcile",
}

// TestEveryDecisionIsCalled lists the exported functions that take an Input: a cluster needs each of them, or notCalled
// says why not.
func TestEveryDecisionIsCalled(t *testing.T) {
	decisions := map[string]bool{}
	for _, dir := range []string{
		"catalog", "subscription", "installplan", "csv", "csv/operatorgroup", "csv/operatorcondition", "csv/copies", "csv/permissions",
		"csv/cleanup", "csv/sweep", "installplan/create", "installplan/sweep", "installplan/unpack", "subscription/component",
	} {
		for _, name := range decisionsOf(t, filepath.Join("..", dir)) {
			decisions[filepath.Base(dir)+"."+name] = true
		}
	}
	require.Greater(t, len(decisions), 15)
	called := map[string]bool{}
	calls := regexp.MustCompile(
		`\b(?:catalog|subscription|installplan|csv|operatorgroup|operatorcondition|copies|permissions|cleanup|sweep|create|unpack|component)` +
			`\.[A-Z]\w*\(`)
	for _, source := range sources(t, ".") {
		for _, match := range calls.FindAllString(source, -1) {
			called[strings.TrimSuffix(match, "(")] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(decisions)) {
		_, excused := notCalled[name]
		require.NotEqual(t, called[name], excused, "%s: controllers calls it, or notCalled says why not", name)
	}
	for name := range notCalled {
		require.True(t, decisions[name], "%s is no decision", name)
	}
}

// decisionsOf returns the exported functions of a folder whose one parameter is an Input.
func decisionsOf(t *testing.T, dir string) (names []string) {
	for _, source := range sources(t, dir) {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv != nil || !f.Name.IsExported() || f.Type.Params.NumFields() != 1 || f.Type.Results.NumFields() == 0 {
				continue
			}
			in, is := f.Type.Params.List[0].Type.(*ast.Ident)
			if is && strings.HasSuffix(in.Name, "Input") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// sources returns the files of a folder, without its tests.
func sources(t *testing.T, dir string) (all []string) {
	paths, err := fs.Glob(os.DirFS(dir), "*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			source, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
			all = append(all, string(source))
		}
	}
	return all
}
