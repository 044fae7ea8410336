// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

func TestEntriesWithoutAnUpgradeAreNamed(t *testing.T) {
	skipping := func(in, name, replaces string, skips ...string) entry {
		e := line(in, name, replaces)
		e.skips = skips
		return e
	}
	ranging := func(e entry, skipRange string) entry {
		e.skipRange = skipRange
		return e
	}
	for name, c := range map[string]struct {
		lines   []entry
		follows string
		want    string
	}{
		"no entry has an edge": {[]entry{line("a/s", "a3", "a2")}, "a/s",
			"no entry of channel s replaces, skips or has a skipRange for a1."},
		"the entry that replaces it is skipped": {[]entry{
			line("a/s", "a1", ""), line("a/s", "a2", "a1"), skipping("a/s", "a3", "", "a2"), line("a/s", "a4", "a3")}, "a/s",
			"a2 replaces it, but a3 skips a2; no other entry of channel s replaces, skips or has a skipRange for it."},
		"the entry that skips it is skipped": {[]entry{
			line("a/s", "a1", ""), skipping("a/s", "a2", "", "a1"), skipping("a/s", "a3", "", "a2")}, "a/s",
			"a2 skips it, but a3 skips a2; no other entry of channel s replaces, skips or has a skipRange for it."},
		"the entry with a skipRange is skipped": {[]entry{ranging(line("a/s", "a2", ""), "<2.0.0"), skipping("a/s", "a3", "", "a2")}, "a/s",
			"a2 has a skipRange for it, but a3 skips a2; no other entry of channel s replaces, skips or has a skipRange for it."},
		"the entry that replaces it is stranded": {[]entry{
			line("a/s", "a1", ""), line("a/s", "a2", "a1"), skipping("a/s", "a3", "a2", "a2"), skipping("a/s", "a4", "", "a3")}, "a/s",
			"a2 replaces it, but a3 skips a2; no other entry of channel s replaces, skips or has a skipRange for it."},
		"a stranded entry replaces it": {[]entry{
			line("a/s", "a1", ""), line("a/s", "a2", "a1"), line("a/s", "a3", "a2"), skipping("a/s", "a4", "", "a3")}, "a/s",
			"a2 replaces it, but the head of channel s, a4, does not lead to a2; " +
				"no other entry of channel s replaces, skips or has a skipRange for it."},
		"only an older entry has a skipRange": {[]entry{ranging(line("a/s", "a0", ""), "<5.0.0"), line("a/s", "a3", "a0")}, "a/s",
			"a0 has a skipRange for it, but a0 is not newer; no other entry of channel s replaces, skips or has a skipRange for it."},
		"several channels are followed": {[]entry{
			line("a/s", "a1", ""), line("a/s", "a2", "a1"), skipping("a/s", "a3", "", "a2"),
			line("a/t", "a1", ""), line("a/t", "a2", "a1"), skipping("a/t", "a4", "", "a2")}, "a",
			"a2 replaces it, but a3 skips a2; a2 replaces it, but a4 skips a2; " +
				"no other entry of package a replaces, skips or has a skipRange for it."},
		"another channel is broken": {[]entry{
			line("a/s", "a3", ""), line("a/t", "a1", ""), line("a/t", "a2", "a1"), line("a/t", "a5", "a1")}, "a",
			"a2 replaces it, but the upgrade graph of channel t is broken; a5 replaces it, but the upgrade graph of channel t is broken; " +
				"no other entry of package a replaces, skips or has a skipRange for it."},
		"there is an upgrade": {[]entry{line("a/s", "a1", ""), skipping("a/s", "a4", "", "a1")}, "a", ""},
		"a large number leads nowhere": {[]entry{
			line("a/s", "a1", ""), line("a/s", "a2", "a1"), line("a/s", "a3", "a1"),
			line("a/s", "a4", "a1"), line("a/s", "a5", "a1"), skipping("a/s", "a6", "", "a2", "a3", "a4", "a5")}, "a/s",
			"a2 replaces it, but a6 skips a2; a3 replaces it, but a6 skips a3; a4 replaces it, but a6 skips a4; 1 more cannot be reached either; " +
				"no other entry of channel s replaces, skips or has a skipRange for it."},
	} {
		t.Run(name, func(t *testing.T) {
			res := resolution.Resolve(newWorld(c.lines...).sub(c.follows, has("a1")).csv("a", "a1", nil).in)
			h := res.Standing("a").HeldBack
			if c.want == "" {
				require.Nil(t, h)
				return
			}
			require.Equal(t, "Subscription a stays at a1: "+c.want, h.Summary)
			require.Equal(t, resolution.NoUpgradeEdge, h.Code)
		})
	}
}

// A bundle is in a channel once for each channel that a Subscription may follow. If Explain names rules that exclude
// the bundle, none of its entries may be possible.
func TestExplainNamesRulesOnlyIfNoChannelOffersTheBundle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		res := resolution.Resolve(in)
		if res.Failure != nil {
			return
		}
		o := newOracle(n, false)
		for i, s := range o.subs {
			if res.Decisions[slices.IndexFunc(res.Targets,
				func(x resolution.Target) bool { return x.Subscription == s.object.Name })].Failure != nil {
				return
			}
			_ = i
		}
		for i, s := range o.subs {
			for _, name := range candidateNames(s) {
				x := resolution.Explain(in, s.object.Name, name)
				if x.Chosen {
					continue
				}
				possible := possibleFor(n, res, i, name)
				if possible && x.Code != resolution.LessPreferred {
					t.Fatalf("%s %s: possible %v, but %s: %s", s.object.Name, name, possible, x.Code, x.Summary)
				}
			}
		}
	})
}

// A Subscription that gets its best bundle from another channel is not held back.
func TestNoSubscriptionIsHeldBackFromTheBundleThatItGets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res := resolution.Resolve(drawNamespace(t, small).input())
		for _, target := range res.Targets {
			if h := res.Standing(target.Subscription).HeldBack; h != nil && h.Candidate == target.Target && h.Candidate != "" {
				t.Fatalf("%+v, but %s", target, h.Summary)
			}
		}
	})
}

func candidateNames(s *oracleSub) (names []string) {
	for _, e := range s.candidates {
		names = append(names, e.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// possibleFor reports whether a Subscription can have a bundle from any channel while the older ones keep what they
// get.
func possibleFor(n *namespace, res resolution.Result, sub int, name string) bool {
	o := newOracle(n, false)
	for i, s := range o.subs[:sub+1] {
		want := name
		if i < sub {
			want = res.Targets[slices.IndexFunc(res.Targets, func(x resolution.Target) bool { return x.Subscription == s.object.Name })].Target
		}
		s.candidates = slices.DeleteFunc(slices.Clone(s.candidates), func(e *oracleEntry) bool { return e.name != want })
	}
	_, ok := o.solve()
	return ok
}
