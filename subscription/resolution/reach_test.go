// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

// TestUnrelatedPublicationsChangeNoAnswer: whatever is published, changed or withdrawn, and whatever becomes of a
// catalog, an answer with the same fingerprint is the same answer with the same reasons.
func TestUnrelatedPublicationsChangeNoAnswer(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		s := small
		s.catalogs, s.packages, s.kinds = 3, 6, 5
		n := drawNamespace(t, s)
		for i := range n.catalogs {
			for j := range n.catalogs[i].packages {
				drawRules(t, s, &n.catalogs[i].packages[j])
			}
		}
		policies := []resolution.Policy{{}, {}, {}, {FailOnInvalidBundle: true}, {FailOnMalformedChannel: true}, {FailOnUnavailableCatalog: true}, {AllowBackwardSkipRange: true}, resolution.UpstreamPolicy()}
		in := n.input()
		in.Policy = rapid.SampledFrom(policies).Draw(t, "policy")
		if rapid.Bool().Draw(t, "compiles") {
			in.CEL = evaluator{}
		}
		if rapid.Bool().Draw(t, "catalogs of one content") {
			for i := range in.Catalogs {
				n.catalogs[i].packages, in.Catalogs[i].Content = n.catalogs[0].packages, in.Catalogs[0].Content
			}
		}
		next := in
		next.Catalogs = slices.Clone(in.Catalogs)
		i := rapid.IntRange(0, len(n.catalogs)-1).Draw(t, "where")
		what := drawChange(t, s, n.catalogs[i].packages, &next.Catalogs[i])
		if in.Fingerprint() != next.Fingerprint() {
			return
		}
		kept++
		want, got := resolution.Resolve(in), resolution.Resolve(next)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(resolution.Result{}, "Stats")); diff != "" {
			t.Fatalf("after %s of %s (-before +after):\n%s", what, n.catalogs[i].key, diff)
		}
	})
	require.NotZero(t, kept, "each change had another fingerprint")
}

// drawRules gives some bundles of a package labels, and demands that no index answers.
func drawRules(t *rapid.T, s sizes, p *resolution.Package) {
	for i := range p.Bundles {
		b := &p.Bundles[i]
		label := fmt.Sprintf("l%d", rapid.IntRange(0, 2).Draw(t, "label"))
		switch rapid.IntRange(0, 19).Draw(t, "rule") {
		case 0, 1, 2:
			b.Properties = append(b.Properties, property(resolution.PropertyLabel, `{"label":%q}`, label))
		case 3, 4:
			b.Properties = append(b.Properties, property(resolution.PropertyLabelRequired, `{"label":%q}`, label))
		case 5:
			b.Properties = append(b.Properties, property(resolution.PropertyConstraint, `{"cel":{"rule":"has K%d"}}`, rapid.IntRange(0, s.kinds-1).Draw(t, "kind")))
		}
	}
}

// drawChange changes what a catalog offers, or how it is.
func drawChange(t *rapid.T, s sizes, before []resolution.Package, c *resolution.CatalogState) (what string) {
	name := fmt.Sprintf("p%d", rapid.IntRange(0, s.packages).Draw(t, "what"))
	packages := slices.Clone(before)
	i := slices.IndexFunc(packages, func(p resolution.Package) bool { return p.Name == name })
	what = rapid.SampledFrom([]string{"another package", "another package", "removal", "removal", "deprecation", "default channel", "priority", "outage", "stale"}).Draw(t, "change")
	switch {
	case what == "priority":
		c.Priority = rapid.SampledFrom([]int{0, -5, 5}).Draw(t, "next priority")
	case what == "outage":
		c.Content, c.Problem = nil, "registry does not answer"
	case what == "stale":
		c.Stale, c.Problem = true, "registry does not answer"
	case what == "another package":
		p := drawPackage(t, s, name)
		drawRules(t, s, &p)
		packages = append(slices.DeleteFunc(packages, func(p resolution.Package) bool { return p.Name == name }), p)
	case i < 0:
		return what + " of nothing"
	case what == "removal":
		packages = slices.Delete(packages, i, i+1)
	case what == "deprecation":
		packages[i].Deprecations = []resolution.Deprecation{{Bundle: packages[i].Bundles[0].Name, Message: "use another"}}
	case what == "default channel":
		packages[i].DefaultChannel = rapid.SampledFrom(packages[i].Channels).Draw(t, "next default").Name
	}
	if c.Content != nil {
		c.Content, _ = resolution.Build(packages)
	}
	return what
}

