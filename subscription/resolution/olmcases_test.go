// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestSmallProblems are situations that OLM's own tests pose to its solver.
//
// OLM's cases: nothing asked for; two dependencies of one; what an unselected bundle would need means nothing; one
// operator for two requirements; one operator for many that ask for one of several; preference may install more than
// need be; only the worst combination is possible; an API moves: both new; an update and a new Subscription; skips; a
// failed upgrade without fail-forward: three; the package of an operator without annotation; the annotation counts as
// it is; the last good version is what a failed plan is left from.
func TestSmallProblems(t *testing.T) {
	check(t, cases{
		"nothing is asked for": {newWorld(chain()...), "Unchanged"},
		"two dependencies of one": {newWorld(line("a/s", "a1", "", requires("K"), requires("L")), line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ninstall c1 from global/cat c/s required by a1\ngenerate b-s-cat-global: b/s at b1\ngenerate c-s-cat-global: c/s at c1\na: nothing -> a1, currentCSV a1"},
		"one operator meets two requirements": {newWorld(line("a/s", "a1", "", requires("K"), requires("L")), line("b/s", "b1", "", provides("K"), provides("L")), line("c/s", "c1", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"one operator meets the requirements of two": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", requires("K")), line("c/s", "c1", "", provides("K")), line("d/s", "d1", "", provides("K"))).sub("a/s").sub("b/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s for b\ninstall c1 from global/cat c/s required by a1,b1\ngenerate c-s-cat-global: c/s at c1\na: nothing -> a1, currentCSV a1\nb: nothing -> b1, currentCSV b1"},
		"what a provider would need that is not chosen does not matter": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("K"), requires("L")), line("d/s", "d1", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"the preferred provider, although it needs more than another": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"), requires("L")), line("c/s", "c1", "", provides("K")), line("d/s", "d1", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ninstall d1 from global/cat d/s required by b1\ngenerate b-s-cat-global: b/s at b1\ngenerate d-s-cat-global: d/s at d1\na: nothing -> a1, currentCSV a1"},
		"only the least preferred of all combinations is possible": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", provides("K")), line("a/s", "a3", "a2", provides("L")), line("b/s", "b1", ""), line("b/s", "b2", "b1", provides("K")), line("b/s", "b3", "b2", provides("L")),
			line("x/s", "x1", "", provides("K"), provides("L"))).sub("a/s").sub("b/s").sub("x/s", aged(-1)),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s for b\ninstall x1 from global/cat x/s for x\na: nothing -> a1, currentCSV a1\nb: nothing -> b1, currentCSV b1\nx: nothing -> x1, currentCSV x1\nheld back a: BlockedBySubscription x\nheld back b: BlockedBySubscription x"},
		"an API is in another operator's newest version: both are new": {newWorld(line("a/s", "a1", "", provides("K")), line("a/s", "a2", "a1", requires("K")), line("b/s", "b1", ""), line("b/s", "b2", "b1", provides("K"))).sub("a/s").sub("b/s"),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a\ninstall b2 from global/cat b/s replacing b1 for b required by a2\na: nothing -> a2, currentCSV a2\nb: nothing -> b2, currentCSV b2"},
		"an upgrade and a new Subscription at once": {newWorld(append(chain(), line("b/s", "b1", ""))...).sub("a/stable", has("a1")).csv("a", "a1", nil).sub("b/s"),
			"Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\ninstall b1 from global/cat b/s for b\na: a1 -> a2, currentCSV a2\nb: nothing -> b1, currentCSV b1"},
		"three in a row that failed, and no rolling forward: others go on": {newWorld(append(chain(), line("a/stable", "a4", "a3"), line("b/s", "b1", ""))...).sub("a/stable", has("a3")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseReplacing)).csv("a", "a3", nil, replacing("a2"), phase(v1alpha1.CSVPhaseFailed)).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a3 -> a3, failed\nb: nothing -> b1, currentCSV b1\ncore [a]: constraints not satisfiable: @existing/ns//a2, @existing/ns//a3 and cat/global/stable/a4 originate from package a, clusterserviceversion a2 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/stable/a4 or @existing/ns//a3"},
		"the annotation counts, whatever else the operator says of itself": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"))).sub("a/s").csv("c", "c1", nil, owns("K"), needsCRD("gone")),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"without annotation and version its version is 0.0.0": {newWorld(line("a/s", "a1", "", requiresPackage("b", ">=0.0.0"))).sub("a/s").
			sub("b/s", has("b0")).csv("", "b0", nil, bare).policy(resolution.Policy{}),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nb: b0 -> b0\nheld back b: PackageMissing "},
		"a bundle skips what failed": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1"), entry{in: "a/s", name: "a3", version: "3.0.0", replaces: "a2", skips: []string{"a1"}}).sub("a/s", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a3 from global/cat a/s replacing a1 for a\na: a1 -> a3, currentCSV a3"},
		"a bundle replaces what never was installed": {newWorld(line("a/s", "a1", "a0"), line("a/s", "a2", "a1"), line("a/s", "a3", "a2")).sub("a/s", has("a0")).csv("a", "a0", nil),
			"Resolved\ninstall a1 from global/cat a/s replacing a0 for a\na: a0 -> a1, currentCSV a1"},
	})
}

// TestExcludedProvidersAreNotChosen has a case of OLM.
//
// OLM's case: a list of allowed bundles: all, some, none, and what is installed.
func TestExcludedProvidersAreNotChosen(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("K"))).sub("a/s")
	w.in.Exclude = refuse{"b1": "b1 no"}
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\ninstall c1 from global/cat c/s required by a1\ngenerate c-s-cat-global: c/s at c1\na: nothing -> a1, currentCSV a1", describe(resolution.Resolve(w.in)))
	w.in.Exclude = refuse{"b1": "b1 no", "c1": "c1 no"}
	require.Contains(t, resolution.Resolve(w.in).Failure.Message, "b1 no, bundle a1 requires an operator providing an API with group: g, version: v1, kind: K, c1 no")
	w.csv("b", "b1", []olmcore.Property{provides("K")})
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1", describe(resolution.Resolve(w.in)), "what is installed is not asked about")
}

func TestGeneratedNamesAreValidAndUnique(t *testing.T) {
	names := rapid.StringMatching(`[a-zA-Z0-9._/\-äß 名]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		var lines []entry
		facts := []olmcore.Property{}
		for i, pkg := range rapid.SliceOfNDistinct(names, 1, 4, rapid.ID).Draw(t, "packages") {
			kind := string(rune('A' + i))
			facts = append(facts, requires(kind))
			lines = append(lines, entry{in: pkg, name: "b" + kind, version: "1.0.0", facts: []olmcore.Property{provides(kind)}})
		}
		if slices.ContainsFunc(lines, func(e entry) bool { return e.in[0] == '/' }) {
			lines, facts = lines[:0], nil
		}
		w := newWorld(append(lines, entry{in: "asks/s", name: "a1", version: "1.0.0", facts: facts})...).sub("asks/s")
		seen := map[string]bool{}
		res := resolution.Resolve(w.in)
		for _, s := range res.Generated {
			if problems := validation.IsDNS1123Subdomain(s.Name); len(problems) > 0 || seen[s.Name] {
				t.Fatalf("%q: %v, there already: %v", s.Name, problems, seen[s.Name])
			}
			seen[s.Name] = true
			if plain := s.Spec.Package + "-" + s.Spec.Channel + "-cat-global"; len(validation.IsDNS1123Subdomain(plain)) == 0 && s.Name != plain {
				t.Fatalf("%q, although %q is valid", s.Name, plain)
			}
		}
		if len(res.Cores) == 0 && len(res.Generated) != len(lines) {
			t.Fatalf("%d generated for %d", len(res.Generated), len(lines))
		}
	})
}
