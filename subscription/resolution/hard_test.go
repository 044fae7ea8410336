// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// tower is packages p0, p1, ... of some versions each, of which every one requires the next package; the versions of
// the last one get facts of their own. When free, the oldest version of p0 requires nothing.
func tower(packages, versions int, free bool, last ...olmcore.Property) []entry {
	var lines []entry
	for p := range packages {
		for v := range versions {
			e := entry{in: fmt.Sprintf("p%d/s", p), name: fmt.Sprintf("p%d.v%d", p, v), version: fmt.Sprintf("1.%d.0", v)}
			if v > 0 {
				e.replaces = fmt.Sprintf("p%d.v%d", p, v-1)
			}
			switch {
			case p == packages-1:
				e.facts = last
			case p > 0 || v > 0 || !free:
				e.facts = []olmcore.Property{requiresPackage(fmt.Sprintf("p%d", p+1), ">=0.0.0")}
			}
			lines = append(lines, e)
		}
	}
	return lines
}

// braid is a tower in which every version requires the same version of the next two packages, and of the last package
// the newest and the oldest exclude each other.
func braid(packages, versions int) []entry {
	lines := tower(packages, versions, true, requires("Missing"))
	for i := range lines {
		p, v := i/versions, i%versions
		if p < packages-2 && (p > 0 || v > 0) {
			lines[i].facts = []olmcore.Property{requiresPackage(fmt.Sprintf("p%d", p+1), ">=0.0.0"), requiresPackage(fmt.Sprintf("p%d", p+2), fmt.Sprintf(">=1.%d.0", v))}
		}
	}
	return lines
}

// hardCases are inputs that trying alone does not end on within a million steps, or hardly, with what OLM answers.
func hardCases() map[string]hardCase {
	orphan := newWorld(tower(3, 300, true, provides("K"))...).sub("p0/s").csv("x", "x1", []olmcore.Property{provides("K")})
	cases := map[string]hardCase{
		"20 packages of 2 versions":                       {newWorld(tower(20, 2, true, requires("Missing"))...).sub("p0/s").in, "p0.v0"},
		"24 packages of 2 versions":                       {newWorld(tower(24, 2, true, requires("Missing"))...).sub("p0/s").in, "p0.v0"},
		"4 packages of 40 versions":                       {newWorld(tower(4, 40, true, requires("Missing"))...).sub("p0/s").in, "p0.v0"},
		"6 packages of 10 versions without end":           {newWorld(tower(6, 10, false, requires("Missing"))...).sub("p0/s").in, ""},
		"3 packages of 90 versions without end":           {newWorld(tower(3, 90, false, requires("Missing"))...).sub("p0/s").in, ""},
		"3 packages of 300 versions without end":          {newWorld(tower(3, 300, false, requires("Missing"))...).sub("p0/s").in, ""},
		"3 packages of 300 versions beside an orphan":     {orphan.in, "p0.v0"},
		"8 packages of 12 versions, each with two needs":  {newWorld(braid(8, 12)...).sub("p0/s").in, "p0.v0"},
		"12 packages of 20 versions, each with two needs": {newWorld(braid(12, 20)...).sub("p0/s").in, "p0.v0"},
	}
	for _, n := range []int{9, 10, 11, 12, 20} {
		cases[fmt.Sprintf("pigeonhole of %d", n)] = hardCase{pigeonhole(n), ""}
	}
	return cases
}

type hardCase struct {
	in   resolution.Input
	want string // what the Subscription gets; "" when there is no solution
}

// thousand is a thousand Subscriptions to published packages; some of them exclude each other, and some lack what
// they require.
func thousand(t testing.TB) (resolution.Input, map[string]*published) {
	catalogs := map[string]*published{}
	in := resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns")}
	for _, file := range []string{communityAll, certified, community} {
		c := publishedCatalog(t, file)
		key := types.NamespacedName{Namespace: "global", Name: strings.TrimSuffix(file, ".fbc.jsonl.gz")}
		catalogs[key.Name] = c
		in.Catalogs = append(in.Catalogs, resolution.CatalogState{Key: key, Content: c.content})
		for _, pkg := range c.content.Packages() {
			if len(in.Subscriptions) < 1000 {
				s := subscription("ns", fmt.Sprintf("s%03d", len(in.Subscriptions)), pkg, c.content.Channels(pkg)[0], key.String())
				in.Subscriptions = append(in.Subscriptions, s)
			}
		}
	}
	return in, catalogs
}

func TestAThousandSubscriptionsToPublishedPackages(t *testing.T) {
	in, _ := thousand(t)
	res := resolution.Resolve(in)
	t.Logf("%d operators, %d cores, %d held back, %+v", len(res.Operators), len(res.Cores), len(res.HeldBack), res.Stats)
	for _, c := range res.Cores {
		require.True(t, c.Minimal && !c.Error, c.Message)
	}
	for _, h := range res.HeldBack {
		require.NotEqual(t, resolution.Unknown, h.Code, h.Summary)
	}
	require.Greater(t, len(res.Operators), 200)
}

