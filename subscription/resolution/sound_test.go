// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func TestTargetsFitTheirSubscriptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		res := resolution.Resolve(in)
		if res.Failure != nil {
			return
		}
		o := newOracle(n, false)
		for _, s := range o.subs {
			i := slices.IndexFunc(res.Targets, func(x resolution.Target) bool { return x.Subscription == s.object.Name })
			target := res.Targets[i]
			if res.Decisions[i].Failure != nil || target.Target == target.Current {
				continue
			}
			var fits []olmcore.Operator
			for _, op := range res.Operators {
				if slices.Contains(op.For, s.object.Name) {
					fits = append(fits, op)
				}
			}
			if len(fits) != 1 || fits[0].Name != target.Target {
				t.Fatalf("%s is to have %s, for it there are %v", s.object.Name, target.Target, fits)
			}
			// A candidate is of the right catalog, package and channel, and upgrades from what is there.
			if !slices.ContainsFunc(s.candidates, func(e *oracleEntry) bool {
				return e.name == fits[0].Name && e.channel == fits[0].Channel && e.catalog == fits[0].Catalog.String()
			}) {
				t.Fatalf("%s gets %+v", s.object.Name, fits[0])
			}
		}
		for _, op := range res.Operators {
			if err := wanted(in, res, op); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// wanted checks where an operator comes from, what it replaces and who asked for it.
func wanted(in resolution.Input, res resolution.Result, op olmcore.Operator) error {
	i := slices.IndexFunc(in.Catalogs, func(c resolution.CatalogState) bool { return c.Key == op.Catalog })
	if i < 0 {
		return fmt.Errorf("%s is of a catalog that is not there", op.Name)
	}
	starts := slices.ContainsFunc(in.Subscriptions, func(s *v1alpha1.Subscription) bool {
		return s.Spec.StartingCSV == op.Name && slices.Contains(op.For, s.Name)
	})
	if !starts && !slices.Contains(in.Catalogs[i].Content.Chain(op.Package, op.Channel), op.Name) {
		return fmt.Errorf("%s is skipped", op.Name)
	}
	var currents []string
	for _, target := range res.Targets {
		if slices.Contains(op.For, target.Subscription) && target.Current != "" {
			currents = append(currents, target.Current)
		}
	}
	if len(currents) > 0 && !slices.Contains(currents, op.Replaces) {
		return fmt.Errorf("%s replaces %q instead of one of %v", op.Name, op.Replaces, currents)
	}
	if len(op.For)+len(op.RequiredBy) == 0 {
		return fmt.Errorf("nobody asked for %s", op.Name)
	}
	for _, name := range op.RequiredBy {
		var properties []olmcore.Property
		for _, other := range res.Operators {
			if other.Name == name {
				properties = other.Bundle.Properties
			}
		}
		for _, c := range in.CSVs {
			if c.Name == name && properties == nil {
				var list struct{ Properties []olmcore.Property }
				if err := json.Unmarshal([]byte(c.Annotations["operatorframework.io/properties"]), &list); err != nil {
					return err
				}
				properties = list.Properties
			}
		}
		e := oracleEntryOf(op.Name, op.Bundle.Properties)
		if !slices.ContainsFunc(oracleEntryOf(name, properties).requires, func(q func(*oracleEntry) bool) bool { return q(e) }) {
			return fmt.Errorf("%s does not require %s", name, op.Name)
		}
	}
	return nil
}

func TestEverySubscriptionGetsItsBestBundleIfPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		o := newOracle(n, false)
		var best []string
		for _, s := range o.subs {
			if len(s.candidates) == 0 {
				return
			}
			s.candidates = s.candidates[:1]
			best = append(best, s.object.Name+" "+s.candidates[0].name)
		}
		if _, ok := o.solve(); !ok {
			return
		}
		var got []string
		for _, target := range resolution.Resolve(n.input()).Targets {
			got = append(got, target.Subscription+" "+target.Target)
		}
		slices.Sort(best)
		same(t, best, got)
	})
}

func TestASubscriptionAloneGetsItsFirstPossibleCandidate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		if len(n.subs) == 0 {
			return
		}
		n.subs, n.csvs = n.subs[:1], nil
		want := ""
		for _, e := range newOracle(n, false).subs[0].candidates {
			o := newOracle(n, false)
			i := slices.IndexFunc(o.subs[0].candidates, func(c *oracleEntry) bool {
				return c.catalog == e.catalog && c.channel == e.channel && c.name == e.name
			})
			o.subs[0].candidates = o.subs[0].candidates[i : i+1]
			if _, ok := o.solve(); ok {
				want = e.name
				break
			}
		}
		same(t, want, resolution.Resolve(n.input()).Targets[0].Target)
	})
}

// TestOutcomeHasASolutionOrAFailure has cases of OLM.
//
// OLM's cases: the text of no, one and several rules; either success or failure.
func TestOutcomeHasASolutionOrAFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t, small).input()
		in.Policy.MessageLimit = -1
		res := resolution.Resolve(in)
		quiet := len(res.Operators) == 0 && len(res.Generated) == 0 && !slices.ContainsFunc(res.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Changed })
		if (res.Outcome == resolution.Unchanged) != (quiet && res.Failure == nil) {
			t.Fatalf("%s: %d operators, %d generated, failure %v", res.Outcome, len(res.Operators), len(res.Generated), res.Failure)
		}
		everybody := !slices.ContainsFunc(res.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Failure == nil })
		nobody := slices.ContainsFunc(res.Cores, func(c resolution.Core) bool { return len(c.Subscriptions) == 0 })
		if res.Failure != nil && !everybody && !nobody {
			t.Fatalf("the namespace fails for some of its Subscriptions: %+v", res.Failure)
		}
		for _, c := range res.Cores {
			var texts []string
			for _, r := range c.Rules {
				texts = append(texts, r.Text)
			}
			if !slices.IsSorted(texts) || c.Message != "constraints not satisfiable: "+strings.Join(texts, ", ") {
				t.Fatalf("message %q of %q", c.Message, texts)
			}
		}
	})
}

