// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func (w *world) group(change func(*operatorsv1.OperatorGroup)) *world {
	g := w.in.OperatorGroups[0].DeepCopy()
	change(g)
	w.in.OperatorGroups = []*operatorsv1.OperatorGroup{g}
	return w
}

func (w *world) failForward() *world {
	return w.group(func(g *operatorsv1.OperatorGroup) {
		g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	})
}

func owns(kinds ...string) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) {
		for _, k := range kinds {
			c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: strings.ToLower(k) + "s.g", Version: "v1", Kind: k})
		}
	}
}

func needsCRD(kind string) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Required = append(c.Spec.CustomResourceDefinitions.Required, v1alpha1.CRDDescription{Name: strings.ToLower(kind) + "s.g", Version: "v1", Kind: kind})
	}
}

// TestUpgradesInProgress has cases of OLM.
//
// OLM's cases: a failed upgrade without fail-forward: two; fail-forward over one failure; fail-forward over two;
// fail-forward and a broken chain; which chains end in failure; several failed versions are left behind.
func TestUpgradesInProgress(t *testing.T) {
	four := func() []entry { return append(chain(), line("a/stable", "a4", "a3"), line("b/s", "b1", "")) }
	check(t, cases{
		"the old one is on its way out: the Subscription waits, others do not": {newWorld(four()...).sub("a/stable", has("a2")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseInstalling)).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a2 -> a2\nb: nothing -> b1, currentCSV b1\nheld back a: ReplacementInProgress a1"},
		"the new one was just created": {newWorld(four()...).sub("a/stable", has("a2")).csv("a", "a1", nil).csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhasePending)),
			"Unchanged\na: a2 -> a2\nheld back a: ReplacementInProgress a1"},
		"OLM finds a contradiction then": {newWorld(four()...).sub("a/stable", has("a2")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseInstalling)).policy(resolution.UpstreamPolicy()),
			"Unsatisfiable\na: a2 -> a2, failed\ncore [a]: constraints not satisfiable: @existing/ns//a1, @existing/ns//a2 and cat/global/stable/a3 originate from package a, clusterserviceversion a1 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/stable/a3 or @existing/ns//a2"},
		"the new one failed: no way on without fail-forward, but others go on": {newWorld(four()...).sub("a/stable", has("a2")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)).sub("b/s"),
			"Resolved\ninstall b1 from global/cat b/s for b\na: a2 -> a2, failed\nb: nothing -> b1, currentCSV b1\ncore [a]: constraints not satisfiable: @existing/ns//a1, @existing/ns//a2 and cat/global/stable/a3 originate from package a, clusterserviceversion a1 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/stable/a3 or @existing/ns//a2"},
		"with fail-forward the next one is chosen": {newWorld(four()...).failForward().sub("a/stable", has("a2")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: a2 -> a3, currentCSV a3"},
		"with fail-forward over two failures": {newWorld(four()...).failForward().sub("a/stable", has("a3")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseReplacing)).csv("a", "a3", nil, replacing("a2"), phase(v1alpha1.CSVPhaseFailed)),
			"Resolved\ninstall a4 from global/cat a/stable replacing a3 for a\na: a3 -> a4, currentCSV a4"},
		"with fail-forward a Subscription whose version is on its way out counts as new": {newWorld(four()...).failForward().sub("a/stable", has("a1")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: @existing/ns//a2, cat/global/stable/a1, cat/global/stable/a2, cat/global/stable/a3 and cat/global/stable/a4 originate from package a, clusterserviceversion a2 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/global/stable/a4, cat/global/stable/a3, cat/global/stable/a2 or cat/global/stable/a1"},
		"OLM's text for a broken chain": {newWorld(four()...).failForward().sub("a/stable", has("a2")).csv("a", "a1", nil, phase(v1alpha1.CSVPhaseSucceeded)).
			csv("a", "a2", nil, replacing("a1"), phase(v1alpha1.CSVPhaseFailed)).policy(resolution.UpstreamPolicy()),
			"Failed\na: a2 -> a2\nfailure: error using catalogsource ns/@existing: csv ns/a1 in phase Succeeded instead of Replacing\nBrokenReplacementChain a1"},
		"a circle of replacements": {newWorld(four()...).failForward().sub("b/s").csv("x", "x1", nil, replacing("x2"), phase(v1alpha1.CSVPhaseReplacing)).csv("y", "x2", nil, replacing("x1"), phase(v1alpha1.CSVPhaseReplacing)),
			"Resolved\ninstall b1 from global/cat b/s for b\nb: nothing -> b1, currentCSV b1\nBrokenReplacementChain x1\nBrokenReplacementChain x2"},
	})
}

