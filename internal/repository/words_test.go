// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// riddles are words that comments used for what the field has a term for, and codes of
// rules that stand in no document here.
var riddles = regexp.MustCompile(`(?i)\b(nobody|somebody|heirs?|rivals?|strangers?|plight|sightings?|patience|stand-ins?)\b|\b[A-Z]-?[0-9]{2}\b`)

// terms are what looks like a code and is none.
var terms = regexp.MustCompile(`\bP-?(256|384|521)\b|\bX509\b|\bUTF-?(8|16)\b|\bSHA-?\d+\b|\bE[0-9]{2}\b|\bV[0-9]+\b`)

// code is what documents quote: names of tests, and of files.
var code = regexp.MustCompile("`[^`]*`")

// TestDocumentsUsePlainSentences in what users read.
func TestDocumentsUsePlainSentences(t *testing.T) {
	riddle := regexp.MustCompile(`(?i)\b(nobody|somebody|everybody)\b`)
	files := 0
	for _, dir := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if word := riddle.FindString(code.ReplaceAllString(line, "")); word != "" {
					t.Errorf("%s:%d says %q", path, i+1, word)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 10 {
		t.Errorf("only %d documents", files)
	}
}

func TestCommentsUseTheWordsOfTheField(t *testing.T) {
	for _, dir := range append([]string{"fake", "examples"}, library...) {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				if word := riddles.FindString(terms.ReplaceAllString(group.Text(), "")); word != "" {
					t.Errorf("%s: a comment says %q", set.Position(group.Pos()), word)
				}
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") && riddles.MatchString(f.Name.Name) {
					t.Errorf("%s: the name of a test", set.Position(f.Pos()))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
