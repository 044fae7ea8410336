// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// naiveChain walks from each head to the end, as the rule reads.
func naiveChain(entries []resolution.ChannelEntry) (chain []string, problem string) {
	find := func(name string) *resolution.ChannelEntry {
		i := slices.IndexFunc(entries, func(e resolution.ChannelEntry) bool { return e.Name == name })
		if i < 0 {
			return nil
		}
		return &entries[i]
	}
	has := func(holds func(e resolution.ChannelEntry) bool) bool { return slices.ContainsFunc(entries, holds) }
	skipped := func(name string) bool {
		return has(func(e resolution.ChannelEntry) bool { return e.Name != name && slices.Contains(e.Skips, name) })
	}
	var texts []string
	for _, head := range slices.SortedFunc(slices.Values(entries), func(a, b resolution.ChannelEntry) int { return strings.Compare(a.Name, b.Name) }) {
		if skipped(head.Name) || has(func(e resolution.ChannelEntry) bool { return e.Name != head.Name && e.Replaces == head.Name }) {
			continue
		}
		var walk, seen []string
		for e := &head; e != nil; {
			if slices.Contains(seen, e.Name) {
				return nil, fmt.Sprintf("a cycle exists in the chain of replacement beginning with %q", head.Name)
			}
			seen = append(seen, e.Name)
			if !skipped(e.Name) {
				walk = append(walk, e.Name)
			}
			if e.Replaces == e.Name {
				break
			}
			e = find(e.Replaces)
		}
		if chain == nil {
			chain = walk
		}
		text := walk[0]
		if len(walk) > 1 {
			text += "..." + walk[len(walk)-1]
		}
		texts = append(texts, text)
	}
	switch len(texts) {
	case 0:
		return nil, "no channel heads"
	case 1:
		return chain, ""
	}
	return nil, fmt.Sprintf("%d replacement chains were found in channel \"c\" of package \"p\": %s", len(texts), strings.Join(texts, ", "))
}

// TestUpgradeGraphsFollowTheRule has a case of OLM.
//
// OLM's case: heads, circles and stranded entries.
func TestUpgradeGraphsFollowTheRule(t *testing.T) {
	names := []string{"e0", "e1", "e2", "e3", "e4", "e5", "elsewhere", ""}
	rapid.Check(t, func(t *rapid.T) {
		var entries []resolution.ChannelEntry
		p := resolution.Package{Name: "p", DefaultChannel: "c"}
		for i := range rapid.IntRange(1, 6).Draw(t, "entries") {
			e := resolution.ChannelEntry{Name: names[i], Replaces: rapid.SampledFrom(names).Draw(t, "replaces")}
			if rapid.IntRange(0, 2).Draw(t, "skips") == 2 {
				e.Skips = rapid.SliceOfN(rapid.SampledFrom(names[:6]), 1, 2).Draw(t, "skipped")
			}
			entries = append(entries, e)
			p.Bundles = append(p.Bundles, bundle(e.Name, packageProperty("p", fmt.Sprintf("1.%d.0", i))))
		}
		p.Channels = []resolution.Channel{{Name: "c", Entries: entries}}
		want, problem := naiveChain(entries)
		built, diagnostics := resolution.Build([]resolution.Package{p})
		if got := built.Chain("p", "c"); !slices.Equal(want, got) {
			t.Fatalf("chain %v, want %v", got, want)
		}
		malformed := ""
		for _, d := range diagnostics {
			if d.Reason == resolution.ReasonMalformedChannel {
				malformed = d.Message
			}
		}
		if (malformed != "") != (problem != "") || !strings.Contains(malformed, problem) {
			t.Fatalf("problem %q, want %q", malformed, problem)
		}
		p.Channels[0].Entries = rapid.Permutation(entries).Draw(t, "shuffled")
		if _, again := resolution.Build([]resolution.Package{p}); !slices.Equal(diagnostics, again) {
			t.Fatalf("of the same entries in another order: %v, want %v", again, diagnostics)
		}
	})
}

// quickly fails a test whose time grows faster than what it reads. The bound is wide, as a busy machine and the race
// detector take a hundred times as long: what it is to find takes that of hours.
func quickly(t *testing.T, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Less(t, time.Since(start), 8*time.Minute)
}

