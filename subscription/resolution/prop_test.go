// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func chosen(res resolution.Result) []string {
	var list []string
	for _, op := range res.Operators {
		list = append(list, fmt.Sprintf("%s/%s/%s", op.Catalog, op.Channel, op.Name))
	}
	slices.Sort(list)
	return list
}

// installedAnew is what of an oracle's solution is to be installed. What is current already and merely named again by
// a backward skipRange counts too.
func installedAnew(solution []*oracleEntry) []string {
	var list []string
	for _, e := range solution {
		if e.catalog != "" {
			list = append(list, fmt.Sprintf("%s/%s/%s", e.catalog, e.channel, e.name))
		}
	}
	slices.Sort(list)
	return list
}

// TestFirstSolutionOfTheSearchTreeIsChosen has cases of OLM.
//
// OLM's cases: preferences with two dependencies each; what was undone leaves no demands behind.
func TestFirstSolutionOfTheSearchTreeIsChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		in.Policy.AllOrNothing = true
		in.Policy.AllowBackwardSkipRange = rapid.Bool().Draw(t, "backward")
		in.Policy.FailOnMissingCatalog = in.Policy.AllowBackwardSkipRange
		if in.Policy.AllowBackwardSkipRange {
			for _, s := range n.subs { // an upgrade to itself is not installed when it is known already
				s.Status.CurrentCSV = ""
			}
		}
		solution, ok := newOracle(n, in.Policy.AllowBackwardSkipRange).solve()
		res := resolution.Resolve(in)
		if got := res.Failure == nil; got != ok {
			t.Fatalf("%s, the oracle says satisfiable=%v", res.Outcome, ok)
		}
		if !ok {
			return
		}
		if diff := cmp.Diff(installedAnew(solution), chosen(res)); diff != "" {
			t.Fatalf("(-oracle +got):\n%s", diff)
		}
	})
}

func TestSolutionExistsExactlyIfTheOracleFindsOne(t *testing.T) {
	tiny := sizes{catalogs: 1, packages: 3, channels: 1, chain: 3, subs: 3, csvs: 2, kinds: 3}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Custom(func(t *rapid.T) *namespace { return drawNamespace(t, tiny) }).
			Filter(func(n *namespace) bool { return len(newOracle(n, false).entries()) <= 12 }).Draw(t, "namespace")
		o := newOracle(n, false)
		in := n.input()
		in.Policy.AllOrNothing = true
		if got, want := resolution.Resolve(in).Failure == nil, o.anyModel(); got != want {
			t.Fatalf("satisfiable=%v, some subset is a model: %v", got, want)
		}
	})
}

func shuffled[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// shuffledNamespace changes the order of everything whose order means nothing.
func shuffledNamespace(r *rand.Rand, n *namespace) *namespace {
	other := &namespace{subs: shuffled(r, n.subs), csvs: shuffled(r, n.csvs), catalogs: shuffled(r, n.catalogs)}
	for i := range other.catalogs {
		c := &other.catalogs[i]
		c.packages = shuffled(r, c.packages)
		for j := range c.packages {
			p := &c.packages[j]
			p.Channels, p.Bundles = shuffled(r, p.Channels), shuffled(r, p.Bundles)
			for k := range p.Channels {
				p.Channels[k].Entries = shuffled(r, p.Channels[k].Entries)
			}
		}
	}
	return other
}

// TestTheOrderOfTheInputDoesNotMatter has cases of OLM.
//
// OLM's cases: the first alternative, whatever its name; only dependencies have an order.
func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		want := resolution.Resolve(n.input())
		r := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		other := shuffledNamespace(r, n)
		if diff := cmp.Diff(want, resolution.Resolve(other.input())); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestConcurrentCallsDoNotModifyTheInput has a case of OLM.
//
// OLM's case: content in parallel, stale, and gone.
func TestConcurrentCallsDoNotModifyTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		before, err := json.Marshal([]any{in.Subscriptions, in.CSVs, in.OperatorGroups})
		if err != nil {
			t.Fatal(err)
		}
		want := resolution.Resolve(in)
		var all sync.WaitGroup
		results := make([]resolution.Result, 4)
		for i := range results {
			all.Go(func() { results[i] = resolution.Resolve(in) })
		}
		all.Wait()
		for _, got := range results {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-first +again):\n%s", diff)
			}
		}
		after, _ := json.Marshal([]any{in.Subscriptions, in.CSVs, in.OperatorGroups})
		if string(before) != string(after) {
			t.Fatal("the input changed")
		}
	})
}

