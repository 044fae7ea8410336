// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestReplacementChains has cases of OLM.
//
// OLM's cases: chain: a head and what it replaces; chain: two that replace each other; chain: a circle below the
// head; chain: skipped and replaced; chain: a skipped tail; chain: two chains; heads, circles and stranded entries.
func TestReplacementChains(t *testing.T) {
	e := func(name, replaces string, skips ...string) entry {
		return entry{in: "p/c", name: name, version: "1.0.0", replaces: replaces, skips: skips}
	}
	for name, c := range map[string]struct {
		entries []entry
		want    string
	}{
		"one after the other":                           {[]entry{e("b", ""), e("a", "b")}, "a b"},
		"nothing to replace":                            {[]entry{e("a", "")}, "a"},
		"an edge out of the channel":                    {[]entry{e("a", "elsewhere")}, "a"},
		"two that replace each other":                   {[]entry{e("a", "b"), e("b", "a")}, `no channel heads (entries not replaced by another entry) found in channel "c" of package "p"`},
		"a circle below the head":                       {[]entry{e("a", "b"), e("b", "c"), e("c", "b")}, `a cycle exists in the chain of replacement beginning with "a" in channel "c" of package "p"`},
		"skipped and replaced":                          {[]entry{e("a", "b", "b"), e("b", "c"), e("c", "")}, "a c"},
		"a skipped tail":                                {[]entry{e("a", "b", "c"), e("b", "c"), e("c", "")}, "a b"},
		"two chains":                                    {[]entry{e("a", ""), e("b", "c"), e("c", "")}, `a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "c" of package "p": a, b...c`},
		"an entry that replaces and skips itself":       {[]entry{e("a", "a", "a")}, "a"},
		"what is behind a skipped entry is not reached": {[]entry{e("a", ""), e("b", "a"), e("x", "", "y"), e("y", "b")}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			built, diagnostics := content(c.entries...)
			got := strings.Join(built.Chain("p", "c"), " ")
			for _, d := range diagnostics {
				if d.Reason == resolution.ReasonMalformedChannel {
					got = strings.TrimPrefix(d.Message, `channel "c" of package p cannot be used: `)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestStrandedEntriesAreReported has a case of OLM.
//
// OLM's case: heads, circles and stranded entries.
func TestStrandedEntriesAreReported(t *testing.T) {
	_, diagnostics := content(line("a/s", "a1", ""), line("a/s", "a2", "a1"), entry{in: "a/s", name: "a3", version: "3.0.0", skips: []string{"a2"}},
		line("b/s", "b1", ""), line("b/s", "b2", "b3"), line("b/s", "b3", "b2"))
	var got []string
	for _, d := range diagnostics {
		got = append(got, d.Path+": "+d.Message)
	}
	const why = " is stranded: the head of its channel does not lead to it, so it cannot be chosen"
	require.Equal(t, []string{
		`packages["a"].channels["s"].bundles["a1"]: entry a1` + why,
		`packages["b"].channels["s"].bundles["b2"]: entry b2` + why,
		`packages["b"].channels["s"].bundles["b3"]: entry b3` + why,
	}, got)
}

// TestBuildReportsBrokenContent has cases of OLM.
//
// OLM's cases: a second entry of one name; chain: no entries; catalogs whose pieces contradict each other; equal
// versions of one package; an empty skip; ranges with a leading v.
func TestBuildReportsBrokenContent(t *testing.T) {
	list := packages(line("a/s", "a1", ""), line("a/s", "a2", "a1"))
	a := &list[0]
	a.DefaultChannel = "gone"
	a.Channels = append(a.Channels, a.Channels[0])
	a.Channels[0].Entries = append(a.Channels[0].Entries, resolution.ChannelEntry{Name: "ghost", Replaces: "a2", SkipRange: "~1.0"}, resolution.ChannelEntry{Name: "a1"})
	a.Bundles = append(a.Bundles,
		a.Bundles[0], resolution.Bundle{},
		bundle("lost", packageProperty("a", "3.0.0")),
		bundle("foreign", packageProperty("b", "1.0.0")),
		bundle("same", packageProperty("a", "1.0.0")),
		bundle("odd", packageProperty("a", "one"), property(resolution.PropertyGVK, `"x"`), property(resolution.PropertyLabel, `{}`), property(resolution.PropertyConstraint, `{"gvk":null}`)),
	)
	list = append(list, resolution.Package{Name: "a"}, resolution.Package{}, resolution.Package{Name: "hollow", Channels: []resolution.Channel{{Name: "s"}}})
	built, diagnostics := resolution.Build(list)
	require.Equal(t, []string{"a", "hollow"}, built.Packages())
	require.Equal(t, []string{"ghost", "a2", "a1"}, built.Chain("a", "s"), "an entry without bundle keeps its place")
	require.True(t, slices.IsSortedFunc(diagnostics, func(x, y olmcore.Diagnostic) int { return strings.Compare(x.Path, y.Path) }))
	var got []string
	for _, d := range diagnostics {
		got = append(got, fmt.Sprintf("%s %s: %s", d.Reason, d.Path, d.Message))
	}
	for _, want := range []string{
		`InvalidContent packages[""]: a package without a name is left out`,
		`DuplicateContent packages["a"]: a second package a is left out`,
		`InvalidContent packages["a"]: package a has no channel "gone", its default channel; its channels are ordered by name`,
		`DuplicateContent packages["a"].channels["s"]: a second channel "s" is left out`,
		`InvalidContent packages["a"].channels["s"].bundles["ghost"]: entry ghost has no bundle and cannot be chosen`,
		`InvalidContent packages["a"].channels["s"].bundles["ghost"]: entry ghost stays, but no version upgrades by its skipRange "~1.0", which is no version range: Could not parse Range "~1.0": Could not parse comparator "~" in "~1.0"`,
		`DuplicateContent packages["a"].channels["s"].bundles["a1"]: a second entry a1 is left out`,
		`DuplicateContent packages["a"].bundles["a1"]: a second bundle a1 is left out`,
		`InvalidContent packages["a"]: a bundle of package a without a name is left out`,
		`InvalidContent packages["a"].bundles["lost"]: bundle lost is in no channel and cannot be chosen`,
		`InvalidBundle packages["a"].bundles["foreign"]: bundle foreign cannot be chosen: its olm.package property names package b`,
		`DuplicateContent packages["a"].bundles["same"]: bundles a1 and same have the same version 1.0.0`,
		`InvalidContent packages["a"].bundles["odd"]: bundle odd has the version "one", which is none: it is in no version range`,
		`InvalidContent packages["a"].bundles["odd"]: odd: property olm.gvk is ignored: its value is not a JSON object`,
		`InvalidContent packages["a"].bundles["odd"]: odd: property olm.label is ignored: it has no label`,
		`InvalidBundle packages["a"].bundles["odd"]: bundle odd cannot be chosen: convert olm.constraint to resolver predicate: constraint is empty`,
		`InvalidContent packages["hollow"].channels["s"]: channel "s" of package hollow has no usable entries`,
	} {
		require.Contains(t, got, want)
	}
	empty, none := resolution.Build(nil)
	require.Empty(t, none)
	require.Empty(t, empty.Packages())
	require.Nil(t, (*resolution.Catalog)(nil).Packages())
}

// TestInvalidConstraintsAreReported has a case of OLM.
//
// OLM's case: constraints are parsed.
func TestInvalidConstraintsAreReported(t *testing.T) {
	deep := strings.Repeat(`{"all":{"constraints":[`, 65) + `{"gvk":{"group":"g","kind":"K","version":"v1"}}` + strings.Repeat(`]}}`, 65)
	for value, want := range map[string]string{
		`{"unknown":1}`:                                          `parse olm.constraint: json: unknown field "unknown"`,
		`{"all":{"constraints":[{"x":1}]}}`:                      `parse olm.constraint: json: unknown field "x"`,
		`{"failureMessage":"m"}`:                                 `convert olm.constraint to resolver predicate: constraint is empty`,
		`{"package":{"packageName":"p","versionRange":">=1.2"}}`: `convert olm.constraint to resolver predicate: Could not parse Range`,
		`{"gvk":{"group":"g","kind":"K","version":"v1"},"package":{"packageName":"p","versionRange":">=1.0.0"}}`: `convert olm.constraint to resolver predicate: constraint has more than one kind`,
		`{"gvk":{"group":"g","kind":"K","version":"v1"}} {}`:                                                     `parse olm.constraint: data behind the constraint`,
		deep: `convert olm.constraint to resolver predicate: more than 64 nested constraints`,
		`{"failureMessage":"` + strings.Repeat("x", 131072) + `","gvk":{}}`: `parse olm.constraint: olm.constraint value is greater than max constraint size 131072 bytes`,
		`[]`: `parse olm.constraint: json: cannot unmarshal array`,
	} {
		_, diagnostics := content(line("a/s", "a1", "", property(resolution.PropertyConstraint, "%s", value)))
		require.Len(t, diagnostics, 1, value)
		require.Contains(t, diagnostics[0].Message, want)
	}
	for _, value := range []string{`{"all":{"constraints":[]}}`, `{"not":{"constraints":[]}}`} {
		w := newWorld(line("a/s", "a1", "", property(resolution.PropertyConstraint, "%s", value))).sub("a/s")
		require.Equal(t, resolution.Resolved, resolution.Resolve(w.in).Outcome, value)
	}
	w := newWorld(line("a/s", "a1", "", property(resolution.PropertyConstraint, `{"any":{"constraints":[]}}`))).sub("a/s")
	require.Equal(t, "constraints not satisfiable: bundle a1 requires an operator , subscription a exists, subscription a requires cat/global/s/a1", resolution.Resolve(w.in).Failure.Message)
}

func TestInvalidVersionRangesAreReported(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", requiresPackage("b", ">9.0.0 || || <0.1.0")), line("b/s", "b1", "")).sub("a/s")
	require.Equal(t, resolution.Unsatisfiable, resolution.Resolve(w.in).Outcome)
}

func TestABundleWithoutPackageIsInstalledWithItsOwn(t *testing.T) {
	list := packages(line("a/s", "a1", ""))
	list[0].Bundles[0].Properties = []olmcore.Property{provides("K")}
	built, _ := resolution.Build(list)
	w := newWorld(line("a/s", "a1", "")).sub("a/s")
	w.in.Catalogs[0].Content = built
	require.Equal(t, []olmcore.Property{provides("K"), packageProperty("a", "")}, resolution.Resolve(w.in).Operators[0].Bundle.Properties)
	require.Len(t, list[0].Bundles[0].Properties, 1, "the source stays as it is")

	// It is of its package, too, of which there is only one.
	list = packages(line("b/s", "b1", ""), line("b/t", "b2", ""))
	list[0].Bundles[0].Properties, list[0].Bundles[1].Properties = []olmcore.Property{provides("K")}, []olmcore.Property{provides("L")}
	built, _ = resolution.Build(list)
	w = newWorld(line("a/s", "a1", "", requires("K"), requires("L"))).sub("a/s").catalog("global/other", 0)
	w.in.Catalogs[1].Content = built
	require.Equal(t, resolution.Unsatisfiable, resolution.Resolve(w.in).Outcome)
}

func TestBundleOfTwoPackagesIsListedInBoth(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", requiresPackage("q", ">=2.0.0")), line("b/s", "b1", "", packageProperty("q", "2.0.0"))).sub("a/s")
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1",
		describe(resolution.Resolve(w.in)))
}

func TestVersionsOfAPackage(t *testing.T) {
	for facts, c := range map[*[]olmcore.Property]struct {
		need string
		want resolution.Outcome
	}{
		{packageProperty("b", "v1.0")}:                                 {"b", resolution.Resolved},
		{packageProperty("b", "v1.0"), packageProperty("b", "v1.0")}:   {"b", resolution.Resolved}, // the same twice
		{packageProperty("b", "one")}:                                  {"b", resolution.Unsatisfiable},
		{packageProperty("b", "1.0.0"), packageProperty("q", "1.0.0")}: {"q", resolution.Resolved},
		{packageProperty("b", "2.0.0"), packageProperty("b", "1.0.0")}: {"b", resolution.Resolved},
	} {
		list := packages(line("a/s", "a1", "", requiresPackage(c.need, "1.0.0")), line("b/s", "b1", ""))
		list[1].Bundles[0].Properties = *facts
		w := newWorld(chain()...).sub("a/s")
		w.in.Catalogs[0].Content, _ = resolution.Build(list)
		require.Equal(t, c.want, resolution.Resolve(w.in).Outcome, *facts)
	}
}

func TestPackageAndVersionComeFromOneProperty(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", requiresPackage("q", ">=2.0.0"))).sub("a/s").csv("q", "q1", []olmcore.Property{packageProperty("p", "2.0.0")})
	require.Equal(t, resolution.Unsatisfiable, resolution.Resolve(w.in).Outcome)
	w.in.Policy.IndependentPackageVersion = true
	require.Equal(t, resolution.Resolved, resolution.Resolve(w.in).Outcome)
}

// TestLongMessagesAreShortened has a case of OLM.
//
// OLM's case: the text of no, one and several rules.
func TestLongMessagesAreShortened(t *testing.T) {
	var lines []entry
	for i := range 200 {
		replaces := ""
		if i > 0 {
			replaces = fmt.Sprintf("a%d", i-1)
		}
		lines = append(lines, line("a/s", fmt.Sprintf("a%d", i), replaces, requires("K")))
	}
	w := newWorld(lines...).sub("a/s")
	res := resolution.Resolve(w.in)
	require.LessOrEqual(t, len(res.Failure.Message), resolution.DefaultMessageLimit)
	require.Contains(t, res.Failure.Message, "more)")
	require.Len(t, res.Cores[0].Rules, 202, "the rules are complete")
	require.Less(t, len(res.Cores[0].Summary), 300)
	w.in.Policy.MessageLimit = 100
	require.LessOrEqual(t, len(resolution.Resolve(w.in).Failure.Message), 100)
	w.in.Policy.MessageLimit = -1
	require.Greater(t, len(resolution.Resolve(w.in).Failure.Message), resolution.DefaultMessageLimit)
}

func TestHardProblemsEndWithinTheBudget(t *testing.T) {
	in := pigeonhole(12)
	in.Policy.MaxSteps = 100
	res := resolution.Resolve(in)
	require.Equal(t, resolution.Failed, res.Outcome)
	require.Equal(t, "resolution stopped after 100 steps", res.Failure.Message)
	require.False(t, res.Failure.Unsatisfiable)
	require.Less(t, res.Stats.Steps, 100*(20+12))

	in.Policy.MaxSteps = 0
	whole := resolution.Resolve(in)
	require.Equal(t, resolution.Unsatisfiable, whole.Outcome)
	require.True(t, whole.Cores[0].Minimal)
	require.Len(t, whole.Cores[0].Subscriptions, 12)
	in.Policy = resolution.UpstreamPolicy()
	require.Equal(t, resolution.Unsatisfiable, resolution.Resolve(in).Outcome)
	in.Policy.MaxSteps = 100
	require.Equal(t, resolution.Failed, resolution.Resolve(in).Outcome)
}

func TestOnlySubscriptionsThatAreTooHardAreLeftOut(t *testing.T) {
	in := newWorld(append(braid(14, 30), chain()...)...).sub("p0/s", aged(2)).sub("a/stable", aged(1)).in
	in.Policy.MaxSteps = 60
	res := resolution.Resolve(in)
	require.Equal(t, resolution.Resolved, res.Outcome)
	require.Equal(t, []string{"a3"}, []string{res.Operators[0].Name})
	require.Len(t, res.Cores, 1)
	require.Equal(t, []string{"p0"}, res.Cores[0].Subscriptions)
	require.Equal(t, "resolution stopped after 60 steps", res.Cores[0].Message)
	require.Equal(t, "Subscription p0 was not decided within 60 steps: each of the 30 candidates from p0.v29 to p0.v0 was tried, together with what older Subscriptions can have.", res.Cores[0].Summary)
	require.NotEmpty(t, res.Cores[0].Remedies)
}

func TestReasonIsReportedEvenIfItCannotBeMinimized(t *testing.T) {
	in := newWorld(line("a/s", "a1", "", provides("K")), line("b/s", "b1", "", provides("K"))).sub("a/s").sub("b/s").in
	var found []string
	for steps := 1; len(found) == 0 || found[len(found)-1] != "5 true"; steps++ {
		rules, minimal := resolution.ReasonsWithin(in, steps)
		found = append(found, fmt.Sprint(rules, minimal))
	}
	require.Equal(t, []string{"0 false", "5 false", "5 true"}, slices.Compact(found))
}

func TestReasonIsUnknownIfTheBudgetEnds(t *testing.T) {
	in := newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requires("K"))).sub("a/s").in
	for steps := 0; ; steps++ {
		held := resolution.HeldBackWithin(in, steps)
		require.Len(t, held, 1)
		if held[0].Code == resolution.RequirementUnmet {
			require.Greater(t, steps, 0)
			return
		}
		require.Equal(t, resolution.HeldBack{Subscription: "a", Candidate: "a2", Code: resolution.Unknown,
			Summary: fmt.Sprintf("Subscription a does not get a2, and the reason was not found within %d steps.", steps)}, held[0])
	}
}

// TestSearchBacktracksToTheConflictingDecision has a case of OLM.
//
// OLM's case: only the worst combination is possible.
func TestSearchBacktracksToTheConflictingDecision(t *testing.T) {
	// Twenty Subscriptions with ten candidates each stand between the two that cannot both be satisfied.
	var lines []entry
	w := newWorld()
	follow := func(pkg string, age int64) { w.sub(pkg+"/s", aged(age)) }
	lines = append(lines, line("first/s", "first1", ""), line("first/s", "first2", "first1", provides("K")))
	follow("first", 1)
	for p := range 20 {
		pkg := fmt.Sprintf("between%c", 'a'+p)
		previous := ""
		for v := range 10 {
			name := fmt.Sprintf("%s%d", pkg, v)
			lines = append(lines, line(pkg+"/s", name, previous))
			previous = name
		}
		follow(pkg, 2)
	}
	lines = append(lines, line("last/s", "last1", "", provides("K")))
	follow("last", 3)
	w.catalog("global/cat", 0, lines...)
	w.in.Policy.OmitHeldBack = true
	res := resolution.Resolve(w.in)
	require.Equal(t, resolution.Resolved, res.Outcome)
	require.Less(t, res.Stats.Steps, 100)
	i := slices.IndexFunc(res.Operators, func(op olmcore.Operator) bool { return op.Package == "first" })
	require.Equal(t, "first1", res.Operators[i].Name)
}

// TestAllocationsAndStepsOnAPublishedCatalog holds what does not depend on the machine.
func TestAllocationsAndStepsOnAPublishedCatalog(t *testing.T) {
	c := publishedCatalog(t, community)
	for _, pkg := range c.content.Packages() {
		in := c.world()
		in.Subscriptions = []*v1alpha1.Subscription{subscription("ns", pkg, pkg, "", "global/community")}
		if allocs := testing.AllocsPerRun(1, func() { resolution.Resolve(in) }); allocs > 1000 {
			t.Errorf("%s: %.0f allocations", pkg, allocs)
		}
	}
	res := resolution.Resolve(c.settled(t, 100))
	require.Equal(t, resolution.Unchanged, res.Outcome)
	require.InDelta(t, 150, res.Stats.Steps, 50, "a step or two for each")

	before := liveHeap()
	content, _ := resolution.Build(readCatalog(t, community))
	require.Less(t, liveHeap()-before, 25e6, "what a catalog retains, its source included")
	runtime.KeepAlive(content)
}
