// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// decided is what of a result others act on, without its words.
type decided struct {
	Outcome   resolution.Outcome
	Operators []string
	Generated []string
	Targets   []resolution.Target
	Failed    []string
}

func decidedBy(res resolution.Result) decided {
	d := decided{Outcome: res.Outcome, Operators: chosen(res), Targets: res.Targets}
	for _, s := range res.Generated {
		d.Generated = append(d.Generated, s.Name)
	}
	for _, decision := range res.Decisions {
		if decision.Failure != nil {
			d.Failed = append(d.Failed, decision.Name)
		}
	}
	return d
}

func same(t *rapid.T, want, got any) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestACopyOfACatalogOfLowerPriorityChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		want := decidedBy(resolution.Resolve(n.input()))
		n.catalogs = append(n.catalogs, catalogSpec{
			key:      types.NamespacedName{Namespace: "global", Name: "zcopy"},
			priority: -100, packages: rapid.SampledFrom(n.catalogs).Draw(t, "copied").packages,
		})
		same(t, want, decidedBy(resolution.Resolve(n.input())))
	})
}

// TestAProviderComesFromTheFirstCatalogThatHasOne has cases of OLM.
//
// OLM's cases: the first alternative; a dependency by priority, then by name, the own catalog first.
func TestAProviderComesFromTheFirstCatalogThatHasOne(t *testing.T) {
	providers := map[string][]olmcore.Property{
		"good":       {provides("K")},
		"deprecated": {provides("K"), property(resolution.PropertyDeprecated, "{}")},
		"clashing":   {provides("K"), provides("A")},
		"needy":      {provides("K"), requires("nothing")},
		"broken":     {provides("K"), property(resolution.PropertyConstraint, "{}")},
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		type offer struct {
			key      string
			priority int
			good     bool
		}
		var offers []offer
		kinds := append(slices.Sorted(func(yield func(string) bool) {
			for k := range providers {
				if !yield(k) {
					return
				}
			}
		}), "nothing")
		for i := range rapid.IntRange(1, 4).Draw(t, "catalogs") {
			o := offer{key: fmt.Sprintf("%s/cat%d", rapid.SampledFrom([]string{"ns", "global"}).Draw(t, "namespace"), i), priority: rapid.IntRange(-1, 1).Draw(t, "priority")}
			var lines []entry
			if i == 0 {
				lines = append(lines, line("a/s", "a1", "", provides("A"), requires("K")))
				w.sub("a/s", from(o.key))
			}
			for j := range rapid.IntRange(0, 2).Draw(t, "packages") {
				kind := rapid.SampledFrom(kinds).Draw(t, "kind")
				o.good = o.good || kind == "good"
				name := fmt.Sprintf("%c%d", 'b'+j, i)
				lines = append(lines, line(name+"/s", name+".1", "", providers[kind]...))
				lines[len(lines)-1].version = "1.0.0"
			}
			w.catalog(o.key, o.priority, lines...)
			offers = append(offers, o)
		}
		rest := slices.SortedStableFunc(slices.Values(offers[1:]), func(a, b offer) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.key[:2], a.key[:2]), cmp.Compare(a.key, b.key))
		})
		want := ""
		for _, o := range append(offers[:1:1], rest...) {
			if o.good {
				want = o.key
				break
			}
		}
		got := ""
		for _, op := range resolution.Resolve(w.in).Operators {
			if len(op.For) == 0 {
				got = op.Catalog.String()
			}
		}
		same(t, want, got)
	})
}

// names are those of a random namespace; what they become sorts as they do, among each other and beside the words of
// messages.
var names = regexp.MustCompile(`\b(p|cat|c|s|K)([0-9])\b|\b(ns|global)\b`)

func rename[T any](t *rapid.T, v T) T {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal([]byte(renameText(string(text))), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func renameText(text string) string { return names.ReplaceAllString(text, "${1}${3}r${2}") }

func TestRenamingTheInputRenamesTheOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		before, err := json.Marshal(resolution.Resolve(n.input()))
		if err != nil {
			t.Fatal(err)
		}
		other := &namespace{subs: rename(t, n.subs), csvs: rename(t, n.csvs)}
		for _, c := range n.catalogs {
			other.catalogs = append(other.catalogs, catalogSpec{key: rename(t, c.key), priority: c.priority, packages: rename(t, c.packages)})
		}
		in := other.input()
		in.Namespace, in.GlobalCatalogNamespace, in.OperatorGroups = "nsr", "globalr", oneGroup("nsr")
		after, err := json.Marshal(resolution.Resolve(in))
		if err != nil {
			t.Fatal(err)
		}
		same(t, renameText(string(before)), string(after))
	})
}