// TestExistingOperators has cases of OLM.
//
// OLM's cases: an operator without Subscription has the API; the package of an operator without annotation; APIs of
// an operator without annotation; the annotation with properties is read; an operator without annotation is not
// installed twice.
func TestExistingOperators(t *testing.T) {
	copied := func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied }
	check(t, cases{
		"copies do not count": {newWorld(chain()...).sub("a/stable", has("a1")).csv("a", "a1", nil, copied),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3\nInstalledCSVMissing a"},
		"what is being deleted is waited for": {newWorld(chain()...).sub("a/stable", has("a3")).csv("a", "a3", nil, deleting),
			"Resolved\ninstall a3 from global/cat a/stable replacing a2 for a after a3\na: nothing -> a3\nInstalledCSVMissing a"},
		"what is being deleted provides nothing": {newWorld(line("a/s", "a1", "", requires("K"))).sub("a/s").csv("b", "b1", []olmcore.Property{provides("K")}, deleting),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: bundle a1 requires an operator providing an API with group: g, version: v1, kind: K, subscription a exists, subscription a requires cat/global/s/a1"},
		"without annotation the owned CRDs count": {newWorld(line("a/s", "a1", "", requires("K"))).sub("a/s").csv("", "b1", nil, bare, owns("K")),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1"},
		"without annotation an API still clashes": {newWorld(line("a/s", "a1", "", provides("K"))).sub("a/s").csv("", "b1", nil, bare, owns("K")),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: @existing/ns//b1 and cat/global/s/a1 provide K (g/v1), clusterserviceversion b1 exists and is not referenced by a subscription, subscription a exists, subscription a requires cat/global/s/a1"},
		"without annotation the Subscription says which package it is": {newWorld(chain()...).sub("a/stable", has("a3")).csv("", "a3", nil, bare).sub("a/stable", named("b")),
			"Unsatisfiable\na: a3 -> a3, failed\nb: nothing -> nothing, failed\ncore [a b]: constraints not satisfiable: @existing/ns//a3, cat/global/stable/a1, cat/global/stable/a2 and cat/global/stable/a3 originate from package a, subscription a exists, subscription a requires @existing/ns//a3, subscription b exists, subscription b requires at least one of cat/global/stable/a3, cat/global/stable/a2 or cat/global/stable/a1"},
		"a second Subscription to an installed package is satisfied by an upgrade of both": {newWorld(chain()...).sub("a/stable", has("a1")).csv("", "a1", nil, bare).sub("a/stable", named("b")),
			"Resolved\ninstall a2 from global/cat a/stable replacing a1 for a,b\na: a1 -> a2, currentCSV a2\nb: nothing -> a2, currentCSV a2\nheld back b: BlockedBySubscription a"},
		"without annotation a required CRD pulls in a provider": {newWorld(line("a/s", "a1", "", provides("K"))).csv("", "b1", nil, bare, needsCRD("K")),
			"Resolved\ninstall a1 from global/cat a/s required by b1\ngenerate a-s-cat-global: a/s at a1"},
		"a name that is taken": {newWorld(line("a/s", "a1", "")).sub("a/s").csv("", "a1", nil, bare),
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: cat/global/s/a1 conflicts with @existing/ns//a1, clusterserviceversion a1 exists and is not referenced by a subscription, subscription a exists, subscription a requires cat/global/s/a1"},
		"an unreadable annotation": {newWorld(line("a/s", "a1", "")).sub("a/s").csv("b", "b1", nil, func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations["operatorframework.io/properties"] = "{"
		}),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nUnreadableCSV b1"},
		"a CRD name without a group": {newWorld(line("a/s", "a1", "")).sub("a/s").csv("b", "b1", nil, bare, func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things", Kind: "Thing", Version: "v1"}}
		}),
			"Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nUnreadableCSV b1"},
		"adopting an operator that equals an entry of the channel": {newWorld(chain()...).sub("a/stable").csv("a", "a2", nil).policy(resolution.Policy{AdoptSameBundle: true}),
			"Resolved\na: nothing -> a2, currentCSV a2, adopted\nheld back a: PackageConflict a"},
		"adopting what the Subscription names already": {newWorld(chain()...).sub("a/stable", func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a2" }).csv("a", "a2", nil).policy(resolution.Policy{AdoptSameBundle: true}),
			"Unchanged\na: nothing -> a2, adopted\nheld back a: PackageConflict a"},
	})
}

// TestExistingCSVIsAdoptedOnlyAsTheSameBundle has a case of OLM.
//
// OLM's case: an operator that is there is taken over.
func TestExistingCSVIsAdoptedOnlyAsTheSameBundle(t *testing.T) {
	w := newWorld(append(chain(), line("b/s", "b1", ""), line("c/s", "c1", ""), line("d/s", "d1", ""))...).policy(resolution.Policy{AdoptSameBundle: true}).
		sub("a/stable").csv("a", "a2", nil, func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Version.Patch = 7 }). // another version
		sub("b/s").csv("", "b1", nil, bare).                                                                       // no annotation
		sub("c/s").csv("x", "c1", nil).                                                                            // another package
		sub("d/s").sub("d/s", named("e"), has("d1")).csv("d", "d1", nil)                                           // owned
	for _, target := range resolution.Resolve(w.in).Targets {
		require.False(t, target.Adopt, target.Subscription)
		require.Equal(t, target.Current, target.Target)
	}
}

func TestUnfinishedPlansKeepTheirVersions(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable", func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a2" })
	require.Equal(t, "Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3", describe(resolution.Resolve(w.in)))
	w.in.InFlight = map[string]string{"a": "a2"}
	require.Equal(t, "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: nothing -> a2\nMissingCSV a", describe(resolution.Resolve(w.in)))
	w.in.InFlight = map[string]string{"a": "gone"}
	require.Equal(t, "a3", resolution.Resolve(w.in).Operators[0].Name)
}

func TestOperatorGroups(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	w.in.OperatorGroups = nil
	require.Equal(t, "Blocked\na: nothing -> nothing\nfailure: found 0 operatorGroups, expected 1", describe(resolution.Resolve(w.in)))
	w.in.OperatorGroups = []*operatorsv1.OperatorGroup{nil, oneGroup("ns")[0], oneGroup("ns")[0], oneGroup("other")[0]}
	require.Equal(t, "Blocked\na: nothing -> nothing\nfailure: found 2 operatorGroups, expected 1", describe(resolution.Resolve(w.in)))
	require.Equal(t, resolution.Blocked, resolution.Resolve(resolution.Input{}).Outcome)

	const key = "olm.operatorframework.io/exclude-global-namespace-resolution"
	for value, want := range map[string]resolution.Outcome{"true": resolution.Unsatisfiable, "false": resolution.Resolved, "True": resolution.Resolved} {
		w := newWorld(chain()...).sub("a/stable").group(func(g *operatorsv1.OperatorGroup) { g.Annotations = map[string]string{key: value} })
		res := resolution.Resolve(w.in)
		require.Equal(t, want, res.Outcome, value)
		if value == "True" {
			require.Equal(t, resolution.ReasonUnknownExclusion, res.Diagnostics[0].Reason)
		}
	}
}

func TestUnsupportedInstallModesAreReported(t *testing.T) {
	summary := property(resolution.PropertyCSVMetadata, `{"installModes":[{"type":"OwnNamespace","supported":true},{"type":"AllNamespaces","supported":false}]}`)
	w := newWorld(line("a/s", "a1", "", summary)).sub("a/s").group(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{""} })
	res := resolution.Resolve(w.in)
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nInstallModeUnsupported a1", describe(res))
	require.Len(t, res.Operators[0].Bundle.Properties, 1, "what user interfaces read is not installed")
	for mode, targets := range map[string][]string{"": nil, "OwnNamespace": {"ns"}, "SingleNamespace": {"other"}, "MultiNamespace": {"ns", "other"}, "AllNamespaces": {""}} {
		w.group(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = targets })
		said := ""
		for _, d := range resolution.Resolve(w.in).Diagnostics {
			said += d.Message
		}
		if mode == "" || mode == "OwnNamespace" {
			require.Empty(t, said, "%v is not known yet, or supported", targets)
		} else {
			require.Contains(t, said, "does not support install mode "+mode+",")
		}
	}
}

