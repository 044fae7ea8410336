// SPDX-License-Identifier: Apache-2.0

package path

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/olmcore/olm/internal/printable"
)

// String returns the path as text. The text has a line for each move, for each deprecation and for each Stop. Names and
// messages are written without line breaks.
func (p Path) String() string {
	var b strings.Builder
	row := func(indent, format string, args ...any) {
		b.WriteString(indent + printable.OneLine(fmt.Sprintf(format, args...)) + "\n")
	}
	whose := fmt.Sprintf("Subscription %s/%s", p.Namespace, p.Subscription)
	if p.Subscription == "" {
		whose = "The Subscriptions of namespace " + p.Namespace
	}
	if p.Target != "" {
		whose += " to " + p.Target
	}
	hops := fmt.Sprintf("%d hops", len(p.Hops))
	if len(p.Hops) == 1 {
		hops = "1 hop"
	}
	row("", "%s: %s", whose, hops)
	for i, hop := range p.Hops {
		text := ""
		if hop.Channel != "" {
			text = fmt.Sprintf("follow channel %s; ", hop.Channel)
		}
		if hop.Approval {
			text += "after approval; "
		}
		indent := fmt.Sprintf("%3d. ", i+1)
		for _, m := range p.ordered(hop) {
			row(indent, "%s%s", text, m)
			indent, text = "     ", "with "
			for _, d := range m.Deprecations {
				row("     ", "deprecated: %s", strings.Join(strings.Fields(d), " "))
			}
		}
	}
	for _, s := range p.Stops {
		row("", "%s ends at %s: %s: %s", s.Subscription, cmp.Or(s.At, "nothing"), s.Code, s.Summary)
	}
	return b.String()
}

// ordered returns the moves of a hop. Moves of the Subscription of the Question come first, new dependencies last.
func (p Path) ordered(hop Hop) []Move {
	rank := func(m Move) int {
		switch {
		case slices.Contains(m.Subscriptions, p.Subscription):
			return 0
		case len(m.Subscriptions) > 0:
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(hop.Moves), func(a, b Move) int { return cmp.Compare(rank(a), rank(b)) })
}

// String returns the move as part of a sentence.
func (m Move) String() string {
	text := fmt.Sprintf("%s from channel %s of catalog %s", m.To, m.Channel, m.Catalog)
	if m.From != "" {
		text += " replacing " + m.From
	}
	if len(m.Subscriptions) > 0 {
		text += " for " + strings.Join(m.Subscriptions, ", ")
	}
	if len(m.RequiredBy) > 0 {
		text += ", needed by " + strings.Join(m.RequiredBy, ", ")
	}
	return text
}

// edge is an edge of the graph of a path.
type edge struct {
	from, to, label string
	// needs means that from requires to. Otherwise to replaces from.
	needs bool
}

const nothing = "nothing installed"

func (p Path) edges() (list []edge) {
	for i, hop := range p.Hops {
		for _, m := range p.ordered(hop) {
			list = append(list, edge{from: cmp.Or(m.From, nothing), to: m.To, label: fmt.Sprintf("%d: %s", i+1, m.Channel)})
			for _, by := range m.RequiredBy {
				list = append(list, edge{from: by, to: m.To, label: "needs", needs: true})
			}
		}
	}
	return list
}

// ends returns the last bundle and the code of each Stop, sorted and without duplicates.
func (p Path) ends() (list [][2]string) {
	for _, s := range p.Stops {
		list = append(list, [2]string{cmp.Or(s.At, nothing), string(s.Code)})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(list)
}

// DOT returns the path as a graph for Graphviz.
func (p Path) DOT() string {
	var b strings.Builder
	b.WriteString("digraph path {\n  rankdir=LR;\n")
	for _, e := range p.edges() {
		style := ""
		if e.needs {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", strconv.Quote(e.from), strconv.Quote(e.to), strconv.Quote(e.label), style)
	}
	for _, end := range p.ends() {
		fmt.Fprintf(&b, "  %s [xlabel=%s];\n", strconv.Quote(end[0]), strconv.Quote(end[1]))
	}
	return b.String() + "}\n"
}

// Mermaid returns the path as a Mermaid flowchart, which many Markdown renderers display.
func (p Path) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{}
	node := func(name string) string {
		if id, known := ids[name]; known {
			return id
		}
		ids[name] = fmt.Sprintf("n%d", len(ids))
		return fmt.Sprintf("%s[%s]", ids[name], mermaidText(name))
	}
	for _, e := range p.edges() {
		arrow := "-->"
		if e.needs {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|%s| %s\n", node(e.from), arrow, mermaidText(e.label), node(e.to))
	}
	for i, end := range p.ends() {
		fmt.Fprintf(&b, "  %s --- e%d([%s])\n", node(end[0]), i, mermaidText(end[1]))
	}
	return b.String()
}

var meaningful = regexp.MustCompile(`["#<>&;\x00-\x1f]`)

// mermaidText quotes a text, and escapes the characters that have a meaning in Mermaid.
func mermaidText(text string) string {
	return `"` + meaningful.ReplaceAllStringFunc(text, func(c string) string { return fmt.Sprintf("#%d;", c[0]) }) + `"`
}
