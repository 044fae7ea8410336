// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"math"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func constraint(text string) olmcore.Property {
	return property(resolution.PropertyConstraint, "%s", text)
}

func servesAPI(kind string, required bool) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) {
		d := v1alpha1.APIServiceDescription{Group: "g", Version: "v1", Kind: kind}
		if required {
			c.Spec.APIServiceDefinitions.Required = append(c.Spec.APIServiceDefinitions.Required, d)
			return
		}
		c.Spec.APIServiceDefinitions.Owned = append(c.Spec.APIServiceDefinitions.Owned, d)
	}
}

// TestDependencies has cases of OLM.
//
// OLM's cases: asked for and forbidden; a dependency of a dependency; a new Subscription beside an installed
// operator; a bundle in two channels, one of them followed; an exact version, although there is a newer one; versions
// that need versions; a dependency by label; dependencies of dependencies stay in their catalog; all parts of one
// operator, with a range; any part; an unknown field of a constraint; a provider that lacks something: another
// catalog's copy; the Subscription's catalog, whatever others have; a dependency's dependency from the default
// channel; the own package cannot be the dependency; an upgrade that would drop a needed API; a deprecated bundle
// alone, and in the middle; a skipped startingCSV with a dependency; a dependency on what is skipped; an operator
// without Subscription needs the installed version; a second provider of an installed API; an update that needs a
// dependency; one absent, one new; an older provider, as the newest dropped the API; linked operators move together;
// a skipRange below the head; fail-forward, and another package has the API; the package of an operator without
// annotation; APIs of an operator without annotation; an API missing in the middle of a channel.
func TestDependencies(t *testing.T) {
	const gvkK = `{"gvk":{"group":"g","kind":"K","version":"v1"}}`
	deprecated := property(resolution.PropertyDeprecated, "{}")
	check(t, cases{
		"a new Subscription beside an installed operator: only the new one is installed": {newWorld(append(chain(), line("b/s", "b1", ""))...).sub("a/stable", has("a3")).csv("a", "a3", nil).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a3 -> a3\nb: nothing -> b1, currentCSV b1"},
		"of a bundle in two channels the one that is asked for": {newWorld(line("a/alpha", "a1", ""), line("a/beta", "a1", "")).sub("a/beta"),
			"Resolved\ninstall a1 from global/cat a/beta for a\na: nothing -> a1, currentCSV a1"},
		"the exact version that is needed, although there is a newer one": {newWorld(line("a/s", "a1", "", requiresPackage("b", "1.0.0")), line("b/s", "b1", ""), line("b/s", "b2", "b1")).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"versions that need versions": {newWorld(line("a/s", "a1", "", requiresPackage("b", "<3.0.0")), line("b/s", "b1", "", requiresPackage("c", "1.0.0")), line("b/s", "b2", "b1", requiresPackage("c", "2.0.0")), line("b/s", "b3", "b2"),
			line("c/s", "c1", ""), line("c/s", "c2", "c1"), line("c/s", "c3", "c2")).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b2 from global/cat b/s replacing b1 required by a1\ninstall c2 from global/cat c/s replacing c1 required by b2\ngenerate b-s-cat-global: b/s at b2\ngenerate c-s-cat-global: c/s at c2\na: nothing -> a1, currentCSV a1"},
		"a label that nobody has": {newWorld(line("a/s", "a1", "", property(resolution.PropertyLabelRequired, `{"label":"l"}`)), line("b/s", "b1", "", property(resolution.PropertyLabel, `{"label":"m"}`))).sub("a/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle a1 requires an operator with label: l, subscription a exists, subscription a requires cat/global/s/a1"},
		"dependencies of dependencies stay in their own catalog": {newWorld(line("a/s", "a1", "", requires("K"))).catalog("global/x", 5, line("b/s", "b1", "", provides("K"), requires("L")), line("c/s", "c1", "", provides("L"))).
			catalog("ns/y", 9, line("d/s", "d1", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/x b/s required by a1\ninstall c1 from global/x c/s required by b1\ngenerate b-s-x-global: b/s at b1\ngenerate c-s-x-global: c/s at c1\na: nothing -> a1, currentCSV a1"},
		"any part of a constraint will do": {newWorld(line("a/s", "a1", "", constraint(`{"any":{"constraints":[{"package":{"packageName":"gone","versionRange":">=1.0.0"}},`+gvkK+`]}}`)), line("b/s", "b1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"an API and a range of versions, of one operator": {newWorld(line("a/s", "a1", "", constraint(`{"all":{"constraints":[`+gvkK+`,{"package":{"packageName":"b","versionRange":"<2.0.0"}}]}}`)), line("b/s", "b1", "", provides("K")), line("b/s", "b2", "b1", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"OLM's text for an unknown field": {newWorld(line("a/s", "a1", "", constraint(`{"arbitrary":"x"}`))).sub("a/s").policy(resolution.UpstreamPolicy()),
			"Failed\na: nothing -> nothing\nfailure: parse olm.constraint: json: unknown field \"arbitrary\""},
		"a provider that lacks something is passed over for another catalog's copy": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"), requires("gone"))).catalog("ns/x", 0, line("b/s", "b1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from ns/x b/s required by a1\ngenerate b-s-x-ns: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"the Subscription's own catalog, whatever others have": {newWorld(chain()...).catalog("ns/cat", 9, line("a/stable", "a4", "")).sub("a/stable"),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3"},
		"a transitive dependency comes from the default channel": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"), requires("L")), line("c/stable", "c1", "", provides("L")), line("c/alpha", "c2", "", provides("L"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ninstall c1 from global/cat c/stable required by b1\ngenerate b-s-cat-global: b/s at b1\ngenerate c-stable-cat-global: c/stable at c1\na: nothing -> a1, currentCSV a1"},
		"no bundle of the own package can be the dependency": {newWorld(line("a/s", "a2", "", requires("K")), line("a/t", "a1", "", provides("K"))).catalog("ns/x", 0, line("b/s", "b1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a2 from global/cat a/s for a\ninstall b1 from ns/x b/s required by a2\ngenerate b-s-x-ns: b/s at b1\na: nothing -> a2, currentCSV a2"},
		"an upgrade that drops an API which somebody needs is held back": {newWorld(line("a/s", "a1", "", provides("K")), line("a/s", "a2", "a1"), line("b/s", "b1", "", requires("K"))).
			sub("a/s", has("a1")).csv("a", "a1", []olmcore.Property{provides("K")}).sub("b/s", has("b1")).csv("b", "b1", []olmcore.Property{requires("K")}),
			"Unchanged\na: a1 -> a1\nb: b1 -> b1\nheld back a: BlockedBySubscription b"},
		"the newest that still provides the API": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K")), line("b/s", "b2", "b1", provides("K")), line("b/s", "b3", "b2")).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b2 from global/cat b/s replacing b1 required by a1\ngenerate b-s-cat-global: b/s at b2\na: nothing -> a1, currentCSV a1"},
		"nothing but deprecated bundles": {newWorld(line("a/s", "a1", "", deprecated)).sub("a/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle cat/global/s/a1 is deprecated, subscription a exists, subscription a requires cat/global/s/a1"},
		"startingCSV of a skipped bundle, and the best provider of a channel with skips": {newWorld(line("a/s", "a1", "", requires("K")), entry{in: "a/s", name: "a2", version: "2.0.0", replaces: "a1", skips: []string{"a1"}, facts: []olmcore.Property{requires("K")}},
			line("b/s", "b1", "", provides("K")), line("b/s", "b2", "b1", provides("K")), entry{in: "b/s", name: "b3", version: "3.0.0", replaces: "b2", skips: []string{"b1", "b2"}, facts: []olmcore.Property{provides("K")}}).sub("a/s", starting("a1")),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b3 from global/cat b/s replacing b2 required by a1\ngenerate b-s-cat-global: b/s at b3\na: nothing -> a1, currentCSV a1"},
		"a dependency on what is skipped": {newWorld(line("a/s", "a1", "", requiresPackage("b", "1.0.0")), line("b/s", "b1", ""), entry{in: "b/s", name: "b2", version: "2.0.0", replaces: "b1", skips: []string{"b1"}}).sub("a/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle a1 requires an operator with package: b and with version in range: 1.0.0, subscription a exists, subscription a requires cat/global/s/a1"},
		"an operator without Subscription that needs the installed version holds the upgrade": {newWorld(chain()...).sub("a/stable", has("a1")).csv("a", "a1", nil).csv("x", "x1", []olmcore.Property{requiresPackage("a", "1.0.0")}),
			"Unchanged\na: a1 -> a1\nheld back a: RequirementUnmet x1"},
		"an upgrade brings a new dependency along": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requires("K")), line("b/s", "b1", "", provides("K"))).sub("a/s", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a\ninstall b1 from global/cat b/s required by a2\ngenerate b-s-cat-global: b/s at b1\na: a1 -> a2, currentCSV a2"},
		"two linked operators are upgraded together": {newWorld(line("a/s", "a1", "", provides("K")), line("a/s", "a2", "a1", provides("K")), line("b/s", "b1", "", requires("K")), line("b/s", "b2", "b1", requires("K"))).
			sub("a/s", has("a1")).csv("a", "a1", []olmcore.Property{provides("K")}).sub("b/s", has("b1")).csv("b", "b1", []olmcore.Property{requires("K")}),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a required by b2\ninstall b2 from global/cat b/s replacing b1 for b\na: a1 -> a2, currentCSV a2\nb: b1 -> b2, currentCSV b2"},
		"a skipRange that is not at the head: the highest that has it": {newWorld(line("a/s", "a1", ""), entry{in: "a/s", name: "a2", version: "2.0.0", replaces: "a1", skipRange: "<2.0.0"}, entry{in: "a/s", name: "a3", version: "3.0.0", replaces: "a2", skipRange: "<3.0.0"}, line("a/s", "a4", "a3")).
			sub("a/s", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a3 from global/cat a/s replacing a1 for a\na: a1 -> a3, currentCSV a3"},
		"a skipRange of what the channel says is newer, whatever its version": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1"), entry{in: "a/s", name: "a3", version: "0.9.0", replaces: "a2", skipRange: ">=0.5.0"}).
			sub("a/s", has("a1")).csv("a", "a1", nil),
			"Resolved\ninstall a3 from global/cat a/s replacing a1 for a\na: a1 -> a3, currentCSV a3"},
		"a new operator must not provide what an installed one does": {newWorld(append(chain(), line("b/s", "b1", "", provides("K")))...).sub("a/stable", has("a3")).csv("a", "a3", []olmcore.Property{provides("K")}).sub("b/s"),
			"Unsatisfiable\na: a3 -> a3, failed\nb: nothing -> nothing, failed\ncore [a b]: constraints not satisfiable: @existing/ns//a3 and cat/global/s/b1 provide K (g/v1), subscription a exists, subscription a requires @existing/ns//a3, subscription b exists, subscription b requires cat/global/s/b1"},
		"an installed operator is absent, and there is a new Subscription": {newWorld(append(chain(), line("b/s", "b1", ""))...).sub("a/stable", has("a3")).sub("b/s"),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\ninstall b1 from global/cat b/s for b\na: nothing -> a3\nb: nothing -> b1, currentCSV b1\nInstalledCSVMissing a\nMissingCSV a"},
		"rolling forward does not let a new one provide what a stranger does": {newWorld(line("a/s", "a2", "a1", provides("K")), line("a/s", "a3", "a2", provides("K"))).failForward().sub("a/s", has("a2")).
			csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).csv("a", "a2", []olmcore.Property{provides("K")}, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)).csv("x", "x1", []olmcore.Property{provides("K")}),
			"Unsatisfiable\na: a2 -> a2, failed\ncore [a]: constraints not satisfiable: @existing/ns//a2, @existing/ns//x1 and cat/global/s/a3 provide K (g/v1), clusterserviceversion x1 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/s/a3 or @existing/ns//a2"},
		"without annotation the owned APIServices count": {newWorld(line("a/s", "a1", "", requires("K"))).sub("a/s").csv("", "b1", nil, bare, servesAPI("K", false)),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1"},
		"without annotation a required APIService pulls in a provider": {newWorld(line("a/s", "a1", "", provides("K"))).csv("", "b1", nil, bare, servesAPI("K", true)),
			"Resolved\ninstall a1 from global/cat a/s required by b1\ngenerate a-s-cat-global: a/s at a1"},
		"without annotation and with Subscriptions to two packages it has none": {newWorld(append(chain(), line("b/s", "b2", "a1"))...).sub("a/stable", has("a1")).sub("b/s", has("a1")).csv("", "a1", nil, bare),
			"Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\ninstall b2 from global/cat b/s replacing a1 for b\na: a1 -> a2, currentCSV a2\nb: a1 -> b2, currentCSV b2"},
		"operators that need each other": {newWorld(line("a/s", "a1", "", provides("K"), requires("L")), line("b/s", "b1", "", provides("L"), requires("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a required by b1\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"a requirement on the own package is met by itself": {newWorld(line("a/s", "a1", "", requiresPackage("a", ">=1.0.0"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1"},
		"a requirement without value": {newWorld(line("a/s", "a1", "", property(resolution.PropertyGVKRequired, "null"))).sub("a/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle cat/global/s/a1 is invalid: its value is not a JSON object, subscription a exists, subscription a requires cat/global/s/a1"},
		"a provided API without value, and everything twice": {newWorld(line("a/s", "a1", "", property(resolution.PropertyGVK, "null"), provides("L"), provides("L"), requires("K"), requires("K")), line("b/s", "b1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"slashes and empty names": {newWorld(line("a/x/y", "a/1", ""), line("b/", "b1", "")).sub("a/x/y", named("a")).sub("b"),
			"Resolved\ninstall a/1 from global/cat a/x/y for a\ninstall b1 from global/cat b/ for b\na: nothing -> a/1, currentCSV a/1\nb: nothing -> b1, currentCSV b1"},
		"names in other alphabets": {newWorld(line("ä/ключ", "名前", "")).sub("ä/ключ"),
			"Resolved\ninstall 名前 from global/cat ä/ключ for ä\nä: nothing -> 名前, currentCSV 名前"},
		"an unknown strategy is the default one": {newWorld(chain()...).group(func(g *operatorsv1.OperatorGroup) { g.Spec.UpgradeStrategy = "Sideways" }).sub("a/stable", has("a2")).
			csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)),
			"Unsatisfiable\na: a2 -> a2, failed\ncore [a]: constraints not satisfiable: @existing/ns//a1, @existing/ns//a2 and cat/global/stable/a3 originate from package a, clusterserviceversion a1 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/stable/a3 or @existing/ns//a2"},
		"the ends of priority": {newWorld(line("a/s", "a1", "", requires("K"))).catalog("ns/x", math.MinInt, line("b/s", "b1", "", provides("K"))).catalog("global/y", math.MaxInt, line("c/s", "c1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall c1 from global/y c/s required by a1\ngenerate c-s-y-global: c/s at c1\na: nothing -> a1, currentCSV a1"},
		"a catalog of a third namespace is not seen": {newWorld(chain()...).catalog("other/cat", 0, line("b/s", "b1", "")).sub("b/s", from("other/cat")),
			"Unsatisfiable\nb: nothing -> nothing, failed\ncore [b]: constraints not satisfiable: no operators found from catalog cat in namespace other referenced by subscription b, subscription b exists"},
		"a version with build metadata is compared without": {newWorld(line("a/s", "a1", "", requiresPackage("b", "1.0.0")), entry{in: "b/s", name: "b1", version: "1.0.0+build.7"}).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"an unreadable version is in no range, but can be replaced": {newWorld(line("a/s", "a1", "", requiresPackage("b", ">=0.0.0")), entry{in: "b/s", name: "b1", version: "one"}, line("b/s", "b2", "b1")).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b2 from global/cat b/s replacing b1 required by a1\ngenerate b-s-cat-global: b/s at b2\na: nothing -> a1, currentCSV a1"},
	})
}

// What goes wrong in OLM, by its users' reports.
func TestNamespacesThatOLMCannotResolve(t *testing.T) {
	check(t, cases{
		"an upgrade is in progress, and somebody new depends on the package": {newWorld(append(chain(), line("b/s", "b1", "", requiresPackage("a", ">=1.0.0")))...).sub("a/stable", has("a2")).
			csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseInstalling)).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a2 -> a2\nb: nothing -> b1, currentCSV b1\nheld back a: ReplacementInProgress a1"},
		"two operators without Subscription could both provide": {newWorld(line("a/s", "a1", "", requiresPackage("b", ">=1.0.0"))).sub("a/s").csv("b", "b1", nil, deleting).csv("b", "b2", nil),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1"},
		"another package whose channel has no order might have provided too": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K")), line("c/s", "c1", "", provides("K")), line("c/s", "c2", "")).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"},
		"an old bundle that nobody would get cannot be read": {newWorld(line("a/s", "a1", "", requiresPackage("b", "not")), line("a/s", "a2", "a1")).sub("a/s"),
			"Resolved\ninstall a2 from global/cat a/s replacing a1 for a\na: nothing -> a2, currentCSV a2"},
		"equal names in two packages, of which one is followed": {newWorld(line("a/s", "x1", ""), line("b/s", "x1", "")).sub("a/s"),
			"Resolved\ninstall x1 from global/cat a/s for a\na: nothing -> x1, currentCSV x1"},
		"equal names in two packages, of which both are followed": {newWorld(line("a/s", "x1", ""), line("b/s", "x1", "")).sub("a/s").sub("b/s"),
			"Unsatisfiable\na: nothing -> nothing, failed\nb: nothing -> nothing, failed\ncore [a b]: constraints not satisfiable: bundles of packages a and b have the name x1, subscription a exists, subscription a requires cat/global/s/x1, subscription b exists, subscription b requires cat/global/s/x1"},
		"equal names in two packages, and the younger Subscription has another bundle": {newWorld(line("a/s", "x1", ""), line("b/t", "b1", ""), line("b/t", "x1", "b1")).sub("a/s").sub("b/t"),
			"Resolved\ninstall b1 from global/cat b/t for b\ninstall x1 from global/cat a/s for a\na: nothing -> x1, currentCSV x1\nb: nothing -> b1, currentCSV b1\nheld back b: BlockedBySubscription a"},
		"a dependency of the dependent's name": {newWorld(line("a/s", "x1", "", requires("K")), line("b/s", "x1", "", provides("K")), line("c/s", "c1", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall c1 from global/cat c/s required by x1\ninstall x1 from global/cat a/s for a\ngenerate c-s-cat-global: c/s at c1\na: nothing -> x1, currentCSV x1"},
		"a dependency of the dependent's name, and no other one": {newWorld(line("a/s", "a1", ""), line("a/s", "x2", "a1", requires("K")), line("b/s", "x2", "", provides("K"))).sub("a/s"),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nheld back a: NameConflict x2"},
		"equal names in two packages of two catalogs": {newWorld(line("a/s", "x1", "")).catalog("ns/other", 0, line("b/s", "x1", "")).sub("a/s").sub("b/s", from("ns/other")),
			"Unsatisfiable\na: nothing -> nothing, failed\nb: nothing -> nothing, failed\ncore [a b]: constraints not satisfiable: bundles of packages a and b have the name x1, subscription a exists, subscription a requires cat/global/s/x1, subscription b exists, subscription b requires other/ns/s/x1"},
		"an operator without annotation and Subscription is of no package": {newWorld(line("a/s", "a2", "")).sub("a/s").csv("", "a1", nil, bare),
			"Resolved\ninstall a2 from global/cat a/s for a\na: nothing -> a2, currentCSV a2"},
		"the copy of the default channel, whichever comes first": {newWorld(line("a/stable", "a1", ""), line("a/stable", "a2", "a1"), entry{in: "a/alpha", name: "a2", version: "2.0.0", replaces: "a0"}).sub("a"),
			"Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: nothing -> a2, currentCSV a2"},
		"an operator that is copied here from elsewhere is not the Subscription's": {newWorld(chain()...).sub("a/stable", has("a3")).csv("a", "a3", nil, func(c *v1alpha1.ClusterServiceVersion) {
			c.Labels = map[string]string{"olm.copiedFrom": "elsewhere"}
		}),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3\nInstalledCSVMissing a\nMissingCSV a"},
		"a deleted operator comes back": {newWorld(chain()...).sub("a/stable", has("a2")).sub("a/stable", named("b"), has("a2")),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a,b\na: nothing -> a3, currentCSV a3\nb: nothing -> a3, currentCSV a3\nInstalledCSVMissing a\nInstalledCSVMissing b"},
	})
}