// evaluator knows rules such as "has K".
type evaluator struct{}

func (evaluator) Compile(rule string) (resolution.CELProgram, error) {
	if kind, ok := strings.CutPrefix(rule, "has "); ok {
		return hasKind(kind), nil
	}
	if rule == "panic" {
		panic("no")
	}
	return nil, errors.New("cel expressions must have type Bool")
}

type hasKind string

func (k hasKind) Satisfied(properties []olmcore.Property) bool {
	for _, p := range properties {
		if p.Type == resolution.PropertyGVK && strings.Contains(string(p.Value), `"kind":"`+string(k)+`"`) {
			return true
		}
	}
	return false
}

// TestCEL has a case of OLM.
//
// OLM's case: CEL: an API, an API that no bundle has, a version.
func TestCEL(t *testing.T) {
	rule := func(text string) olmcore.Property {
		return property(resolution.PropertyConstraint, `{"failureMessage":"need it","cel":{"rule":%q}}`, text)
	}
	with := func(text string, evaluate bool, existing ...func(*v1alpha1.ClusterServiceVersion)) string {
		w := newWorld(line("a/s", "a1", "", rule(text)), line("b/s", "b1", "", provides("K")))
		w.sub("a/s")
		if len(existing) > 0 {
			w.csv("", "c1", nil, existing...)
		}
		if evaluate {
			w.in.CEL = evaluator{}
		}
		return describe(resolution.Resolve(w.in))
	}
	const ok = "Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s required by a1\ngenerate b-s-cat-global: b/s at b1\na: nothing -> a1, currentCSV a1"
	require.Equal(t, ok, with("has K", true))
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1", with("has K", true, bare, owns("K")), "an installed operator without annotation is evaluated too")
	require.Contains(t, with("has L", true), `bundle a1 requires an operator with constraint: "has L" and message: "need it", subscription a exists`)
	require.Contains(t, with("has K", false), "bundle cat/global/s/a1 is invalid: it has a CEL constraint, and there is nothing to evaluate it with")
	require.Contains(t, with("other", true), "convert olm.constraint to resolver predicate: cel expressions must have type Bool")
	require.Contains(t, with("panic", true), "compiler panicked")
}

