// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
		"5: no test TestNowhere in internal/conformance",
		"6: 3 columns, expected 5",
		"7: says nothing",
	}
	got := checkSecurity(head + strings.Join([]string{
		"| a | b | c | d | `internal/conformance:TestRowsOfTheSecurityPageWithoutATestAreNamed` |",
		"| a | b | c | d | one day |",
		"| a | b | c | d | `internal/conformance:TestNowhere` |",
		"| a | b | c |",
		"| | b | c | d | `internal/conformance:TestNowhereElse` |",
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
		ref := parseReference(match[1])
		if packages[ref.dir] == nil {
			packages[ref.dir] = testsOf(ref.dir)
		}
		if problem := packages[ref.dir].problem(ref); problem != "" {
			problems = append(problems, problem+" in "+ref.dir)
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
