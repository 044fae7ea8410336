// SPDX-License-Identifier: Apache-2.0

package model

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
	skipped := skippedEntries(entries, byName)
	replacing := map[*Entry][]*Entry{}
	for _, e := range entries {
		if target := byName[e.Replaces]; target != nil {
			replacing[target] = append(replacing[target], e)
		}
	}
	last := lastOfChains(entries, byName, replacing, skipped)
	heads := slices.DeleteFunc(slices.Clone(entries), func(e *Entry) bool { return len(replacing[e]) > 0 || skipped[e] })
	slices.SortFunc(heads, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) }) // texts do not depend on the order of entries
	for _, head := range heads {
		if _, acyclic := last[head]; !acyclic {
			return nil, fmt.Sprintf("a cycle exists in the chain of replacement beginning with %q in channel %q of package %q", head.Name, name, pkg)
		}
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
	return nil, fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order "+
		"between channel entries, but %d replacement chains were found in channel %q of package %q: %s",
		len(heads), name, pkg, strings.Join(chainNames(heads, last), ", "))
}

// skippedEntries returns the entries that another entry of the channel skips.
func skippedEntries(entries []*Entry, byName map[string]*Entry) map[*Entry]bool {
	skipped := map[*Entry]bool{}
	for _, e := range entries {
		for _, s := range e.Skips {
			target := byName[s]
			if target != nil && target != e {
				skipped[target] = true
			}
		}
	}
	return skipped
}

// lastOfChains returns, for each entry whose chain of replaced entries ends, the last entry of that chain that is not
// skipped. It is nil if all of them are skipped. An entry whose chain is a cycle is not in the result.
func lastOfChains(entries []*Entry, byName map[string]*Entry, replacing map[*Entry][]*Entry, skipped map[*Entry]bool) map[*Entry]*Entry {
	var pending []*Entry
	for _, e := range entries {
		if byName[e.Replaces] == nil {
			pending = append(pending, e)
		}
	}
	last := map[*Entry]*Entry{}
	for i := 0; i < len(pending); i++ {
		e := pending[i]
		last[e] = last[byName[e.Replaces]]
		if last[e] == nil && !skipped[e] {
			last[e] = e
		}
		pending = append(pending, replacing[e]...)
	}
	return last
}

// SkippedBy returns the name of the entry that skips e. If several entries skip e, it returns the entry nearest to the
// head, or else the first by name. It returns "" if no entry skips e.
func (ch *ChannelIndex) SkippedBy(e *Entry) string {
	skips := func(other *Entry) bool { return other != e && slices.Contains(other.Skips, e.Name) }
	if i := slices.IndexFunc(ch.Chain, skips); i >= 0 {
		return ch.Chain[i].Name
	}
	name := ""
	for _, other := range ch.ByName {
		if skips(other) && (name == "" || other.Name < name) {
			name = other.Name
		}
	}
	return name
}

// maxListed bounds the chains that a text names. Differs: OLM names all.
const maxListed = 100

func chainNames(heads []*Entry, last map[*Entry]*Entry) (texts []string) {
	for i, head := range heads {
		switch {
		case i == maxListed:
			return append(texts, fmt.Sprintf("… (%d more)", len(heads)-i))
		case last[head] == head:
			texts = append(texts, head.Name)
		default:
			texts = append(texts, head.Name+"..."+last[head].Name)
		}
	}
	return texts
}
