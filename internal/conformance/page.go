// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"regexp"
	"strings"
)

// page is one file of docs/conformance.
type page struct {
	dir  string // of the package, from the root of the module
	rows []row
}

type row struct {
	line                int
	section, id, shown  string
	what                string
	references          []reference
	deviation, deferred bool
}

// reference is one backticked word of a row.
type reference struct {
	dir  string // "" is the page's own package
	test string // a function
	name string // a case of it, or ""
	file string // instead of a test
}

var (
	backticked = regexp.MustCompile("`([^`]+)`")
	function   = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)\w*$`)
)

// parse reads a page; an error names the line.
func parse(text string) (page, error) {
	var p page
	section := ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			p.dir = strings.TrimSpace(line[strings.LastIndex(line, ":")+1:])
		case strings.HasPrefix(line, "## "):
			section = strings.TrimSpace(line[3:])
		case strings.HasPrefix(line, "|"):
			r, err := parseRow(line)
			if err != nil {
				return page{}, fmt.Errorf("%d: %w", i+1, err)
			}
			if r.id == "id" || strings.Trim(r.id, "-: ") == "" {
				continue
			}
			r.line, r.section = i+1, section
			p.rows = append(p.rows, r)
		}
	}
	return p, nil
}

func parseRow(line string) (row, error) {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	if len(cells) != 3 {
		return row{}, fmt.Errorf("%d columns, expected id, what holds, shown by", len(cells))
	}
	r := row{id: strings.TrimSpace(cells[0]), what: strings.TrimSpace(cells[1]), shown: strings.TrimSpace(cells[2])}
	r.deviation = strings.HasPrefix(r.shown, "deviations: ")
	r.deferred = strings.HasPrefix(r.shown, "later: ") || strings.HasPrefix(r.shown, "elsewhere: ")
	for _, match := range backticked.FindAllStringSubmatch(r.shown, -1) {
		r.references = append(r.references, parseReference(match[1]))
	}
	return r, nil
}

func parseReference(text string) reference {
	var ref reference
	if dir, rest, found := strings.Cut(text, ":"); found && !strings.ContainsAny(dir, " ") && !function.MatchString(dir) &&
		!strings.HasPrefix(dir, "Test") {
		ref.dir, text = dir, rest
	}
	test, name, _ := strings.Cut(text, "/")
	if !function.MatchString(test) {
		ref.file = text
		return ref
	}
	ref.test, ref.name = test, name
	return ref
}