type refuse map[string]string

func (r refuse) Exclude(op olmcore.Operator) string {
	if r[op.Name] == "panic" {
		panic("no")
	}
	return r[op.Name]
}

// TestExcludedBundlesAreNotChosen has a case of OLM.
//
// OLM's case: a list of allowed bundles: all, some, none, and what is installed.
func TestExcludedBundlesAreNotChosen(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	w.in.Exclude = refuse{"a3": "a3 needs a newer platform", "a2": "panic"}
	res := resolution.Resolve(w.in)
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/stable for a\na: nothing -> a1, currentCSV a1\nheld back a: CandidateExcluded a3", describe(res))
	require.Equal(t, "Subscription a does not get a3: a3 is excluded (a3 needs a newer platform).", res.HeldBack[0].Summary)
	w.in.Exclude = refuse{"a3": "a3 no", "a2": "a2 no", "a1": "a1 no"}
	require.Equal(t, "constraints not satisfiable: a1 no, a2 no, a3 no, subscription a exists, subscription a requires at least one of cat/global/stable/a3, cat/global/stable/a2 or cat/global/stable/a1",
		resolution.Resolve(w.in).Failure.Message)
}

func TestGeneratedNames(t *testing.T) {
	long := strings.Repeat("x", 250)
	for name, c := range map[string]struct{ in, want string }{
		"as OLM names it":        {"b/stable", "b-stable-cat-global"},
		"an upper-case channel":  {"b/Stable_1", "b-stable-1-cat-global-"},
		"much too long":          {"b/" + long, "b-" + strings.Repeat("x", 242) + "-"},
		"nothing valid in it":    {"b/__", "b----cat-global-"},
		"dots that cannot stand": {"b/-.x", "b.x-cat-global-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(line("a/s", "a1", "", requiresPackage("b", ">=1.0.0")), line(c.in, "b1", "")).sub("a/s")
			res := resolution.Resolve(w.in)
			require.Len(t, res.Generated, 1)
			got := res.Generated[0].Name
			require.True(t, got == c.want || strings.HasPrefix(got, c.want) && len(got) == len(c.want)+8, got)
			require.LessOrEqual(t, len(got), 253)
			require.Equal(t, "a1", res.Generated[0].Annotations[resolution.AnnotationRequiredBy])
		})
	}
	w := newWorld(line("a/s", "a1", "", requiresPackage("b", ">=1.0.0")), line("b/s", "b1", ""), line("c/s", "c1", "")).sub("a/s").sub("c/s", named("b-s-cat-global"))
	res := resolution.Resolve(w.in)
	require.NotEqual(t, "b-s-cat-global", res.Generated[0].Name)
	require.Equal(t, resolution.ReasonNameCollision, res.Diagnostics[0].Reason)

	// Three channels whose names, joined, are the same text.
	w = newWorld(line("a/s", "a1", "", requires("A"), requires("B"), requires("C")),
		line("x-y-z/t", "b1", "", provides("A")), line("x-y/z-t", "b2", "", provides("B")), line("x/y-z-t", "b3", "", provides("C"))).sub("a/s")
	var names []string
	for _, s := range resolution.Resolve(w.in).Generated {
		names = append(names, s.Name)
	}
	require.Len(t, names, 3)
	require.Equal(t, "x-y-z-t-cat-global", names[0])
	require.NotEqual(t, names[1], names[2])

	w = newWorld().catalog("_/_", 0, line("a/s", "a1", "", requiresPackage("_", ">=1.0.0")), line("_/_", "b1", "")).
		sub("a/s", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource, s.Spec.CatalogSourceNamespace = "_", "_" })
	w.in.GlobalCatalogNamespace = "_"
	require.Regexp(t, "^[0-9a-f]{8}$", resolution.Resolve(w.in).Generated[0].Name, "the hash alone, where nothing of the names is left")
}

