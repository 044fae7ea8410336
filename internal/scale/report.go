// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// table is the figures as Markdown.
func table(f figures) string {
	var b strings.Builder
	row := func(name string, cell func(sizeFigures) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, s := range f.Sizes {
			fmt.Fprintf(&b, " %s |", cell(s))
		}
		b.WriteByte('\n')
	}
	row("namespaces of tenants", func(s sizeFigures) string { return fmt.Sprint(s.Namespaces) })
	b.WriteString("|---|" + strings.Repeat("---|", len(f.Sizes)) + "\n")
	row("objects; Subscriptions; copies", func(s sizeFigures) string { return fmt.Sprintf("%d; %d; %d", s.Objects, s.Subscriptions, s.Copies) })
	row("**the manager holds**", func(s sizeFigures) string { return "**" + megabytes(s.held()) + "**" })
	row("of that the cache; what the controllers remember; catalog content", func(s sizeFigures) string {
		return megabytes(s.Cache) + "; " + megabytes(s.Memory) + "; " + megabytes(s.Content)
	})
	row("**converged after a start**; of the processors", func(s sizeFigures) string {
		return "**" + seconds(s.start().Wall) + "**; " + seconds(s.start().Processor)
	})
	row("of that decoding; of the processors", func(s sizeFigures) string { return both(s.List) })
	row("the reconciles; of the processors", func(s sizeFigures) string { return both(s.Start.Time) })
	row("reconciles; writes", func(s sizeFigures) string { return fmt.Sprintf("%d; %d", s.Start.Reconciles, s.Start.Writes) })
	row("**requests in an hour at rest**: reads; writes", func(s sizeFigures) string { return fmt.Sprintf("**%d; %d**", s.Rest.Reads, s.Rest.Writes) })
	costs := func(name string, of func(sizeFigures) cost) {
		row("**"+name+"**: Subscriptions concerned; reconciles; resolutions", func(s sizeFigures) string {
			c := of(s)
			return fmt.Sprintf("%d; %d; %d", c.Concerned, c.Reconciles, c.Resolves)
		})
		row("reads; writes; time; of the processors", func(s sizeFigures) string {
			c := of(s)
			return fmt.Sprintf("%d; %d; %s", c.Reads, c.Writes, both(c.Time))
		})
	}
	costs("a version is published", func(s sizeFigures) cost { return s.Update })
	costs("a node fails", func(s sizeFigures) cost { return s.Node })
	if len(f.Shards) > 0 {
		b.WriteString("\n| managers that have the namespaces between them |")
		cells := func(cell func(shardFigures) string) {
			for _, s := range f.Shards {
				fmt.Fprintf(&b, " %s |", cell(s))
			}
			b.WriteByte('\n')
		}
		cells(func(s shardFigures) string { return fmt.Sprint(s.Shards) })
		b.WriteString("|---|" + strings.Repeat("---|", len(f.Shards)) + "\n| the largest holds, catalog content apart |")
		cells(func(s shardFigures) string { return megabytes(s.Largest) })
		b.WriteString("| the slowest has converged after; of the processors |")
		cells(func(s shardFigures) string { return both(s.Slowest) })
		b.WriteString("| reconciles of all; writes |")
		cells(func(s shardFigures) string { return fmt.Sprintf("%d; %d", s.Keys, s.Writes) })
	}
	return b.String()
}

// held is what the manager holds of memory.
func (s sizeFigures) held() int64 { return s.Cache + s.Memory + s.Content }

// start is what a start takes until all is reconciled.
func (s sizeFigures) start() spent { return s.List.plus(s.Start.Time) }

func both(s spent) string { return seconds(s.Wall) + "; " + seconds(s.Processor) }

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// picture is an SVG of two lines over the number of Subscriptions: what the manager holds, and when it has converged.
// It needs no font and no script, and its colours are read on light and on dark ground.
func picture(f figures) string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300" width="760" height="300" role="img" font-family="sans-serif" font-size="13" fill="#7a7f87">` + "\n")
	b.WriteString("<title>Memory and time to converge of one manager, by Subscriptions</title>\n")
	panel(&b, f, 50, "the manager holds", "#3b82f6", "MB", func(s sizeFigures) float64 { return float64(s.held()) / 1e6 })
	panel(&b, f, 430, "converged after a start", "#e0762f", "s", func(s sizeFigures) float64 { return s.start().Wall.Seconds() })
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws one line at a horizontal position.
func panel(b *strings.Builder, f figures, left int, title, colour, unit string, of func(sizeFigures) float64) {
	const width, top, bottom = 260, 60, 250
	fmt.Fprintf(b, "<text x=\"%d\" y=\"30\" font-weight=\"bold\">%s</text>\n", left, title)
	fmt.Fprintf(b, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#7a7f87\"/>\n", left, top, bottom, left+width)
	if len(f.Sizes) == 0 {
		return
	}
	last := f.Sizes[len(f.Sizes)-1]
	most, widest := 0.0, float64(max(1, last.Subscriptions))
	for _, s := range f.Sizes {
		most = max(most, of(s))
	}
	path := fmt.Sprintf("M%d %d", left, bottom)
	for _, s := range f.Sizes {
		x := float64(left) + width*float64(s.Subscriptions)/widest
		y := bottom - float64(bottom-top)*of(s)/max(most, 1e-9)
		path += fmt.Sprintf("L%.1f %.1f", x, y)
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y, colour)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">%.3g %s</text>\n", x, y-10, colour, of(s), unit)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x, bottom+20, s.Subscriptions)
	}
	fmt.Fprintf(b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, colour)
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">Subscriptions</text>\n", left+width/2, bottom+40)
}
