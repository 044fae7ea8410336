// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestNoBundleIsSelectedForASatisfiedDependency has a case of OLM.
//
// OLM's case: one alternative, although two would do.
func TestNoBundleIsSelectedForASatisfiedDependency(t *testing.T) {
	dependencies := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // few namespaces have dependencies
			list := resolution.Selections(drawNamespace(t, small).input())
			for i := range list {
				if list[i].By >= 0 {
					dependencies++
					checkDependency(t, list, i)
				}
			}
		}
	})
	t.Logf("%d dependencies", dependencies)
}

// checkDependency requires that a selection meets a requirement which no earlier one does.
func checkDependency(t *rapid.T, list []resolution.Selection, i int) {
	x := list[i]
	meets := oracleEntryOf("", []olmcore.Property{x.Requirement}).requires[0]
	if !meets(oracleEntryOf(x.Name, x.Properties)) {
		t.Fatalf("%s does not meet what %s requires: %s", x.Name, list[x.By].Name, x.Requirement.Value)
	}
	for _, earlier := range list[:i] {
		if !earlier.Skipped && meets(oracleEntryOf(earlier.Name, earlier.Properties)) {
			t.Fatalf("%s is selected for %s, which %s meets already", x.Name, x.Requirement.Value, earlier.Name)
		}
	}
}

// inChannel excludes all of one channel.
type inChannel string

func (c inChannel) Exclude(op olmcore.Operator) string {
	if op.Package == "b" && op.Channel == string(c) {
		return "not from this channel"
	}
	return ""
}

func TestNewerOfTwoInstalledVersionsIsReplaced(t *testing.T) {
	for older, younger := range map[string]string{"a1": "a2", "a2": "a1"} {
		w := newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1"), entry{in: "a/s", name: "a3", version: "3.0.0", replaces: "a2", skips: []string{"a1"}}).
			sub("a/s", named("x"), aged(1), has(older)).sub("a/s", named("y"), aged(2), has(younger)).csv("a", "a1", nil).csv("a", "a2", nil)
		res := resolution.Resolve(w.in)
		require.Len(t, res.Operators, 1)
		require.Equal(t, "a2", res.Operators[0].Replaces, "x has %s", older)
		require.Equal(t, []string{"x", "y"}, res.Operators[0].For)
	}
}

func TestDefaultChannelIsPreferredForEqualBundles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		channels := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"alpha", "beta", "stable", "zeta"}), 2, 4, rapid.ID).Draw(t, "channels")
		versions := rapid.IntRange(1, 3).Draw(t, "versions")
		var lines []entry
		for _, channel := range channels { // the first is the default
			for v := 1; v <= versions; v++ {
				replaces := ""
				if v > 1 {
					replaces = fmt.Sprintf("b%d", v-1)
				}
				lines = append(lines, line("b/"+channel, fmt.Sprintf("b%d", v), replaces, provides("K")))
			}
		}
		lines = append(lines, line("a/s", "a1", "", requires("K")), line("c/s", "c1", "", requiresPackage("b", ">=1.0.0")))
		w, want := newWorld(lines...), channels[0]
		rest := slices.Sorted(slices.Values(channels[1:]))
		if rapid.Bool().Draw(t, "the default's copy is forbidden") {
			w.in.Exclude, want = inChannel(channels[0]), rest[0]
		}
		installed := rapid.IntRange(0, versions-1).Draw(t, "installed")
		switch rapid.SampledFrom([]string{"Subscription", "upgrade", "API", "package", "selected"}).Draw(t, "who asks") {
		case "Subscription":
			w.sub("b")
		case "upgrade":
			if installed == 0 {
				w.sub("b")
				break
			}
			name := fmt.Sprintf("b%d", installed)
			w.sub("b", has(name)).csv("b", name, []olmcore.Property{provides("K")})
		case "API":
			w.sub("a/s")
		case "package":
			w.sub("c/s")
		case "selected": // by a Subscription to another channel
			want = rest[len(rest)-1]
			w.sub("a/s").sub("b/" + want)
		}
		res := resolution.Resolve(w.in)
		i := slices.IndexFunc(res.Operators, func(op olmcore.Operator) bool { return op.Package == "b" })
		if i < 0 || res.Operators[i].Channel != want {
			t.Fatalf("channels %v: want %s\n%s", channels, want, describe(res))
		}
	})
}

// relevant is what of a result others act on, and what it says; without the properties that are carried along.
type relevant struct {
	Decided  decided
	Messages []string
	Held     []string
	Stats    resolution.Stats
}

func relevantOf(res resolution.Result) relevant {
	r := relevant{Decided: decidedBy(res), Stats: res.Stats}
	r.Stats.Explaining = 0 // a remedy may be a channel that is not followed yet
	r.Stats.Steps = 0      // a constraint is evaluated over all properties of a candidate, and costs as much
	for _, c := range res.Cores {
		r.Messages = append(r.Messages, c.Message)
	}
	for _, h := range res.HeldBack {
		r.Held = append(r.Held, fmt.Sprintf("%s %s %s %s", h.Subscription, h.Candidate, h.Code, h.Summary))
	}
	return r
}

// TestUnrequestedPackagesDoNotChangeTheAnswer has a case of OLM.
//
// OLM's case: what is not asked for is not selected.
func TestUnrequestedPackagesDoNotChangeTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		before := n.input()
		want := relevantOf(resolution.Resolve(before))
		for i := range n.catalogs {
			packages := slices.Clone(n.catalogs[i].packages)
			for j := range packages {
				packages[j] = embellished(t, n.subs, packages[j])
			}
			if len(packages) > 0 { // "an empty catalog" is another answer
				packages = append(packages, packagesNobodyKnows()...)
			}
			n.catalogs[i].packages = packages
		}
		n.catalogs = append(n.catalogs, catalogSpec{key: types.NamespacedName{Namespace: "ns", Name: "another"}, priority: 99, packages: packagesNobodyKnows()})
		after := n.input()
		same(t, want, relevantOf(resolution.Resolve(after)))
		if before.Fingerprint() == after.Fingerprint() {
			t.Fatal("the fingerprint is the same")
		}
	})
}

func packagesNobodyKnows() []resolution.Package {
	return packages(line("unheard/s", "unheard1", "", provides("Unheard"), requires("Missing")), line("unheard/t", "unheard2", ""))
}

// embellished adds to a package what no Subscription follows and no requirement asks for: a channel, entries, and
// properties.
func embellished(t *rapid.T, subs []*v1alpha1.Subscription, p resolution.Package) resolution.Package {
	p.Properties = append(slices.Clone(p.Properties), property("odd", "1"))
	p.Bundles = slices.Clone(p.Bundles)
	for i := range p.Bundles {
		p.Bundles[i].Properties = append(slices.Clone(p.Bundles[i].Properties), property("odd", "1"), property(resolution.PropertyLabel, `{"label":"nobody asks for"}`))
	}
	// Its version is none, so no requirement of the package means it.
	stranger := bundle(p.Name+".stranger", packageProperty(p.Name, "none"))
	p.Bundles = append(p.Bundles, stranger)
	followsAll := slices.ContainsFunc(subs, func(s *v1alpha1.Subscription) bool { return s.Spec.Package == p.Name && s.Spec.Channel == "" })
	if !followsAll {
		p.Channels = append(slices.Clone(p.Channels), resolution.Channel{Name: "c9", Entries: []resolution.ChannelEntry{{Name: stranger.Name}}})
	}
	return p
}