func TestSelectionSatisfiesEveryConstraint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		res := resolution.Resolve(in)
		if err := sound(in, res); err != nil {
			t.Fatal(err)
		}
	})
}

// sound checks a result against its input without knowing how it came about.
func sound(in resolution.Input, res resolution.Result) error {
	packages, kinds := map[string]string{}, map[string]string{}
	kept := map[string]bool{}
	left, failed := map[string]bool{}, map[string]bool{}
	for i, target := range res.Targets {
		if res.Decisions[i].Failure != nil {
			failed[target.Current] = true // stays as it is, for better or worse
		}
		if target.Current != "" && target.Current != target.Target {
			left[target.Current] = true
		}
	}
	var all []*oracleEntry
	for _, c := range in.CSVs {
		if left[c.Name] {
			continue
		}
		var list struct{ Properties []olmcore.Property }
		if err := json.Unmarshal([]byte(c.Annotations["operatorframework.io/properties"]), &list); err != nil {
			return err
		}
		kept[c.Name] = true
		all = append(all, oracleEntryOf(c.Name, list.Properties))
	}
	for i, op := range res.Operators {
		if kept[op.Name] || slices.ContainsFunc(res.Operators[:i], func(other olmcore.Operator) bool { return other.Name == op.Name }) {
			return fmt.Errorf("%s is installed beside itself", op.Name)
		}
		e := oracleEntryOf(op.Name, op.Bundle.Properties)
		if e.deprecated {
			return fmt.Errorf("%s is deprecated", op.Name)
		}
		if (len(op.For) == 0) != slices.ContainsFunc(res.Generated, func(s *v1alpha1.Subscription) bool { return s.Spec.StartingCSV == op.Name }) {
			return fmt.Errorf("%s: for %v, generated %d", op.Name, op.For, len(res.Generated))
		}
		all = append(all, e)
	}
	if res.Failure != nil {
		if len(res.Operators) > 0 {
			return fmt.Errorf("operators beside a failure of the namespace")
		}
		return nil
	}
	for _, e := range all {
		if other, twice := packages[e.pkg]; twice && !(kept[e.name] && kept[other] && (failed[e.name] || failed[other])) {
			return fmt.Errorf("%s and %s are of package %s", other, e.name, e.pkg)
		}
		packages[e.pkg] = e.name
		for _, k := range e.provides {
			if other, twice := kinds[k]; twice && other != e.name && !(kept[e.name] && kept[other] && (failed[e.name] || failed[other])) {
				return fmt.Errorf("%s and %s provide %s", other, e.name, k)
			}
			kinds[k] = e.name
		}
		for _, q := range e.requires {
			if !failed[e.name] && !slices.ContainsFunc(all, q) {
				return fmt.Errorf("a requirement of %s is not met", e.name)
			}
		}
	}
	return nil
}

func TestApplyingResultsConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		w := &walk{n.input()}
		left := map[string]bool{} // what a Subscription has moved away from
		for range 20 {
			res := resolution.Resolve(w.in)
			for _, target := range res.Targets {
				if left[target.Subscription+" "+target.Target] && target.Target != "" {
					t.Fatalf("%s goes back to %s", target.Subscription, target.Target)
				}
				if target.Current != "" && target.Current != target.Target {
					left[target.Subscription+" "+target.Current] = true
				}
			}
			quiet := len(res.Operators) == 0 && len(res.Generated) == 0 && !slices.ContainsFunc(res.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Changed })
			if (res.Outcome == resolution.Unchanged || res.Failure != nil || len(res.Cores) > 0) != quiet && res.Outcome != resolution.Resolved {
				t.Fatalf("%s with %d operators", res.Outcome, len(res.Operators))
			}
			if quiet {
				return
			}
			w.apply(t, res)
		}
		t.Fatal("it never comes to rest")
	})
}

