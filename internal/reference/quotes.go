// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// quote is a comment that says where the code block after it comes from: the body of an Example, its output, or a whole
// test.
var quote = regexp.MustCompile("(?m)^<!-- (code|output): (\\S+) ((?:Example|Test)\\w*) -->\n```(\\w*)\n((?:.*\n)*?)```$")

var mark = regexp.MustCompile("(?m)^<!-- (code|output): ")

// Quotes returns a document with its quoted code as it is now, and how many quotes it has. Root is the folder of the
// module. The error names a quote that cannot be found.
//
//	<!-- code: fake/example_test.go ExampleCluster -->
//	<!-- output: fake/example_test.go ExampleCluster -->
func Quotes(root, document string) (current string, quotes int, err error) {
	current = quote.ReplaceAllStringFunc(document, func(found string) string {
		m := quote.FindStringSubmatch(found)
		quotes++
		text, wrong := quoted(filepath.Join(root, m[2]), m[3], m[1] == "output")
		if wrong != nil {
			err = wrong
			return found
		}
		return fmt.Sprintf("<!-- %s: %s %s -->\n```%s\n%s```", m[1], m[2], m[3], m[4], text)
	})
	if marked := len(mark.FindAllString(document, -1)); err == nil && marked != quotes {
		err = fmt.Errorf("%d of %d quotes are not followed by a code block", marked-quotes, marked)
	}
	return current, quotes, err
}

// quoted returns the body of an Example without its output, or its output alone; of a test the whole function.
func quoted(path, name string, output bool) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == name
	})
	if i < 0 {
		return "", fmt.Errorf("%s has no %s", path, name)
	}
	if d := file.Decls[i]; strings.HasPrefix(name, "Test") {
		return string(text[set.Position(d.(*ast.FuncDecl).Type.Pos()).Offset:set.Position(d.End()).Offset]) + "\n", nil
	}
	block := file.Decls[i].(*ast.FuncDecl).Body
	body := string(text[set.Position(block.Lbrace).Offset+1 : set.Position(block.Rbrace).Offset])
	body, out, _ := strings.Cut(strings.Trim(body, "\n"), "\t// Output:")
	if output {
		return uncommented(out), nil
	}
	return dedented(body), nil
}

// uncommented returns the lines of a comment.
func uncommented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimLeft(text, "\n")) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "//"), " ")
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// asTest is an Example that shows a test, as no Example has a *testing.T.
var asTest = regexp.MustCompile(`^_ = func\(.*\) \{ // (func .*)$`)

// dedented returns the lines of a body as they would be at the top of a file.
func dedented(body string) string {
	lines := strings.Split(strings.TrimRight(body, "\t\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t")
	}
	if m := asTest.FindStringSubmatch(lines[0]); m != nil {
		lines[0] = m[1] + " {"
	}
	return strings.Join(lines, "\n") + "\n"
}
