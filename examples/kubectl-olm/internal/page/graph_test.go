// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
)

// requireDrawn demands that boxes are apart and within the drawing, and that each arrow begins and ends at its boxes.
func requireDrawn(t *testing.T, g page.Graph, d page.Drawing) {
	t.Helper()
	boxes := map[string]page.Box{}
	for i, b := range d.Boxes {
		boxes[b.ID] = b
		require.True(t, b.X >= 0 && b.Y >= 0 && b.X+b.Width <= d.Width && b.Y+b.Height <= d.Height, "%s is outside", b.ID)
		for _, o := range d.Boxes[i+1:] {
			require.False(t, b.X < o.X+o.Width && o.X < b.X+b.Width && b.Y < o.Y+o.Height && o.Y < b.Y+b.Height, "%s lies on %s", b.ID, o.ID)
		}
	}
	for _, l := range d.Lines {
		from, to := boxes[l.From], boxes[l.To]
		require.InDelta(t, from.Middle(), l.Points[0][0], 0.01)
		require.InDelta(t, to.Middle(), l.Points[len(l.Points)-1][0], 0.01)
		for _, p := range l.Points {
			require.True(t, p[0] >= 0 && p[0] <= d.Width && p[1] >= 0 && p[1] <= d.Height)
		}
	}
	require.Equal(t, len(g.Nodes), len(d.Boxes)+d.More)
}

func TestAnyGraphIsDrawn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := page.Graph{Up: random.IntN(2) == 0}
		n := random.IntN(25)
		for i := range n {
			g.Nodes = append(g.Nodes, page.Node{ID: fmt.Sprint(i), Label: strings.Repeat("w", random.IntN(80)), Note: strings.Repeat("n", random.IntN(20))})
		}
		for range random.IntN(2*n + 1) { // cycles, loops, twice the same, and to what there is not
			g.Edges = append(g.Edges, page.Edge{From: fmt.Sprint(random.IntN(n + 1)), To: fmt.Sprint(random.IntN(n + 1))})
		}
		d := g.Draw()
		requireDrawn(t, g, d)
		require.Equal(t, d, g.Draw(), "the same each time")
	}
}

// TestArrowsLeadDownOrUp: what upgrades is below what it upgrades to, or above.
func TestArrowsLeadDownOrUp(t *testing.T) {
	g := page.Graph{
		Nodes: []page.Node{{ID: "c"}, {ID: "a"}, {ID: "b"}},
		Edges: []page.Edge{{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "a", To: "c"}, {From: "x", To: "c"}, {From: "c", To: "c"}},
	}
	y := func(d page.Drawing) (all [3]float64) {
		for _, b := range d.Boxes {
			all[b.ID[0]-'a'] = b.Y
		}
		return all
	}
	d := g.Draw()
	require.Len(t, d.Lines, 3, "an arrow to what there is not, or to itself, is left out")
	require.IsIncreasing(t, y(d))
	g.Up = true
	require.IsDecreasing(t, y(g.Draw()))
}

func TestALargeGraphIsCut(t *testing.T) {
	var g page.Graph
	for i := range page.MaxNodes + 7 {
		g.Nodes = append(g.Nodes, page.Node{ID: fmt.Sprint(i), Label: "n"})
		g.Edges = append(g.Edges, page.Edge{From: fmt.Sprint(i), To: fmt.Sprint(i + 1)})
	}
	d := g.Draw()
	require.Equal(t, 7, d.More)
	requireDrawn(t, g, d)
	var b bytes.Buffer
	require.NoError(t, page.Page{Title: "t", Graphs: []page.Drawing{d}}.Write(&b))
	require.Contains(t, b.String(), "7 more are not drawn.")
}

// TestTextsAreEscapedEverywhere: wherever a tenant writes.
func TestTextsAreEscapedEverywhere(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>'` + "\x1b[2J\u202e"
	s := report.Subscription{Namespace: evil, Name: evil, Package: evil, Channel: evil, InstalledCSV: evil, CurrentCSV: evil + "2"}
	s.Report = report.Report{Phase: evil, Reason: evil, Message: evil, Advice: evil, Object: &report.Object{Kind: evil, Name: evil}}
	g := page.Graph{Title: evil, Nodes: []page.Node{{ID: "a", Label: evil, Note: evil}, {ID: "b", Label: evil}}, Edges: []page.Edge{{From: "a", To: "b", Label: evil}}}
	p := page.Page{
		Title: evil, Summary: evil, NotRead: []string{evil}, Subscriptions: []report.Subscription{s},
		Sections: []page.Section{{Title: evil, Items: []page.Item{{Text: evil}}}}, Graphs: []page.Drawing{g.Draw()},
	}
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	for _, bad := range []string{"<script", "<img", "\x1b", "\u202e"} {
		require.NotContains(t, b.String(), bad)
	}
	require.Greater(t, strings.Count(b.String(), "&lt;script&gt;"), 20, "in each place")
}