func TestCoresAreMinimalAndExplainTheirSubscriptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		in.Policy.AllOrNothing = true
		res := resolution.Resolve(in)
		if res.Failure == nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range res.Cores {
			if !c.Minimal || c.Summary == "" || !strings.HasPrefix(c.Message, "constraints not satisfiable: ") {
				t.Fatalf("core %+v", c)
			}
			for _, s := range c.Subscriptions {
				if seen[s] {
					t.Fatalf("Subscription %s is in two cores", s)
				}
				seen[s] = true
				if !strings.Contains(c.Message, "subscription "+s+" exists") {
					t.Fatalf("%q does not mention %s", c.Message, s)
				}
			}
		}
		// The Subscriptions of a core have no solution without the others, nor with any one of them left out do they
		// need to fail.
		for i, c := range res.Cores {
			if i > 0 || len(c.Subscriptions) == 0 {
				break // later cores count on what the earlier ones leave behind
			}
			only := func(names []string) resolution.Result {
				part := in
				part.Subscriptions = slices.DeleteFunc(slices.Clone(in.Subscriptions), func(s *v1alpha1.Subscription) bool {
					return !slices.Contains(names, s.Name) && s.Status.InstalledCSV == ""
				})
				return resolution.Resolve(part)
			}
			if only(c.Subscriptions).Failure == nil {
				t.Fatalf("the Subscriptions %v have a solution by themselves: %s", c.Subscriptions, c.Message)
			}
		}
	})
}

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		res := resolution.Resolve(in)
		failed := map[string]bool{}
		for _, c := range res.Cores {
			for _, s := range c.Subscriptions {
				failed[s] = true
			}
		}
		for _, d := range res.Decisions {
			if (d.Failure != nil) != failed[d.Name] {
				t.Fatalf("%s: failure %v, in a core: %v", d.Name, d.Failure, failed[d.Name])
			}
			if failed[d.Name] && d.Changed {
				t.Fatalf("%s failed and changes", d.Name)
			}
		}
		for _, target := range res.Targets {
			if failed[target.Subscription] && target.Current != target.Target {
				t.Fatalf("%s failed and moves", target.Subscription)
			}
		}
	})
}

func TestHeldBackContainsExactlyTheSubscriptionsWithoutTheirBestBundle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		res := resolution.Resolve(in)
		if res.Failure != nil {
			return
		}
		o := newOracle(n, false)
		for _, s := range o.subs {
			name := s.object.Name
			i := slices.IndexFunc(res.Targets, func(x resolution.Target) bool { return x.Subscription == name })
			h := slices.IndexFunc(res.HeldBack, func(h resolution.HeldBack) bool { return h.Subscription == name })
			failed := slices.ContainsFunc(res.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Name == name && d.Failure != nil })
			if failed {
				if h >= 0 {
					t.Fatalf("%s failed and is held back", name)
				}
				continue
			}
			less := res.Targets[i].Target != s.candidates[0].name
			if less && h < 0 {
				t.Fatalf("%s gets %s instead of %s, and nothing says why", name, res.Targets[i].Target, s.candidates[0].name)
			}
			if h >= 0 && (res.HeldBack[h].Summary == "" || res.HeldBack[h].Code == resolution.Unknown) {
				t.Fatalf("%+v", res.HeldBack[h])
			}
		}
	})
}

func TestUnrelatedContentChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		want := resolution.Resolve(n.input())
		for i := range n.catalogs {
			for _, p := range slices.Clone(n.catalogs[i].packages) {
				n.catalogs[i].packages = append(n.catalogs[i].packages, unrelated(p))
			}
		}
		// A constraint with "not" looks at everything; the generator only has it beside a part that the others do not
		// satisfy.
		if diff := cmp.Diff(want, resolution.Resolve(n.input())); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestHiddenGlobalCatalogsHaveNoEffect has a case of OLM.
//
// OLM's case: hiding global catalogs makes a broken one harmless.
func TestHiddenGlobalCatalogsHaveNoEffect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		hidden := n.input()
		hidden.OperatorGroups = []*operatorsv1.OperatorGroup{oneGroup("ns")[0].DeepCopy()}
		hidden.OperatorGroups[0].Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
		gone := n.input()
		gone.Catalogs = slices.DeleteFunc(gone.Catalogs, func(c resolution.CatalogState) bool { return c.Key.Namespace == "global" })
		if diff := cmp.Diff(resolution.Resolve(gone), resolution.Resolve(hidden)); diff != "" {
			t.Fatalf("(-gone +hidden):\n%s", diff)
		}
	})
}

func TestStepsStayInTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		in.Policy.MaxSteps = rapid.IntRange(1, 12).Draw(t, "budget")
		res := resolution.Resolve(in)
		if res.Stats.Steps > (20+len(in.Subscriptions))*in.Policy.MaxSteps {
			t.Fatalf("%d steps", res.Stats.Steps)
		}
		if res.Outcome == resolution.Failed && res.Failure.Message != fmt.Sprintf("resolution stopped after %d steps", in.Policy.MaxSteps) {
			t.Fatalf("message %q", res.Failure.Message)
		}
		if diff := cmp.Diff(res, resolution.Resolve(in)); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}
