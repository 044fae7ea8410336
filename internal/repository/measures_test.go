// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRulersFind checks each ruler with code that breaks its limit, and with code that just keeps it.
func TestRulersFind(t *testing.T) {
	complexity, message := []string{"complexity"}, []string{"message"}
	const branch = "if a {\n}\n"
	for name, test := range map[string]struct {
		body, above string
		want        []string
	}{
		"a plain function":                    {body: "if a := m[k]; a {\n}"},
		"a function with 14 paths":            {body: strings.Repeat(branch, 13)},
		"a function with 15 paths":            {body: strings.Repeat(branch, 14), want: complexity},
		"cases and operators are paths":       {body: "switch {\n" + strings.Repeat("case a && b || c:\n", 5) + "}", want: complexity},
		"a default is no path":                {body: strings.Repeat("switch {\ndefault:\n}\n", 20)},
		"a line of 140 columns":               {body: "a(" + strings.Repeat("b", 137) + ")"},
		"a line of 141 columns":               {body: "a(" + strings.Repeat("b", 138) + ")", want: []string{"columns"}},
		"a comment of 121 columns":            {body: "// " + strings.Repeat("b", 118), want: []string{"columns"}},
		"a prefix of a message":               {body: "if strings.HasPrefix(c.Message, p) {\n}", want: message},
		"a text in a variable named message":  {body: "return strings.Contains(message, p)", want: message},
		"a message compared with a text":      {body: "return \"done\" == c.Message", want: message},
		"a message compared with a built one": {body: "return c.Message == \"done \"+name", want: message},
		"a message compared with a constant":  {above: "const done = \"done\"", body: "return c.Message == done", want: message},
		"a switch over a message":             {body: "switch c.message {\ncase done:\n}", want: message},
		"a message as the key of a map":       {body: "return known[c.Message]", want: message},
		"a message that is matched":           {body: "return pattern.MatchString(c.Message)", want: message},
		"a message as the prefix":             {body: "return strings.HasPrefix(text, c.Message)", want: message},
		"a table with a complex function":     {above: "var table = []row{{func() {\n" + strings.Repeat(branch, 14) + "}}}", want: complexity},
		"a message compared with another":     {body: "return c.Message == before.Message"},
		"a message that is empty":             {body: "return c.Message == \"\""},
		"an if that tests two things":         {body: "if a, err := f(); err == nil && !a {\n}", want: []string{"if"}},
		"an if that tests something else":     {body: "if a := f(); b {\n}", want: []string{"if"}},
		"an if that compares its variable":    {body: "if a := f(); a > b {\n}"},
		"three assignments on a line":         {body: "a, b, c := 1, 2, 3", want: []string{"assignment"}},
		"three results of a call":             {body: "a, b, c := f()"},
		"a struct that embeds facts":          {above: "type planner struct {\n\t*facts\n}", want: []string{"embedding"}},
		"a struct that embeds another Input":  {above: "type planner struct {\n\tcsv.Input\n}", want: []string{"embedding"}},
		"a struct with a field of facts":      {above: "type planner struct {\n\tfacts *facts\n}"},
		"an exported struct with an Input":    {above: "type Request struct {\n\tInput\n}"},
		"a decision in a table":               {above: "var table = []row{{func() { strings.Contains(message, \"a\") }}}", want: message},
		"a closure belongs to its function":   {body: "a := func() {\n" + strings.Repeat(branch, 14) + "}", want: complexity},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parseFile("catalog/x.go", "package x\n\n"+test.above+"\n\nfunc x() {\n"+test.body+"\n}\n")
			require.NoError(t, err)
			var found []string
			for _, ruler := range rulers {
				for range ruler.measure(f) {
					found = append(found, ruler.name)
				}
			}
			require.Equal(t, test.want, found)
		})
	}
}

func TestNumberedStepsStartEachBlock(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want bool
	}{
		"each block has the next number":   {body: "// 1. a\na()\n// 2. b\nb()\n\n// 3. c\nc()", want: true},
		"the first block has no number":    {body: "a := 1\n// 1. a\na()\n// 2. b\nb()"},
		"a block has no number":            {body: "// 1. a\na()\n\nb()\n// 2. c\nc()"},
		"a block has a comment without":    {body: "// 1. a\na()\n\n// b\nb()\n// 2. c\nc()"},
		"a number is missing":              {body: "// 1. a\na()\n\n// 3. b\nb()"},
		"one step is no sequence":          {body: "// 1. a\na()"},
		"comments inside a block are free": {body: "// 1. a\nif a {\n\n\t// b\n\tb()\n}\n// 2. c\nc()", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parseFile("catalog/x.go", "package x\n\nfunc x() {\n"+test.body+"\n}\n")
			require.NoError(t, err)
			require.Equal(t, test.want, hasNumberedSteps(f.set, f.file, f.file.Decls[0].(*ast.FuncDecl)))
		})
	}
}
