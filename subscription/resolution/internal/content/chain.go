// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"slices"
	"strings"
)

// sortChain orders a channel's entries from its head down and leaves out what is skipped, and what the head does not
// lead to: that is stranded. The error text is OLM's.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, sortChannel.
// Differs: an entry that replaces or skips itself is taken for one that does not.
func sortChain(pkg, name string, entries []*Entry, byName map[string]*Entry) (chain []*Entry, malformed string) {
	if len(entries) == 0 {
		return nil, ""
	}
	skipped, replaced := map[*Entry]bool{}, map[*Entry]bool{}
	for _, e := range entries {
		if target := byName[e.Replaces]; target != nil {
			replaced[target] = true
		}
		for _, s := range e.Skips {
			if target := byName[s]; target != nil && target != e {
				skipped[target] = true
			}
		}
	}
	walks := walker{byName: byName, skipped: skipped, known: map[*Entry]walk{}}
	var heads []*Entry
	for _, head := range entries {
		if replaced[head] || skipped[head] {
			continue
		}
		if walks.from(head).cyclic {
			return nil, fmt.Sprintf("a cycle exists in the chain of replacement beginning with %q in channel %q of package %q", head.Name, name, pkg)
		}
		heads = append(heads, head)
	}
	switch len(heads) {
	case 0:
		return nil, fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %q of package %q", name, pkg)
	case 1:
		for e := heads[0]; e != nil; e = byName[e.Replaces] {
			if !skipped[e] {
				e.Position = int32(len(chain))
				chain = append(chain, e)
			}
		}
		for _, e := range entries {
			e.Stranded = e.Position < 0 && !skipped[e]
		}
		return slices.Clip(chain), ""
	}
	texts := make([]string, 0, min(len(heads), maxListed+1))
	for i, head := range heads {
		if i == maxListed {
			texts = append(texts, fmt.Sprintf("… (%d more)", len(heads)-i))
			break
		}
		texts = append(texts, head.Name)
		if last := walks.from(head).last; last != nil && last != head {
			texts[i] += "..." + last.Name
		}
	}
	return nil, fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order between channel entries, but %d replacement chains were found in channel %q of package %q: %s",
		len(heads), name, pkg, strings.Join(texts, ", "))
}

// maxListed bounds the chains that a text names. Differs: OLM names all.
const maxListed = 100

// walk is where following replaces from an entry leads to: the last entry that is not skipped, nil when there is
// none, or into a cycle.
type walk struct {
	last   *Entry
	cyclic bool
}

// walker remembers walks, so that many heads over one tail take no longer than one.
type walker struct {
	byName  map[string]*Entry
	skipped map[*Entry]bool
	known   map[*Entry]walk
}

func (w *walker) from(head *Entry) walk {
	var path []*Entry
	end := walk{}
	for e := head; e != nil; e = w.byName[e.Replaces] {
		if found, ok := w.known[e]; ok {
			end = found
			break
		}
		w.known[e] = walk{cyclic: true} // unless the walk ends
		path = append(path, e)
	}
	for _, e := range slices.Backward(path) {
		if end.last == nil && !end.cyclic && !w.skipped[e] {
			end.last = e
		}
		w.known[e] = end
	}
	return end
}
