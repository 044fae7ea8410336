// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode/utf8"
)

// Color is how a text is shown on a terminal.
type Color string

// Colors.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Dim    Color = "2"
)

// Palette colours texts, or leaves them as they are.
type Palette bool

// Paint returns a text in a colour.
func (p Palette) Paint(c Color, s string) string {
	if !p || c == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Color Color
}

// Cells returns plain cells; an empty text is a dash.
func Cells(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, s := range texts {
		cells[i].Text = s
	}
	return cells
}

// maxCell is how many characters of a cell a table has.
const maxCell = 400

// Table returns rows under a head, in columns as kubectl has them. Each cell is made one safe line.
func (p Palette) Table(head []string, rows [][]Cell) string {
	lines := make([][]Cell, 0, len(rows)+1)
	lines = append(lines, Cells(head...))
	widths := make([]int, len(head))
	for i, name := range head {
		widths[i] = utf8.RuneCountInString(name)
	}
	for _, row := range rows {
		safe := make([]Cell, len(row))
		for i, cell := range row {
			safe[i] = Cell{Line(cell.Text, maxCell), cell.Color}
			if safe[i].Text == "" {
				safe[i].Text = "-"
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(safe[i].Text))
		}
		lines = append(lines, safe)
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			b.WriteString(p.Paint(cell.Color, cell.Text))
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+3-utf8.RuneCountInString(cell.Text)))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