func TestCoresAreMinimal(t *testing.T) {
	cores := 0
	rapid.Check(t, func(t *rapid.T) {
		rules, err := resolution.CheckCore(drawNamespace(t, small).input())
		if err != nil {
			t.Fatal(err)
		}
		if rules > 0 {
			cores++
		}
	})
	t.Logf("%d cores", cores)
}

func TestIrrelevantObjectsDoNotChangeTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		before, err := json.Marshal(packagesOf(n))
		if err != nil {
			t.Fatal(err)
		}
		want := decidedBy(resolution.Resolve(n.input()))
		if after, _ := json.Marshal(packagesOf(n)); string(before) != string(after) {
			t.Fatal("the catalog's source changed")
		}
		for range rapid.IntRange(0, 3).Draw(t, "copies") {
			pkg, b := n.drawBundle(t)
			c := drawInstalled(t, pkg, b)
			c.Status.Reason = v1alpha1.CSVReasonCopied
			n.csvs = append(n.csvs, c)
		}
		for i, s := range n.subs {
			if s.Status.InstalledCSV != "" {
				n.subs[i] = s.DeepCopy()
				_, b := n.drawBundle(t)
				n.subs[i].Spec.StartingCSV = b.Name
			}
		}
		r := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		for _, c := range n.catalogs {
			for _, p := range c.packages {
				for i := range p.Bundles {
					p.Bundles[i].Properties = reordered(r, append(slices.Clone(p.Bundles[i].Properties), property("odd", `{"x":1}`)))
				}
			}
		}
		same(t, want, decidedBy(resolution.Resolve(n.input())))
	})
}

func packagesOf(n *namespace) (all [][]resolution.Package) {
	for _, c := range n.catalogs {
		all = append(all, c.packages)
	}
	return all
}

// reordered shuffles properties, but leaves requirements in their order.
func reordered(r *rand.Rand, properties []olmcore.Property) []olmcore.Property {
	requires := func(p olmcore.Property) bool {
		return strings.HasSuffix(p.Type, ".required") || p.Type == resolution.PropertyConstraint
	}
	var fixed []olmcore.Property
	for _, p := range properties {
		if requires(p) {
			fixed = append(fixed, p)
		}
	}
	out := shuffled(r, properties)
	for i := range out {
		if requires(out[i]) {
			out[i], fixed = fixed[0], fixed[1:]
		}
	}
	return out
}

func TestUnusedCatalogsDoNotChangeTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		want := resolution.Resolve(in)
		in.Catalogs = append(in.Catalogs, resolution.CatalogState{Key: types.NamespacedName{Namespace: "global", Name: "down"}, Priority: rapid.IntRange(-9, 9).Draw(t, "its priority"), Problem: "down"})
		got := resolution.Resolve(in)
		if len(got.Cores) > 0 || got.Failure != nil {
			return // a Subscription waits for it
		}
		same(t, decidedBy(want), decidedBy(got))
	})
}

func TestTheSameAnswerEachTime(t *testing.T) {
	w := newWorld(append(chain(), line("a/beta", "a3", ""), line("b/s", "b1", "", provides("K"), requires("L")), line("c/s", "c1", "", provides("K")), line("d/s", "d1", "", provides("L")), line("e/s", "e1", "", provides("L")))...).
		catalog("ns/x", 0, line("f/s", "f1", "", provides("L"), provides("M"))).broken("global/down", -5).broken("global/also", -5).
		sub("a").sub("b/s").sub("c/s").sub("z/s").csv("y", "y1", []olmcore.Property{requires("M")})
	want := resolution.Resolve(w.in)
	for range 50 {
		require.Equal(t, want, resolution.Resolve(w.in))
	}
}

func TestAThousandSubscriptionsAndAHundredThousandEntries(t *testing.T) {
	var packages []resolution.Package
	w := newWorld()
	for p := range 1000 {
		pkg := resolution.Package{Name: fmt.Sprintf("p%03d", p), DefaultChannel: "s", Channels: []resolution.Channel{{Name: "s"}}}
		for v := range 100 {
			name := fmt.Sprintf("%s.v%d", pkg.Name, v)
			e := resolution.ChannelEntry{Name: name}
			if v > 0 {
				e.Replaces = fmt.Sprintf("%s.v%d", pkg.Name, v-1)
			}
			pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, e)
			pkg.Bundles = append(pkg.Bundles, bundle(name, packageProperty(pkg.Name, fmt.Sprintf("1.%d.0", v))))
		}
		packages = append(packages, pkg)
		w.sub(pkg.Name + "/s")
	}
	built, diagnostics := resolution.Build(packages)
	require.Empty(t, diagnostics)
	w.in.Catalogs = []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Content: built}}
	res := resolution.Resolve(w.in)
	require.Len(t, res.Operators, 1000)
	require.InDelta(t, 1500, res.Stats.Steps, 500, "a step or two for each")
	require.Equal(t, "p999.v99", res.Operators[999].Name)
}