// TestWhichPublicationsChangeTheFingerprint is the table of what an answer depends on, for a namespace that follows
// package a.
func TestWhichPublicationsChangeTheFingerprint(t *testing.T) {
	follows := line("a/s", "a1", "", requires("K"))
	for name, tt := range map[string]struct {
		before, published []resolution.Package
		counts            bool
	}{
		"a version of another package":                {packages(line("b/s", "b1", "")), packages(line("b/s", "b2", "b1")), false},
		"another package":                             {nil, packages(line("b/s", "b1", "")), false},
		"one that requires what is followed":          {nil, packages(line("b/s", "b1", "", requiresPackage("a", ">0.0.0"))), false},
		"a provider of what is required":              {nil, packages(line("b/s", "b1", "", provides("K"))), true},
		"a provider of what else is offered":          {nil, packages(line("b/s", "b1", "", provides("L"))), false},
		"the provider goes":                           {packages(line("b/s", "b1", "", provides("K"))), nil, true},
		"the provider requires more":                  {packages(line("b/s", "b1", "", provides("K"))), packages(line("b/s", "b1", "", provides("K"), requires("L"))), true},
		"what the provider requires":                  {packages(line("b/s", "b1", "", provides("K"), requires("L"))), packages(line("b/s", "b1", "", provides("K"), requires("L")), line("c/s", "c1", "", provides("L"))), true},
		"a rule that cannot be looked up in an index": {packages(line("b/s", "b1", "", provides("K"), property(resolution.PropertyConstraint, `{"cel":{"rule":"true"}}`))), packages(line("b/s", "b1", "", provides("K"), property(resolution.PropertyConstraint, `{"cel":{"rule":"true"}}`)), line("c/s", "c1", "")), true},
		"a label that is required":                    {packages(line("b/s", "b1", "", provides("K"), property(resolution.PropertyLabelRequired, `{"label":"x"}`))), packages(line("b/s", "b1", "", provides("K"), property(resolution.PropertyLabelRequired, `{"label":"x"}`)), line("c/s", "c1", "", property(resolution.PropertyLabel, `{"label":"x"}`))), true},
	} {
		t.Run(name, func(t *testing.T) {
			fingerprint := func(more []resolution.Package) string {
				w := newWorld(follows).sub("a/s")
				built, problems := resolution.Build(append(packages(follows), more...))
				require.Empty(t, problems)
				w.in.Catalogs[0].Content = built
				return w.in.Fingerprint()
			}
			require.Equal(t, tt.counts, fingerprint(tt.before) != fingerprint(tt.published))
		})
	}
}

// TestWhichCatalogChangesChangeTheFingerprint is the table of what else an answer depends on, for a namespace that
// follows package a of global/cat, which requires K, where two catalogs are of one content.
func TestWhichCatalogChangesChangeTheFingerprint(t *testing.T) {
	all := []entry{line("a/s", "a1", "", requires("K")), line("a/t", "a1", ""), line("b/s", "b1", "", provides("K")), line("b/t", "b1", ""), line("c/s", "c1", ""), line("c/t", "c1", "")}
	publish := func(catalog int, change func(map[string]*resolution.Package)) func(*resolution.Input) {
		return func(in *resolution.Input) {
			list, byName := packages(all...), map[string]*resolution.Package{}
			for i := range list {
				byName[list[i].Name] = &list[i]
			}
			change(byName)
			built, _ := resolution.Build(slices.DeleteFunc(list, func(p resolution.Package) bool { return p.Channels == nil }))
			in.Catalogs[catalog].Content = built
		}
	}
	withdraw := func(name string) func(map[string]*resolution.Package) {
		return func(list map[string]*resolution.Package) { *list[name] = resolution.Package{} }
	}
	prefer := func(name string) func(map[string]*resolution.Package) {
		return func(list map[string]*resolution.Package) { list[name].DefaultChannel = "t" }
	}
	deprecate := func(name string) func(map[string]*resolution.Package) {
		return func(list map[string]*resolution.Package) {
			list[name].Deprecations = []resolution.Deprecation{{Message: "use another"}}
		}
	}
	for name, tt := range map[string]struct {
		change func(*resolution.Input)
		counts bool
	}{
		"nothing":                                {func(*resolution.Input) {}, false},
		"the package goes":                       {publish(0, withdraw("a")), true},
		"the provider goes":                      {publish(0, withdraw("b")), true},
		"the provider of the other catalog goes": {publish(1, withdraw("b")), true},
		"another package goes":                   {publish(0, withdraw("c")), false},
		"another package of the other goes":      {publish(1, withdraw("c")), false},
		"the package is deprecated":              {publish(0, deprecate("a")), true},
		"another package is deprecated":          {publish(0, deprecate("c")), false},
		"the provider has another default":       {publish(0, prefer("b")), true},
		"another package has another default":    {publish(0, prefer("c")), false},
		"a catalog comes first":                  {func(in *resolution.Input) { in.Catalogs[1].Priority = 1 }, true},
		"a catalog cannot be read":               {func(in *resolution.Input) { in.Catalogs[1].Content = nil }, true},
		"a catalog is stale":                     {func(in *resolution.Input) { in.Catalogs[1].Stale = true }, true},
		"a catalog goes":                         {func(in *resolution.Input) { in.Catalogs = in.Catalogs[:1] }, true},
		"global catalogs are hidden":             {func(in *resolution.Input) { in.GlobalCatalogNamespace = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(all...).catalog("ns/other", 0).sub("a/s")
			w.in.Catalogs[1].Content = w.in.Catalogs[0].Content
			before := w.in.Fingerprint()
			tt.change(&w.in)
			require.Equal(t, tt.counts, before != w.in.Fingerprint())
		})
	}
}

