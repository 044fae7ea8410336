// SPDX-License-Identifier: Apache-2.0

// Package page writes what kubectl olm shows as one HTML file: no scripts, nothing from elsewhere. All texts in it are
// escaped: tenants write names and messages.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
)

//go:embed page.html
var source string

var templates = template.Must(template.New("page").Funcs(template.FuncMap{
	"line":  func(s string) string { return text.Line(s, 2000) },
	"path":  path,
	"class": class,
	"since": func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04 UTC")
	},
	"arrow": func(dashed bool) string {
		if dashed {
			return "line dashed"
		}
		return "line"
	},
}).Parse(source))

// Page is what is shown.
type Page struct {
	Title, Summary string
	Now            time.Time
	// Subscriptions are shown as a table, on narrow screens as cards.
	Subscriptions []report.Subscription
	Sections      []Section
	Graphs        []Drawing
	// Below are the sections that stand below the graphs.
	Below   []Section
	NotRead []string
}

// Section is a heading with lists below it.
type Section struct {
	Title string
	// Items are shown one below the other, each with its class: "", "good", "warn" or "bad".
	Items []Item
}

// Item is one line of a Section.
type Item struct {
	Class, Text string
	// IsSub: it belongs to the one before.
	IsSub bool
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	return templates.Execute(w, p)
}

// Status writes where Subscriptions stand, with the ways that they have before them.
func Status(w io.Writer, s report.Status, summary string, ways []Graph) error {
	return Page{Title: "Operators", Summary: summary, Now: s.Now, Subscriptions: s.Subscriptions, Graphs: draw(ways), NotRead: s.NotRead}.Write(w)
}

// draw draws graphs.
func draw(graphs []Graph) []Drawing {
	drawn := make([]Drawing, len(graphs))
	for i, g := range graphs {
		drawn[i] = g.Draw()
	}
	return drawn
}

// class is how a phase looks.
func class(phase string) string {
	switch phase {
	case "Installed":
		return "good"
	case "Failed", "Stuck", "Degraded":
		return "bad"
	}
	return "warn"
}

// path is the points of a line as a path of SVG: straight lines where it is beside boxes, curves between layers.
func path(points [][2]float64) string {
	var b strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", p[0], p[1])
		case p[0] == points[i-1][0]:
			fmt.Fprintf(&b, "L%.1f %.1f", p[0], p[1])
		default:
			middle := (p[1] + points[i-1][1]) / 2
			fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", points[i-1][0], middle, p[0], middle, p[0], p[1])
		}
	}
	return b.String()
}