// seventeen is a thousand Subscriptions to the packages of published catalogs that fit together, several to most of
// them. Of seventeen packages an older version is installed that no Subscription refers to.
func seventeen(t testing.TB) resolution.Input {
	in, catalogs := thousand(t)
	res := resolution.Resolve(in)
	var fitting []*v1alpha1.SubscriptionSpec
	for i, s := range in.Subscriptions {
		held := slices.ContainsFunc(res.HeldBack, func(h resolution.HeldBack) bool { return h.Subscription == s.Name })
		if res.Decisions[i].Changed && !held {
			fitting = append(fitting, s.Spec)
		}
	}
	required := map[string]bool{}
	for _, op := range res.Operators {
		required[op.Package] = len(op.RequiredBy) > 0
	}
	in.Subscriptions = nil
	follow := func(spec *v1alpha1.SubscriptionSpec) {
		s := subscription("ns", fmt.Sprintf("s%03d", len(in.Subscriptions)), spec.Package, spec.Channel, spec.CatalogSourceNamespace+"/"+spec.CatalogSource)
		in.Subscriptions = append(in.Subscriptions, s)
	}
	var rest []*v1alpha1.SubscriptionSpec
	for _, spec := range fitting {
		c := catalogs[spec.CatalogSource]
		chain := c.content.Chain(spec.Package, spec.Channel)
		if len(in.CSVs) < 17 && !required[spec.Package] && len(chain) > 1 && c.freestanding(spec.Package, chain[1]) {
			in.CSVs = append(in.CSVs, c.installed(t, spec.Package, chain[1]))
			follow(spec)
		} else {
			rest = append(rest, spec)
		}
	}
	require.Len(t, in.CSVs, 17)
	for i := 0; len(in.Subscriptions) < 1000; i++ {
		follow(rest[i%len(rest)])
	}
	return in
}

// freestanding reports whether a bundle requires nothing.
func (c *published) freestanding(pkg, bundle string) bool {
	i := slices.IndexFunc(c.byName[pkg].Bundles, func(b resolution.Bundle) bool { return b.Name == bundle })
	return i >= 0 && !slices.ContainsFunc(c.byName[pkg].Bundles[i].Properties, func(p olmcore.Property) bool {
		return strings.HasSuffix(p.Type, ".required") || p.Type == resolution.PropertyConstraint
	})
}

func TestSeventeenOfAThousandSubscriptionsAreLeftOut(t *testing.T) {
	in := seventeen(t)
	for name, policy := range map[string]resolution.Policy{"ours": {}, "with OLM's steps": {MaxSteps: resolution.UpstreamPolicy().MaxSteps}} {
		in.Policy = policy
		res := resolution.Resolve(in)
		require.Equal(t, resolution.Resolved, res.Outcome, name)
		require.Equal(t, 17, len(res.Cores), name)
		for i, core := range res.Cores {
			require.True(t, core.Minimal && !core.Error, core.Message)
			require.Equal(t, []string{fmt.Sprintf("s%03d", i)}, core.Subscriptions)
			require.Contains(t, core.Summary, fmt.Sprintf("ClusterServiceVersion %s of package", in.CSVs[i].Name))
			require.Contains(t, core.Summary, "exists already and no Subscription refers to it")
			require.NotEmpty(t, core.Remedies)
		}
		for i, d := range res.Decisions {
			require.Equal(t, i < 17, d.Failure != nil, d.Name)
			require.Equal(t, i >= 17, d.Changed, d.Name)
		}
		require.Empty(t, res.HeldBack)
	}
}

func BenchmarkSeventeen(b *testing.B) { resolveAll(b, seventeen(b), resolution.Resolved) }

func BenchmarkThousand(b *testing.B) {
	in, _ := thousand(b)
	resolveAll(b, in, resolution.Resolved)
}

// TestHardNamespaces compares with testdata/hard.txt, which OLMCORE_UPDATE=1 writes anew.
func TestHardNamespaces(t *testing.T) {
	cases := hardCases()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		res := resolution.Resolve(c.in)
		fmt.Fprintf(&text, "%s: %s\n", name, res.Outcome)
		for _, op := range res.Operators {
			fmt.Fprintf(&text, "  install %s\n", op.Name)
		}
		for _, core := range res.Cores {
			require.True(t, core.Minimal, name)
			fmt.Fprintf(&text, "  %v, %d rules: %s\n", core.Subscriptions, len(core.Rules), core.Summary)
		}
		for _, h := range res.HeldBack {
			fmt.Fprintf(&text, "  %s, %d rules: %s\n", h.Code, len(h.Rules), h.Summary)
		}
		require.Equal(t, c.want == "", res.Outcome == resolution.Unsatisfiable, name)
		require.Less(t, res.Stats.Steps, 10_000, name)
		require.LessOrEqual(t, res.Stats.Explaining, 10*res.Stats.Steps, name)
	}
	const file = "testdata/hard.txt"
	if os.Getenv("OLMCORE_UPDATE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}

func BenchmarkHard(b *testing.B) {
	for name, c := range hardCases() {
		b.Run(name, func(b *testing.B) {
			var res resolution.Result
			for b.Loop() {
				res = resolution.Resolve(c.in)
			}
			b.ReportMetric(float64(res.Stats.Steps), "steps")
			b.ReportMetric(float64(res.Stats.Explaining), "explaining")
		})
	}
}