func TestHostileContentIsHandledQuickly(t *testing.T) {
	t.Run("a channel of as many heads as entries below them", func(t *testing.T) {
		var entries []resolution.ChannelEntry
		for i := range 8_000 {
			entries = append(entries, resolution.ChannelEntry{Name: fmt.Sprintf("head%d", i), Replaces: "tail0"},
				resolution.ChannelEntry{Name: fmt.Sprintf("tail%d", i), Replaces: fmt.Sprintf("tail%d", i+1)})
		}
		quickly(t, func() {
			_, diagnostics := resolution.Build([]resolution.Package{{Name: "p", DefaultChannel: "c", Channels: []resolution.Channel{{Name: "c", Entries: entries}}}})
			i := slices.IndexFunc(diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == resolution.ReasonMalformedChannel })
			require.Contains(t, diagnostics[i].Message, "8000 replacement chains")
			require.Contains(t, diagnostics[i].Message, "head1...tail7999, ")
			require.True(t, strings.HasSuffix(diagnostics[i].Message, "… (7900 more)"))
		})
	})
	t.Run("a constraint of a thousand parts that nearly everything meets", func(t *testing.T) {
		var lines []entry
		for i := range 5000 {
			lines = append(lines, line(fmt.Sprintf("b%d/s", i), fmt.Sprintf("b%d", i), ""))
		}
		part := `{"not":{"constraints":[{"gvk":{"group":"g","kind":"K","version":"v1"}}]}},`
		lines = append(lines, line("a/s", "a1", "", constraint(`{"any":{"constraints":[`+strings.TrimSuffix(strings.Repeat(part, 1500), ",")+`]}}`)))
		w := newWorld(lines...).sub("a/s")
		quickly(t, func() { require.Equal(t, resolution.Resolved, resolution.Resolve(w.in).Outcome) })
	})
	t.Run("a range of a million alternatives", func(t *testing.T) {
		versions := strings.Repeat(">1.0.0 || ", 1_000_000) + ">1.0.0"
		_, diagnostics := content(entry{in: "a/s", name: "a1", version: "1.0.0", skipRange: versions, facts: []olmcore.Property{requiresPackage("b", versions)}})
		require.Len(t, diagnostics, 2)
		for _, d := range diagnostics {
			require.True(t, strings.HasSuffix(d.Message, "version range is longer than 16384 bytes"))
			require.Less(t, len(d.Message), 1000)
		}
	})
	t.Run("a namespace of Subscriptions that are all held back", func(t *testing.T) {
		const n = 500
		var lines []entry
		for i := range n {
			p := fmt.Sprintf("p%d", i)
			lines = append(lines, line(p+"/s", p+".v1", ""), line(p+"/s", p+".v2", p+".v1", requires("NotThere")))
		}
		w := newWorld(lines...).policy(resolution.Policy{MaxSteps: 10 * n})
		for i := range n {
			w.sub(fmt.Sprintf("p%d/s", i))
		}
		res := resolution.Resolve(w.in)
		require.Len(t, res.HeldBack, n)
		for _, h := range res.HeldBack {
			require.Equal(t, resolution.RequirementUnmet, h.Code, h.Summary)
		}
	})
	t.Run("a bundle that needs 50,000 APIs, and one that has them, in a catalog and installed", func(t *testing.T) {
		var provided, required []olmcore.Property
		for i := range 50_000 {
			provided, required = append(provided, provides(fmt.Sprint("K", i))), append(required, requires(fmt.Sprint("K", i)))
		}
		lines := []entry{line("a/s", "a1", "", required...), line("b/s", "b1", "", provided...)}
		quickly(t, func() {
			require.Len(t, resolution.Resolve(newWorld(lines...).sub("a/s").in).Operators, 2)
			require.Len(t, resolution.Resolve(newWorld(lines...).sub("a/s").csv("b", "b1", provided).in).Operators, 1)
		})
	})
	t.Run("a chain of dependencies as long as a catalog", func(t *testing.T) {
		var lines []entry
		for i := range 1500 {
			lines = append(lines, line(fmt.Sprintf("b%d/s", i), fmt.Sprintf("b%d", i), "", provides(fmt.Sprint("K", i)), requires(fmt.Sprint("K", (i+1)%1500))))
		}
		w := newWorld(lines...).sub("b0/s")
		quickly(t, func() { require.Len(t, resolution.Resolve(w.in).Operators, 1500) })
	})
}
