// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// step is one part of a file. Text before the first command line, and steps without commands, keep their comments only.
type step struct {
	line     int      // of the last command
	source   []string // everything above the separator, as written
	commands []string
	input    []byte
	expected string
}

const separator = "----"

// yamlStart matches the first line of YAML: a key, a document mark, a list entry. Command names contain no colon.
var yamlStart = regexp.MustCompile(`^([A-Za-z0-9_./"'-]+:(\s|$)|---$|- |\{)`)

// trimRight takes away whatever strings.Fields sees as white space, or a line
// of a form feed would be a command without a name.
func trimRight(line string) string { return strings.TrimRightFunc(line, unicode.IsSpace) }

// parse cuts a file into steps. The error starts with the line number.
func parse(text string) ([]step, error) {
	var steps []step
	var s step
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := trimRight(lines[i])
		switch {
		case line == separator:
			if len(s.commands) == 0 {
				return nil, fmt.Errorf("%d: %s without a command above it", i+1, separator)
			}
			var expected []string
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
				expected = append(expected, trimRight(lines[i]))
			}
			s.expected = strings.Join(expected, "\n")
			steps = append(steps, s)
			s = step{}
		case len(s.input) > 0 || len(s.commands) > 0 && yamlStart.MatchString(line):
			s.input = append(s.input, line...)
			s.input = append(s.input, '\n')
			s.source = append(s.source, line)
		default:
			if line != "" && !strings.HasPrefix(line, "#") {
				s.commands, s.line = append(s.commands, line), i+1
			}
			s.source = append(s.source, line)
		}
	}
	if len(s.commands) > 0 {
		return nil, fmt.Errorf("%d: no line %s after the command", s.line, separator)
	}
	if len(s.source) > 0 {
		steps = append(steps, s)
	}
	return steps, nil
}

func format(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, line := range trimEmpty(s.source) {
			b.WriteString(line + "\n")
		}
		if len(s.commands) == 0 {
			continue
		}
		b.WriteString(separator + "\n")
		if s.expected != "" {
			b.WriteString(s.expected + "\n")
		}
	}
	return b.String()
}

func trimEmpty(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
