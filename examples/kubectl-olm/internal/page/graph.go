// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
)

// Graph is boxes and the arrows between them.
type Graph struct {
	Title string
	Nodes []Node
	Edges []Edge
	// Up: arrows lead up, so that where they end is what is seen first.
	Up bool
}

// Node is a box. IDs are each there once.
type Node struct {
	ID, Label, Note string
	// Class is how it looks: "", "good", "warn" or "bad".
	Class string
}

// Edge is an arrow between the nodes of two IDs; one to a node that there is not is left out.
type Edge struct {
	From, To, Label string
	Dashed          bool
}

// MaxNodes is how many boxes are drawn at most: more are no picture.
const MaxNodes = 150

// Measures of a drawing, in pixels.
const (
	letter, nodeHeight = 9.0, 44.0
	// Of wide letters, and of those that are as wide as high.
	letterBroad, letterWide = 14.0, 20.0
	gapX, gapY, margin      = 22.0, 46.0, 12.0
	minWidth, bendWidth     = 90.0, 14.0
	maxLabel                = 44
	sweeps, lineAnchorGap   = 6, 5.0
)

// Box is a Node where it is drawn.
type Box struct {
	Node
	X, Y, Width, Height float64
	// Label and Note are cut to what fits; Full is all of them.
	Full string
}

// Middle is the x of the middle of the box.
func (b Box) Middle() float64 { return b.X + b.Width/2 }

// Line is an Edge where it is drawn, through its Points.
type Line struct {
	Edge
	Points         [][2]float64
	LabelX, LabelY float64
}

// Drawing is a Graph with the place of everything.
type Drawing struct {
	Title         string
	Width, Height float64
	Boxes         []Box
	Lines         []Line
	// More is how many boxes are left out.
	More int
}

// place is a box, or where a line bends, in a layer.
type place struct {
	node  int // -1: a bend
	width float64
	layer int
	order float64
	x     float64
}

// Draw places the boxes in layers, so that arrows lead from one layer to a later one, those of cycles apart, and boxes
// do not overlap.
func (g Graph) Draw() Drawing {
	d := Drawing{Title: g.Title, More: max(0, len(g.Nodes)-MaxNodes)}
	nodes := slices.Clone(g.Nodes[:len(g.Nodes)-d.More])
	full := make([]string, len(nodes))
	index := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		index[n.ID], full[i] = i, n.Label
		if n.Note != "" {
			full[i] += ": " + n.Note
		}
		n.Label, n.Note = cut(n.Label), cut(n.Note)
	}
	edges := slices.DeleteFunc(slices.Clone(g.Edges), func(e Edge) bool {
		_, from := index[e.From]
		_, to := index[e.To]
		return !from || !to || e.From == e.To
	})
	layers := layersOf(len(nodes), edges, index)
	places := make([]*place, len(nodes))
	for i, n := range nodes {
		places[i] = &place{node: i, width: max(minWidth, max(widthOf(n.Label), widthOf(n.Note))+20), layer: layers[i], order: float64(i)}
	}
	chains := make([][]*place, len(edges))
	for i, e := range edges {
		chains[i] = bends(places[index[e.From]], places[index[e.To]])
		places = append(places, chains[i][1:len(chains[i])-1]...)
	}
	rows := arrange(places, chains)
	d.position(g.Up, rows)
	for i, n := range nodes {
		p := places[i]
		d.Boxes = append(d.Boxes, Box{Node: n, X: p.x - p.width/2, Y: top(p.layer), Width: p.width, Height: nodeHeight, Full: full[i]})
	}
	for i, e := range edges {
		d.line(e, chains[i])
	}
	return d
}

// layersOf returns the layer of each node: one after the last of those that lead to it. Edges that close a cycle do not
// count.
func layersOf(n int, edges []Edge, index map[string]int) []int {
	next := make([][]int, n)
	for _, e := range edges {
		next[index[e.From]] = append(next[index[e.From]], index[e.To])
	}
	const unseen, open, closed = 0, 1, 2
	state, order := make([]int, n), []int{}
	forward := make([][]int, n)
	var visit func(int)
	visit = func(i int) {
		state[i] = open
		for _, j := range next[i] {
			if state[j] == open {
				continue
			}
			forward[i] = append(forward[i], j)
			if state[j] == unseen {
				visit(j)
			}
		}
		state[i], order = closed, append(order, i)
	}
	for i := range n {
		if state[i] == unseen {
			visit(i)
		}
	}
	layers := make([]int, n)
	for _, i := range slices.Backward(order) {
		for _, j := range forward[i] {
			layers[j] = max(layers[j], layers[i]+1)
		}
	}
	return layers
}

