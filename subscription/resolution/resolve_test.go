// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// chain is a channel of a1, a2 and a3.
func chain() []entry {
	return []entry{line("a/stable", "a1", ""), line("a/stable", "a2", "a1"), line("a/stable", "a3", "a2")}
}

// cases are namespaces with what describe says of their answer.
type cases map[string]struct {
	world *world
	want  string
}

func check(t *testing.T, list cases) {
	t.Helper()
	for name, c := range list {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(resolution.Resolve(c.world.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestResolve has cases of OLM.
//
// OLM's cases: what is asked for is selected; a dependency is selected; at most one: the younger takes an
// alternative; heads for installation and upgrade; a dependency by priority, then by name, the own catalog first; a
// dependency by package; a dependency by API; a dependency by label; all parts, and not another; no channel: the
// default one; an operator without Subscription is a dependency; an API moves: both upgraded; a deprecated bundle
// alone, and in the middle; a head that skips; a Subscription without channel; one Subscription, no dependencies; one
// dependency, a generated Subscription; installed, and no update; two Subscriptions to a channel; an update; an
// update from another package; named as current, but absent; versions that wait for each other; a skipRange at the
// head; a new Subscription with startingCSV; another package that replaces the operator.
func TestResolve(t *testing.T) {
	needsB := requiresPackage("b", ">=1.0.0")
	check(t, cases{
		"a new Subscription gets the head of its channel": {newWorld(chain()...).sub("a/stable"),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3"},
		"no channel means the default channel first, even if another has a higher version": {newWorld(line("a/stable", "a1", ""), line("a/alpha", "a2", "")).sub("a"),
			"Resolved\ninstall a1 from global/cat a/stable for a\na: nothing -> a1, currentCSV a1"},
		"an installed operator at the head stays": {newWorld(chain()...).sub("a/stable", has("a3")).csv("a", "a3", nil),
			"Unchanged\na: a3 -> a3"},
		"an upgrade takes one step of replaces": {newWorld(chain()...).sub("a/stable", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: a1 -> a2, currentCSV a2"},
		"a skipRange at the head jumps there": {newWorld(line("a/stable", "a1", ""), line("a/stable", "a2", "a1"), entry{in: "a/stable", name: "a3", version: "3.0.0", replaces: "a2", skipRange: "<3.0.0"}).
			sub("a/stable", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a3 from global/cat a/stable replacing a1 for a\na: a1 -> a3, currentCSV a3"},
		"skips jump too, and a skipped bundle is never chosen": {newWorld(line("a/stable", "a1", ""), line("a/stable", "a2", "a1"), entry{in: "a/stable", name: "a3", version: "3.0.0", replaces: "a2", skips: []string{"a1", "a2"}}).
			sub("a/stable", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a3 from global/cat a/stable replacing a1 for a\na: a1 -> a3, currentCSV a3"},
		"startingCSV installs a skipped bundle": {newWorld(line("a/stable", "a1", ""), entry{in: "a/stable", name: "a2", version: "2.0.0", replaces: "a1", skips: []string{"a1"}}).sub("a/stable", starting("a1")),
			"Resolved\ninstall a1 from global/cat a/stable for a\na: nothing -> a1, currentCSV a1"},
		"startingCSV has no effect once something is installed": {newWorld(chain()...).sub("a/stable", starting("a1"), has("a2")).csv("a", "a2", nil),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: a2 -> a3, currentCSV a3"},
		"a dependency gets a Subscription of its own": {newWorld(line("a/stable", "a1", "", needsB), line("b/beta", "b1", "")).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall b1 from global/cat b/beta required by a1\ngenerate b-beta-cat-global: b/beta at b1\na: nothing -> a1, currentCSV a1"},
		"a dependency that is installed already is left alone": {newWorld(line("a/stable", "a1", "", needsB), line("b/beta", "b1", ""), line("b/beta", "b2", "b1")).sub("a/stable").csv("b", "b1", nil),
			"Resolved\ninstall a1 from global/cat a/stable for a\na: nothing -> a1, currentCSV a1"},
		"the dependent's own catalog comes before a better one": {newWorld(line("a/stable", "a1", "", requires("K")), line("b/stable", "b1", "", provides("K"))).
			catalog("ns/better", 10, line("c/stable", "c1", "", provides("K"))).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall b1 from global/cat b/stable required by a1\ngenerate b-stable-cat-global: b/stable at b1\na: nothing -> a1, currentCSV a1"},
		"other catalogs come by priority": {newWorld(line("a/stable", "a1", "", requires("K"))).catalog("ns/x", 0, line("b/stable", "b1", "", provides("K"))).
			catalog("global/y", 5, line("c/stable", "c1", "", provides("K"))).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall c1 from global/y c/stable required by a1\ngenerate c-stable-y-global: c/stable at c1\na: nothing -> a1, currentCSV a1"},
		"equal priorities: the namespace's own catalog first": {newWorld(line("a/stable", "a1", "", requires("K"))).catalog("global/x", 0, line("b/stable", "b1", "", provides("K"))).
			catalog("ns/y", 0, line("c/stable", "c1", "", provides("K"))).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall c1 from ns/y c/stable required by a1\ngenerate c-stable-y-ns: c/stable at c1\na: nothing -> a1, currentCSV a1"},
		"a provider whose own requirement fails is passed over": {newWorld(line("a/stable", "a1", "", requires("K")), line("b/stable", "b1", "", provides("K"), requires("missing")), line("c/stable", "c1", "", provides("K"))).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall c1 from global/cat c/stable required by a1\ngenerate c-stable-cat-global: c/stable at c1\na: nothing -> a1, currentCSV a1"},
		"the head's requirement cannot be met: an older one, and the reason": {newWorld(line("a/stable", "a1", ""), line("a/stable", "a2", "a1", requires("K"))).sub("a/stable"),
			"Resolved\ninstall a1 from global/cat a/stable for a\na: nothing -> a1, currentCSV a1\nheld back a: RequirementUnmet an operator that provides K (g/v1)"},
		"two Subscriptions to one channel share one operator": {newWorld(chain()...).sub("a/stable").sub("a/stable", named("again")),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a,again\na: nothing -> a3, currentCSV a3\nagain: nothing -> a3, currentCSV a3"},
		"the older Subscription gets its best, the younger yields": {newWorld(line("a/stable", "a1", "", provides("K")), line("b/stable", "b1", ""), line("b/stable", "b2", "b1", provides("K"))).
			sub("b/stable", aged(2)).sub("a/stable", aged(1)),
			"Resolved\ninstall a1 from global/cat a/stable for a\ninstall b1 from global/cat b/stable for b\na: nothing -> a1, currentCSV a1\nb: nothing -> b1, currentCSV b1\nheld back b: BlockedBySubscription a"},
		"a mutual deadlock of versions is solved in one step": {newWorld(line("a/s", "a1", "", requiresPackage("b", "1.0.0")), line("a/s", "a2", "a1", requiresPackage("b", "2.0.0")),
			line("b/s", "b1", "", requiresPackage("a", "1.0.0")), line("b/s", "b2", "b1", requiresPackage("a", "2.0.0"))).
			sub("a/s", has("a1")).sub("b/s", has("b1")).csv("a", "a1", []olmcore.Property{requiresPackage("b", "1.0.0")}).csv("b", "b1", []olmcore.Property{requiresPackage("a", "1.0.0")}),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a required by b2\ninstall b2 from global/cat b/s replacing b1 for b required by a2\na: a1 -> a2, currentCSV a2\nb: b1 -> b2, currentCSV b2"},
		"an API moves from one operator to another": {newWorld(line("a/s", "a1", "", provides("K")), line("a/s", "a2", "a1", requires("K")), line("b/s", "b1", ""), line("b/s", "b2", "b1", provides("K"))).
			sub("a/s", has("a1")).sub("b/s", has("b1")).csv("a", "a1", []olmcore.Property{provides("K")}).csv("b", "b1", nil),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a\ninstall b2 from global/cat b/s replacing b1 for b required by a2\na: a1 -> a2, currentCSV a2\nb: b1 -> b2, currentCSV b2"},
		"an operator that requires what it provides needs nobody else": {newWorld(line("a/s", "a1", "", provides("K"), requires("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1"},
		"a deprecated head is not chosen": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", property(resolution.PropertyDeprecated, "{}"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nheld back a: CandidateDeprecated a2"},
		"a deprecated bundle in the middle does not break the channel": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", property(resolution.PropertyDeprecated, "{}")), line("a/s", "a3", "a2")).sub("a/s"),
			"Resolved\ninstall a3 from global/cat a/s replacing a2 for a\na: nothing -> a3, currentCSV a3"},
		"all parts of a constraint are met by one operator": {newWorld(line("a/s", "a1", "", property(resolution.PropertyConstraint, `{"all":{"constraints":[{"gvk":{"group":"g","kind":"K","version":"v1"}},{"not":{"constraints":[{"package":{"packageName":"b","versionRange":">=2.0.0"}}]}}]}}`)),
			line("b/s", "b1", "", provides("K")), line("b/s", "b2", "b1", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"a label": {newWorld(line("a/s", "a1", "", property(resolution.PropertyLabelRequired, `{"label":"l"}`)), line("b/s", "b1", "", property(resolution.PropertyLabel, `{"label":"l"}`))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"currentCSV is set but the operator does not exist: it is installed again": {newWorld(chain()...).sub("a/stable", has("a3")),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3\nInstalledCSVMissing a\nMissingCSV a"},
		"a skipRange never leads back": {newWorld(line("a/s", "a1", ""), entry{in: "a/s", name: "a2", version: "2.0.0", replaces: "a1", skipRange: ">1.0.0"}, entry{in: "a/s", name: "a3", version: "3.0.0", replaces: "a2"}).
			sub("a/s", has("a3")).csv("a", "a3", nil),
			"Unchanged\na: a3 -> a3"},
		"OLM follows it back": {newWorld(line("a/s", "a1", ""), entry{in: "a/s", name: "a2", version: "2.0.0", replaces: "a1", skipRange: ">1.0.0"}, entry{in: "a/s", name: "a3", version: "3.0.0", replaces: "a2"}).
			sub("a/s", has("a3")).csv("a", "a3", nil).policy(resolution.UpstreamPolicy()),
			"Resolved\ninstall a2 from global/cat a/s replacing a3 for a\na: a3 -> a2, currentCSV a2"},
		"nothing upgrades from what is installed": {newWorld(line("a/s", "a3", "a2")).sub("a/s", has("a1")).csv("a", "a1", nil),
			"Unchanged\na: a1 -> a1\nheld back a: NoUpgradeEdge "},
		"a Subscription moves to another package whose bundle replaces the operator": {newWorld(line("b/s", "b2", "a1")).sub("b/s", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall b2 from global/cat b/s replacing a1 for b\nb: a1 -> b2, currentCSV b2"},
	})
}

// TestResolveFailures has cases of OLM.
//
// OLM's cases: two that exclude each other: the reason names both; at most one of two that are asked for; two chains
// in the channel that is followed; no such catalog; no such package; no such channel; no such startingCSV; a missing
// dependency: three rules; two channels of a package; a missing catalog is named.
func TestResolveFailures(t *testing.T) {
	const exists = "subscription a exists"
	check(t, cases{
		"no such catalog": {newWorld(chain()...).sub("a/stable", from("global/other")),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: no operators found from catalog other in namespace global referenced by subscription a, " + exists},
		"no such package": {newWorld(chain()...).sub("b/stable"),
			"Unsatisfiable\nb: nothing -> nothing, failed\ncore [b]: constraints not satisfiable: no operators found in package b in the catalog referenced by subscription b, subscription b exists"},
		"no such channel": {newWorld(chain()...).sub("a/beta"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: no operators found in channel beta of package a in the catalog referenced by subscription a, " + exists},
		"no such startingCSV": {newWorld(chain()...).sub("a/stable", starting("a9")),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: no operators found with name a9 in channel stable of package a in the catalog referenced by subscription a, " + exists},
		"an operator that no Subscription refers to is in the way": {newWorld(line("a/s", "a1", "")).sub("a/s").csv("a", "a1", nil),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: @existing/ns//a1 and cat/global/s/a1 originate from package a, clusterserviceversion a1 exists and is not referenced by a subscription, " + exists + ", subscription a requires cat/global/s/a1"},
		"a missing dependency": {newWorld(line("a/s", "a1", "", requiresPackage("zz", ">1.0.0"))).sub("a/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle a1 requires an operator with package: zz and with version in range: >1.0.0, " + exists + ", subscription a requires cat/global/s/a1"},
		"two providers of one API": {newWorld(line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("K"))).sub("b/s").sub("c/s"),
			"Unsatisfiable\nb: nothing -> nothing, failed\nc: nothing -> nothing, failed\ncore [b c]: constraints not satisfiable: cat/global/s/b1 and cat/global/s/c1 provide K (g/v1), subscription b exists, subscription b requires cat/global/s/b1, subscription c exists, subscription c requires cat/global/s/c1"},
		"two channels of one package": {newWorld(line("a/s", "a1", ""), line("a/t", "a2", "")).sub("a/s").sub("a/t", named("b")),
			"Unsatisfiable\na: nothing -> nothing, failed\nb: nothing -> nothing, failed\ncore [a b]: constraints not satisfiable: cat/global/s/a1 and cat/global/t/a2 originate from package a, " + exists + ", subscription a requires cat/global/s/a1, subscription b exists, subscription b requires cat/global/t/a2"},
		"one that fails does not stop the other": {newWorld(chain()...).sub("a/stable").sub("b/stable"),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3\nb: nothing -> nothing, failed\ncore [b]: constraints not satisfiable: no operators found in package b in the catalog referenced by subscription b, subscription b exists"},
		"unless the policy is all or nothing": {newWorld(chain()...).sub("a/stable").sub("b/stable").policy(resolution.Policy{AllOrNothing: true}),
			"Unsatisfiable\na: nothing -> nothing\nb: nothing -> nothing, failed\ncore [b]: constraints not satisfiable: no operators found in package b in the catalog referenced by subscription b, subscription b exists"},
		"an installed operator that fails stays, and nothing may take its place": {newWorld(line("a/s", "a1", ""), line("b/s", "b1", "", provides("K"))).
			sub("a/s", has("a0")).csv("a", "a0", []olmcore.Property{requires("gone"), provides("K")}).sub("b/s"),
			"Unsatisfiable\na: a0 -> a0, failed\nb: nothing -> nothing, failed\n" +
				"core [a]: constraints not satisfiable: bundle a0 requires an operator providing an API with group: g, version: v1, kind: gone, subscription a exists, subscription a requires @existing/ns//a0\n" +
				"core [b]: constraints not satisfiable: @existing/ns//a0 and cat/global/s/b1 provide K (g/v1), clusterserviceversion a0 stays because subscription a cannot be resolved, subscription b exists, subscription b requires cat/global/s/b1"},
		"but what does not touch it goes on": {newWorld(line("a/s", "a1", ""), line("b/s", "b1", "")).
			sub("a/s", has("a0")).csv("a", "a0", []olmcore.Property{requires("gone"), provides("K")}).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a0 -> a0, failed\nb: nothing -> b1, currentCSV b1\n" +
				"core [a]: constraints not satisfiable: bundle a0 requires an operator providing an API with group: g, version: v1, kind: gone, subscription a exists, subscription a requires @existing/ns//a0"},
		"a catalog that vanished keeps what it installed": {newWorld().sub("a/stable", has("a1")).csv("a", "a1", nil),
			"Unchanged\na: a1 -> a1\nheld back a: CatalogMissing "},
		"OLM fails then": {newWorld().sub("a/stable", has("a1")).csv("a", "a1", nil).policy(resolution.UpstreamPolicy()),
			"Unsatisfiable\na: a1 -> a1, failed\ncore [a]: constraints not satisfiable: no operators found from catalog cat in namespace global referenced by subscription a, " + exists},
		"a catalog without content that nobody needs": {newWorld(chain()...).broken("global/broken", 0).sub("a/stable"),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3\nCatalogUnavailable broken"},
		"OLM stops for it": {newWorld(chain()...).broken("global/broken", 0).broken("global/also", 0).sub("a/stable").policy(resolution.UpstreamPolicy()),
			"Failed\na: nothing -> nothing\nfailure: [error using catalogsource global/also: registry does not answer, error using catalogsource global/broken: registry does not answer]\nCatalogUnavailable also\nCatalogUnavailable broken"},
		"a catalog without content that a Subscription follows stops that one": {newWorld(chain()...).broken("global/broken", 0).sub("a/stable").sub("b/stable", from("global/broken")),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3\nb: nothing -> nothing, failed\ncore [b]: error using catalogsource global/broken: registry does not answer\nCatalogUnavailable broken"},
		"a new dependency waits for a better catalog without content": {newWorld(line("a/s", "a1", "", requires("K"))).catalog("global/other", 0, line("b/s", "b1", "", provides("K"))).broken("global/broken", 0).sub("a/s"),
			"Failed\na: nothing -> nothing, failed\ncore [a]: error using catalogsource global/broken: registry does not answer\nCatalogUnavailable broken"},
		"but not for a worse one": {newWorld(line("a/s", "a1", "", requires("K"))).catalog("global/other", 0, line("b/s", "b1", "", provides("K"))).broken("global/broken", -1).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/other b/s required by a1\ngenerate b-s-other-global: b/s at b1\na: nothing -> a1, currentCSV a1\nCatalogUnavailable broken"},
		"a missing dependency may be in a catalog without content": {newWorld(line("a/s", "a1", "", requires("K"))).broken("global/broken", -1).sub("a/s"),
			"Failed\na: nothing -> nothing, failed\ncore [a]: error using catalogsource global/broken: registry does not answer\nCatalogUnavailable broken"},
		"an invalid bundle is passed over": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requiresPackage("b", "not a range"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nheld back a: CandidateInvalid a2"},
		"OLM stops for it with the parser's text": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requiresPackage("b", "not"))).sub("a/s").policy(resolution.UpstreamPolicy()),
			"Failed\na: nothing -> nothing\nfailure: Could not get version from string: \"not\""},
		"a channel without order": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", ""), line("b/s", "b1", "")).sub("a/s").sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: nothing -> nothing, failed\nb: nothing -> b1, currentCSV b1\n" +
				"core [a]: constraints not satisfiable: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel \"s\" of package \"a\": a1, a2, " + exists},
		"OLM stops for a channel without order that only might provide something": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("K")), line("c/s", "c2", "")).
			sub("a/s").policy(resolution.UpstreamPolicy()),
			"Failed\na: nothing -> nothing\nfailure: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel \"s\" of package \"c\": c1, c2"},
		"who fails by himself takes no rival along, whoever comes after": {newWorld(line("b/s", "b1", "", provides("K")), line("a/s", "a1", "", provides("K"), requires("X")), line("x/s", "x1", "", provides("X"), requires("NotThere")), line("z/s", "z1", "")).
			sub("b/s", aged(1)).sub("a/s", aged(2)).sub("z/s", aged(3)),
			"Resolved\ninstall b1 from global/cat b/s for b\ninstall z1 from global/cat z/s for z\na: nothing -> nothing, failed\nb: nothing -> b1, currentCSV b1\nz: nothing -> z1, currentCSV z1\n" +
				"core [a]: constraints not satisfiable: bundle a1 requires an operator providing an API with group: g, version: v1, kind: X, bundle x1 requires an operator providing an API with group: g, version: v1, kind: NotThere, subscription a exists, subscription a requires cat/global/s/a1"},
		"the step budget": {newWorld(chain()...).sub("a/stable").sub("b/stable", named("a2")).policy(resolution.Policy{MaxSteps: 3}).sub("a/stable", named("a3")).sub("a/stable", named("a4")),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a,a3,a4\na: nothing -> a3, currentCSV a3\na2: nothing -> nothing, failed\na3: nothing -> a3, currentCSV a3\na4: nothing -> a3, currentCSV a3\ncore [a2]: constraints not satisfiable: no operators found in package b in the catalog referenced by subscription a2, subscription a2 exists"},
	})
}
