// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

// TestAPublicationElsewhereChangesNoAnswer: whatever is published, changed or withdrawn, an answer with the same
// fingerprint is the same answer.
func TestAPublicationElsewhereChangesNoAnswer(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		s := small
		s.packages, s.kinds = 6, 5
		n := drawNamespace(t, s)
		policies := []resolution.Policy{{}, {}, {}, {FailOnInvalidBundle: true}, {FailOnMalformedChannel: true}, {FailOnUnavailableCatalog: true}, {AllowBackwardSkipRange: true}}
		policy := rapid.SampledFrom(policies).Draw(t, "policy")
		answer := func() (string, string, resolution.Result) {
			in := n.input()
			in.Policy = policy
			digests := ""
			for _, c := range in.Catalogs {
				digests += c.Content.Digest()
			}
			return in.Fingerprint(), digests, resolution.Resolve(in)
		}
		fingerprint, digests, want := answer()
		c := &n.catalogs[rapid.IntRange(0, len(n.catalogs)-1).Draw(t, "where")]
		name := fmt.Sprintf("p%d", rapid.IntRange(0, s.packages).Draw(t, "what"))
		c.packages = slices.DeleteFunc(c.packages, func(p resolution.Package) bool { return p.Name == name })
		if rapid.Bool().Draw(t, "is there") {
			c.packages = append(c.packages, drawPackage(t, s, name))
		}
		next, changed, got := answer()
		if fingerprint != next || digests == changed {
			return
		}
		kept++
		if diff := cmp.Diff(want.Resolution, got.Resolution); diff != "" {
			t.Fatalf("after %s of %s changed (-before +after):\n%s", name, c.key, diff)
		}
	})
	require.NotZero(t, kept, "each change had another fingerprint")
}

// TestWhichPublicationsCount is the table of what an answer depends on, for a namespace that follows package a.
func TestWhichPublicationsCount(t *testing.T) {
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

// TestOnlyWhoIsConcernedResolvesAgain: of a hundred namespaces that follow a package each, a version of one package
// concerns the one.
func TestOnlyWhoIsConcernedResolvesAgain(t *testing.T) {
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