// bends returns the places that a line goes through, from its box to the other one: one in each layer between.
func bends(from, to *place) []*place {
	chain, step := []*place{from}, 1
	if to.layer < from.layer {
		step = -1
	}
	for layer := from.layer + step; layer != to.layer && from.layer != to.layer; layer += step {
		chain = append(chain, &place{node: -1, width: bendWidth, layer: layer, order: (from.order + to.order) / 2})
	}
	return append(chain, to)
}

// arrange returns the places of each layer in an order in which few lines cross.
func arrange(places []*place, chains [][]*place) [][]*place {
	beside := map[*place][]*place{}
	for _, chain := range chains {
		for i := 1; i < len(chain); i++ {
			beside[chain[i]] = append(beside[chain[i]], chain[i-1])
			beside[chain[i-1]] = append(beside[chain[i-1]], chain[i])
		}
	}
	last := 0
	for _, p := range places {
		last = max(last, p.layer)
	}
	rows := make([][]*place, last+1)
	for _, p := range places {
		rows[p.layer] = append(rows[p.layer], p)
	}
	sortRow := func(row []*place) {
		slices.SortStableFunc(row, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
		for i, p := range row {
			p.order = float64(i) - float64(len(row)-1)/2
		}
	}
	for _, row := range rows {
		sortRow(row)
	}
	for sweep := range sweeps {
		for i := range rows {
			row := rows[i]
			if sweep%2 == 1 {
				row = rows[len(rows)-1-i]
			}
			for _, p := range row {
				if near := beside[p]; len(near) > 0 {
					sum := 0.0
					for _, other := range near {
						sum += other.order
					}
					p.order = sum / float64(len(near))
				}
			}
			sortRow(row)
		}
	}
	return rows
}

// position gives each place its x and its layer, counted from above.
func (d *Drawing) position(isUp bool, rows [][]*place) {
	widths := make([]float64, len(rows))
	for i, row := range rows {
		for _, p := range row {
			p.x = widths[i] + p.width/2
			widths[i] += p.width + gapX
		}
		widths[i] -= gapX
		d.Width = max(d.Width, widths[i])
	}
	for i, row := range rows {
		for _, p := range row {
			p.x += margin + (d.Width-widths[i])/2
			p.layer = i
			if isUp {
				p.layer = len(rows) - 1 - i
			}
		}
	}
	d.Width += 2 * margin
	d.Height = 2*margin + float64(len(rows))*(nodeHeight+gapY) - gapY
}

func top(layer int) float64 { return margin + float64(layer)*(nodeHeight+gapY) }

// line draws an edge through its places.
func (d *Drawing) line(e Edge, chain []*place) {
	first, last := chain[0], chain[len(chain)-1]
	l := Line{Edge: e}
	down := last.layer > first.layer
	for i, p := range chain {
		above, below := top(p.layer), top(p.layer)+nodeHeight
		switch {
		case p.node < 0 && down:
			l.Points = append(l.Points, [2]float64{p.x, above}, [2]float64{p.x, below})
		case p.node < 0:
			l.Points = append(l.Points, [2]float64{p.x, below}, [2]float64{p.x, above})
		case (i == 0) == down:
			l.Points = append(l.Points, [2]float64{p.x, below})
		default:
			l.Points = append(l.Points, [2]float64{p.x, above})
		}
	}
	if n := len(l.Points); n > 1 { // room for the head of the arrow
		if down {
			l.Points[n-1][1] -= lineAnchorGap
		} else {
			l.Points[n-1][1] += lineAnchorGap
		}
		l.LabelX, l.LabelY = (l.Points[0][0]+l.Points[1][0])/2, (l.Points[0][1]+l.Points[1][1])/2
	}
	d.Lines = append(d.Lines, l)
}

// cut makes a label one safe line that is not too long.
func cut(s string) string {
	runes := []rune(text.Line(s, 2*maxLabel))
	if len(runes) <= maxLabel {
		return string(runes)
	}
	return string(runes[:maxLabel-1]) + "…"
}

// widthOf is the width that a label has at most, whatever the font.
func widthOf(label string) float64 {
	width := 0.0
	for _, r := range label {
		switch {
		case r > 0x2000:
			width += letterWide
		case strings.ContainsRune("WMmw@%", r) || r > 0x7e:
			width += letterBroad
		default:
			width += letter
		}
	}
	return width
}
