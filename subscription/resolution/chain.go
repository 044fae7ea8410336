// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"
)

// sortChain orders a channel's entries from its head down and leaves out what is
// skipped. The error text is OLM's.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, sortChannel.
// Differs: an entry that replaces or skips itself is taken for one that does not.
func sortChain(pkg, name string, entries []*entry, byName map[string]*entry) (chain []*entry, malformed string) {
	if len(entries) == 0 {
		return nil, ""
	}
	skipped, replaced := map[*entry]bool{}, map[*entry]bool{}
	for _, e := range entries {
		if target := byName[e.replaces]; target != nil {
			replaced[target] = true
		}
		for _, s := range e.skips {
			if target := byName[s]; target != nil && target != e {
				skipped[target] = true
			}
		}
	}
	var chains [][]*entry
	for _, head := range entries {
		if replaced[head] || skipped[head] {
			continue
		}
		walk, ok := walkChain(head, byName, skipped)
		if !ok {
			return nil, fmt.Sprintf("a cycle exists in the chain of replacement beginning with %q in channel %q of package %q", head.name, name, pkg)
		}
		chains = append(chains, walk)
	}
	switch len(chains) {
	case 0:
		return nil, fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %q of package %q", name, pkg)
	case 1:
		for i, e := range chains[0] {
			e.position = int32(i)
		}
		return slices.Clip(chains[0]), ""
	}
	texts := make([]string, len(chains))
	for i, c := range chains {
		switch len(c) {
		case 0:
			texts[i] = "[]"
		case 1:
			texts[i] = c[0].name
		default:
			texts[i] = c[0].name + "..." + c[len(c)-1].name
		}
	}
	return nil, fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order between channel entries, but %d replacement chains were found in channel %q of package %q: %s",
		len(chains), name, pkg, strings.Join(texts, ", "))
}

func walkChain(head *entry, byName map[string]*entry, skipped map[*entry]bool) (chain []*entry, ok bool) {
	visited := map[*entry]bool{}
	for e := head; e != nil; {
		if visited[e] {
			return nil, false
		}
		visited[e] = true
		if !skipped[e] {
			chain = append(chain, e)
		}
		e = byName[e.replaces]
	}
	return chain, true
}