// TestProvidersOfEqualCatalogsAreTrackedSeparately: two catalogs may be one value, and what one of them loses is
// missed there.
func TestProvidersOfEqualCatalogsAreTrackedSeparately(t *testing.T) {
	lines := []entry{line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"))}
	w := newWorld(lines...).catalog("global/dog", 0).sub("a/s", from("global/dog"))
	w.in.Catalogs[1].Content = w.in.Catalogs[0].Content
	fingerprint, before := w.in.Fingerprint(), chosen(resolution.Resolve(w.in))
	w.in.Catalogs[1].Content, _ = content(lines[0])
	require.NotEqual(t, before, chosen(resolution.Resolve(w.in)), "the provider is of the other catalog now")
	require.NotEqual(t, fingerprint, w.in.Fingerprint())
}

// TestRequirementsOfAProposalChangeTheFingerprint checks a Subscription whose proposed package requires an API that
// another catalog provides.
func TestRequirementsOfAProposalChangeTheFingerprint(t *testing.T) {
	for name, more := range map[string][]entry{"nothing": nil, "what it requires": {line("b/s", "b1", "", provides("K"))}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(line("database/s", "a1", "", requires("K"))).catalog("ns/other", 0, line("z/s", "z1", "")).sub("databese/s")
			fingerprint, before := w.in.Fingerprint(), resolution.Resolve(w.in)
			w.in.Catalogs[1].Content, _ = content(append([]entry{line("z/s", "z1", "")}, more...)...)
			after := resolution.Resolve(w.in)
			require.Equal(t, cmp.Equal(before.Cores, after.Cores), fingerprint == w.in.Fingerprint())
			require.Equal(t, more == nil, fingerprint == w.in.Fingerprint())
		})
	}
}

// TestOnlyAffectedNamespacesResolveAgain: of a hundred namespaces that follow a package each, a version of one
// package concerns the one.
func TestOnlyAffectedNamespacesResolveAgain(t *testing.T) {
	const count = 100
	publish := func(newest int) *resolution.Catalog {
		var lines []entry
		for i := range count {
			name := fmt.Sprintf("p%d", i)
			lines = append(lines, entry{in: name + "/s", name: name + "-1", version: "1.0.0"})
			if i == newest {
				lines = append(lines, entry{in: name + "/s", name: name + "-2", version: "2.0.0", replaces: name + "-1"})
			}
		}
		built, _ := content(lines...)
		return built
	}
	before, after := publish(-1), publish(42)
	var concerned []int
	for i := range count {
		w := newWorld(chain()...).sub(fmt.Sprintf("p%d/s", i))
		w.in.Catalogs[0].Content = before
		fingerprint := w.in.Fingerprint()
		w.in.Catalogs[0].Content = after
		if w.in.Fingerprint() != fingerprint {
			concerned = append(concerned, i)
		}
	}
	require.Equal(t, []int{42}, concerned)
}