func TestPoliciesAgreeOnValidContent(t *testing.T) {
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		for _, c := range n.catalogs {
			for _, p := range c.packages {
				for _, ch := range p.Channels {
					for i := range ch.Entries {
						ch.Entries[i].SkipRange = "" // OLM follows it backward
					}
				}
			}
		}
		in := n.input()
		ours := resolution.Resolve(in)
		in.Policy = resolution.UpstreamPolicy()
		theirs := resolution.Resolve(in)
		gone := slices.ContainsFunc(ours.HeldBack, func(h resolution.HeldBack) bool {
			return h.Code == resolution.CatalogMissing || h.Code == resolution.PackageMissing || h.Code == resolution.ChannelMissing
		})
		if (theirs.Failure != nil) != (len(ours.Cores) > 0 || gone) {
			t.Fatalf("OLM's policy: %s, ours: %d cores, something is gone: %v", theirs.Outcome, len(ours.Cores), gone)
		}
		if theirs.Failure == nil {
			agreed++
			same(t, decidedBy(theirs), decidedBy(ours))
			same(t, theirs.Resolution, ours.Resolution)
		}
	})
	t.Logf("%d namespaces without failure", agreed)
}

// upgradeStates puts some installed operators into the middle of an upgrade from one or two older ones.
func upgradeStates(t *rapid.T, n *namespace) {
	phases := rapid.SampledFrom([]v1alpha1.ClusterServiceVersionPhase{
		v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseFailed,
		v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseDeleting, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseNone,
	})
	for _, c := range slices.Clone(n.csvs) {
		c.Status.Phase = phases.Draw(t, "phase")
		for i := range rapid.IntRange(0, 2).Draw(t, "older") {
			old := c.DeepCopy()
			old.Name = fmt.Sprintf("%s.old%d", c.Name[:2], i)
			if slices.ContainsFunc(n.csvs, func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == old.Name }) {
				continue
			}
			old.Status.Phase = phases.Draw(t, "phase of the old one")
			c.Spec.Replaces = old.Name
			n.csvs = append(n.csvs, old)
			c = old
		}
	}
}

// failedUpgrade reports whether something Replacing leads to something Failed.
func failedUpgrade(csvs []*v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(csvs, func(c *v1alpha1.ClusterServiceVersion) bool {
		if c.Status.Phase != v1alpha1.CSVPhaseReplacing {
			return false
		}
		for range csvs {
			i := slices.IndexFunc(csvs, func(next *v1alpha1.ClusterServiceVersion) bool { return next.Spec.Replaces == c.Name })
			if i < 0 {
				break
			}
			c = csvs[i]
		}
		return c.Status.Phase == v1alpha1.CSVPhaseFailed
	})
}

// TestFailForwardMattersOnlyForFailedUpgrades has a case of OLM.
//
// OLM's case: which chains end in failure.
func TestFailForwardMattersOnlyForFailedUpgrades(t *testing.T) {
	mattered := 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		upgradeStates(t, n)
		w := &world{in: n.input()}
		off := resolution.Resolve(w.in)
		on := resolution.Resolve(w.failForward().in)
		off.Diagnostics, on.Diagnostics = nil, nil // chains are judged only when it is on
		if failedUpgrade(n.csvs) {
			if !gocmp.Equal(off, on) {
				mattered++
			}
			return
		}
		same(t, off, on)
	})
	t.Logf("it mattered %d times", mattered)
}

// without excludes one bundle.
type without struct{ catalog, pkg, name string }

func (w without) Exclude(op olmcore.Operator) string {
	if op.Catalog.String() == w.catalog && op.Package == w.pkg && op.Name == w.name {
		return "not this one"
	}
	return ""
}

func TestExcludedBundleStaysInTheUpgradeGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		full := slices.DeleteFunc(slices.Clone(n.catalogs), func(c catalogSpec) bool { return len(c.packages) == 0 })
		c := rapid.SampledFrom(full).Draw(t, "catalog")
		p := rapid.SampledFrom(c.packages).Draw(t, "package")
		b := rapid.SampledFrom(p.Bundles).Draw(t, "bundle")
		excluded := n.input()
		excluded.Exclude = without{c.key.String(), p.Name, b.Name}
		want := decidedBy(resolution.Resolve(excluded))

		i := slices.IndexFunc(n.catalogs, func(x catalogSpec) bool { return x.key == c.key })
		before, _ := resolution.Build(c.packages)
		for _, mark := range []olmcore.Property{property(resolution.PropertyDeprecated, "{}"), property(resolution.PropertyConstraint, `{"unknown":1}`)} {
			packages := slices.Clone(c.packages)
			p := &packages[slices.IndexFunc(packages, func(x resolution.Package) bool { return x.Name == p.Name })]
			p.Bundles = slices.Clone(p.Bundles)
			at := slices.IndexFunc(p.Bundles, func(x resolution.Bundle) bool { return x.Name == b.Name })
			p.Bundles[at].Properties = append(slices.Clone(b.Properties), mark)
			n.catalogs[i].packages = packages
			same(t, want, decidedBy(resolution.Resolve(n.input())))
			after, _ := resolution.Build(packages)
			for _, ch := range p.Channels {
				same(t, before.Chain(p.Name, ch.Name), after.Chain(p.Name, ch.Name))
			}
		}
	})
}