func TestBetterOfTwoCatalogsWithOneNameIsUsed(t *testing.T) {
	content := func(name string) *resolution.Catalog {
		return newWorld(line("a/s", name, "")).in.Catalogs[0].Content
	}
	one, two := content("a1"), content("a2")
	if one.Digest() > two.Digest() {
		one, two = two, one
	}
	better := resolution.CatalogState{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Content: one}
	for name, worse := range map[string]resolution.CatalogState{
		"one without content":   {Key: better.Key, Priority: 9},
		"one with old content":  {Key: better.Key, Priority: 9, Content: two, Stale: true},
		"one of lower priority": {Key: better.Key, Priority: -1, Content: two},
		"one of other content":  {Key: better.Key, Content: two},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld().sub("a/s")
			w.in.Catalogs = []resolution.CatalogState{better, worse}
			first := resolution.Resolve(w.in)
			require.Equal(t, one.Chain("a", "s")[0], first.Operators[0].Name)
			w.in.Catalogs = []resolution.CatalogState{worse, better}
			require.Empty(t, cmp.Diff(first, resolution.Resolve(w.in)))
		})
	}
}

// TestBadInput has a case of OLM.
//
// OLM's case: operators of other namespaces.
func TestBadInput(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	want := describe(resolution.Resolve(w.in))
	twin := w.in.Subscriptions[0].DeepCopy()
	twin.UID, twin.Spec.Package = "zzz", "b"
	foreign := subscription("other", "x", "x", "", "global/cat")
	w.in.Subscriptions = append(w.in.Subscriptions, nil, &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "empty"}}, foreign, twin)
	w.in.CSVs = []*v1alpha1.ClusterServiceVersion{nil, {ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "c"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "1"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "2"}}}
	w.in.Catalogs = append(w.in.Catalogs, w.in.Catalogs[0], resolution.CatalogState{})
	res := resolution.Resolve(w.in)
	require.Len(t, res.Diagnostics, 8)
	for _, d := range res.Diagnostics {
		require.Equal(t, resolution.ReasonSkippedObject, d.Reason, d.Message)
	}
	res.Diagnostics = nil
	require.Equal(t, want, describe(res))
}

func TestUnreadableCatalogStopsTheNamespaceAsInOLM(t *testing.T) {
	badRule := property(resolution.PropertyConstraint, `{"cel":{"rule":"not a rule"}}`)
	deprecated := []olmcore.Property{property(resolution.PropertyDeprecated, "{}"), requiresPackage("b", "^1")}
	for name, lines := range map[string][]entry{
		"a CEL rule that does not compile":        {line("a/s", "a1", "", badRule), line("a/s", "a2", "a1")},
		"a deprecated bundle with an odd range":   {line("a/s", "a1", "", deprecated...), line("a/s", "a2", "a1")},
		"the same two, and nothing else is wrong": {line("a/s", "a1", "", badRule), line("a/s", "a2", "a1", deprecated...)},
	} {
		w := newWorld(lines...).sub("a/s")
		w.in.CEL = evaluator{}
		w.in.Policy = resolution.UpstreamPolicy()
		require.Equal(t, resolution.Failed, resolution.Resolve(w.in).Outcome, name)
		w.in.CEL = nil
		w.in.Policy = resolution.Policy{FailOnInvalidBundle: true}
		withoutRule := resolution.Resolve(w.in)
		require.Equal(t, name == "a CEL rule that does not compile", withoutRule.Outcome == resolution.Resolved, "%s: without a compiler a rule is no mistake", name)
	}
}

func TestFailedSubscriptionDoesNotKeepAReplacedVersion(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable", has("a1")).sub("gone/stable", has("a1"), from("ns/x")).csv("a", "a1", nil)
	w.in.Policy.FailOnMissingCatalog = true
	res := resolution.Resolve(w.in)
	require.Equal(t, []resolution.Target{{Subscription: "a", Current: "a1", Target: res.Operators[0].Name}, {Subscription: "gone", Current: "a1"}}, res.Targets)
}

func TestAnOperatorDoesNotReplaceItself(t *testing.T) {
	w := newWorld(line("a/s", "a1", ""), entry{in: "a/s", name: "a2", version: "2.0.0", replaces: "a1", skipRange: ">=1.0.0 <3.0.0"}).sub("a/s", has("a2")).csv("a", "a2", nil)
	w.in.Subscriptions[0].Status.CurrentCSV = ""
	w.in.Policy.AllowBackwardSkipRange = true
	res := resolution.Resolve(w.in)
	require.Equal(t, "a2", res.Operators[0].Name)
	require.Equal(t, "a1", res.Operators[0].Replaces)
}