// reasons says which rules there are, but for those that a Subscription wants something. Their texts also list
// candidates, of which a forced one has fewer.
func reasons(rules []resolution.Rule, subscription string) []string {
	var list []string
	for _, r := range rules {
		if r.Subscription != subscription || (r.Kind != resolution.SubscriptionExists && r.Kind != resolution.SubscriptionRequires) {
			list = append(list, fmt.Sprint(r.Kind, r.Subscription, r.Bundle, r.Package, r.Need))
		}
	}
	slices.Sort(list)
	return list
}

func TestForcedCandidateFailsForTheReportedReason(t *testing.T) {
	forced, reproduced := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // few namespaces hold anything back
			n := drawNamespace(t, small)
			res := resolution.Resolve(n.input())
			if len(res.Cores) > 0 {
				continue
			}
			for _, h := range res.HeldBack {
				alone, again := force(t, n, res, h)
				forced++
				if alone {
					reproduced++
					same(t, reasons(h.Rules, h.Subscription), reasons(again.Rules, h.Subscription))
				}
			}
		}
	})
	t.Logf("%d forced, of %d the core was compared", forced, reproduced)
}

// force demands a candidate that was held back. alone: the Subscription could be made to ask for just that one, and
// core is why it fails.
func force(t *rapid.T, n *namespace, res resolution.Result, h resolution.HeldBack) (alone bool, core resolution.Core) {
	o := newOracle(n, false)
	i := slices.IndexFunc(o.subs, func(s *oracleSub) bool { return s.object.Name == h.Subscription })
	target := res.Targets[slices.IndexFunc(res.Targets, func(x resolution.Target) bool { return x.Subscription == h.Subscription })]
	if h.Candidate == "" {
		if !slices.Contains([]resolution.HeldBackCode{resolution.NoUpgradeEdge, resolution.CatalogMissing, resolution.PackageMissing, resolution.ChannelMissing}, h.Code) || target.Target != target.Current {
			t.Fatalf("%+v", h)
		}
		return false, core
	}
	first := o.subs[i].candidates[0]
	same(t, first.name, h.Candidate)
	o.subs[i].candidates = []*oracleEntry{first}
	keeps := slices.ContainsFunc(h.Rules, func(r resolution.Rule) bool { return r.Kind == resolution.KeepsCandidate })
	if keeps {
		o.keep(res, i)
	}
	if _, ok := o.solve(); ok {
		t.Fatalf("%s could have %s: %s", h.Subscription, h.Candidate, h.Summary)
	}
	sub := o.subs[i].object
	if keeps || o.subs[i].current != nil || sub.Spec.StartingCSV != "" {
		return false, core
	}
	asking := sub.DeepCopy()
	asking.Spec.StartingCSV, asking.Spec.Channel = first.name, first.channel
	in := n.input()
	in.Policy.AllOrNothing = true
	in.Subscriptions = slices.Clone(in.Subscriptions)
	in.Subscriptions[slices.Index(in.Subscriptions, sub)] = asking
	failed := resolution.Resolve(in)
	if len(failed.Cores) == 0 || !slices.Contains(failed.Cores[0].Subscriptions, h.Subscription) {
		t.Fatalf("asking for %s does not fail: %s", first.name, describe(failed))
	}
	return true, failed.Cores[0]
}

// keep leaves the Subscriptions before the i-th what the result gave them.
func (o *oracle) keep(res resolution.Result, i int) {
	for _, s := range o.subs[:i] {
		at := slices.IndexFunc(res.Targets, func(x resolution.Target) bool { return x.Subscription == s.object.Name })
		target := res.Targets[at].Target
		from := ""
		for _, op := range res.Operators {
			if op.Name == target && slices.Contains(op.For, s.object.Name) {
				from = op.Catalog.String() + "/" + op.Channel
			}
		}
		s.candidates = slices.DeleteFunc(slices.Clone(s.candidates), func(e *oracleEntry) bool {
			return e.name != target || (from != "" && strings.TrimPrefix(e.catalog+"/"+e.channel, "/") != from)
		})
	}
}
