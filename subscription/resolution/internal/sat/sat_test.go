// SPDX-License-Identifier: Apache-2.0

package sat_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/go-air/gini"
	"github.com/go-air/gini/z"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// instance is a random catalog of packages with one channel each, and a Subscription for some of them.
type instance struct {
	packages [][]version // oldest first
	follows  []int
}

// version provides at most one API and requires others. Few have a name that bundles of other packages may have, too.
type version struct {
	provides int // 0: none
	requires []int
	shared   int // 0: its name is its own
}

func (v version) name(pkg, index int) string {
	if v.shared > 0 {
		return fmt.Sprintf("shared%d.v%d", v.shared, index)
	}
	return fmt.Sprintf("p%d.v%d", pkg, index)
}

func random(r *rand.Rand) instance {
	packages := 4 + r.Intn(20)
	apis := 2 + r.Intn(packages)
	in := instance{packages: make([][]version, packages)}
	density := 1 + r.Intn(3)
	for p := range in.packages {
		for range 1 + r.Intn(6) {
			v := version{}
			if r.Intn(4) > 0 {
				v.provides = 1 + r.Intn(apis)
			}
			if r.Intn(5) == 0 {
				v.shared = 1 + r.Intn(3)
			}
			for range r.Intn(density + 1) {
				v.requires = append(v.requires, 1+r.Intn(apis))
			}
			in.packages[p] = append(in.packages[p], v)
		}
		if r.Intn(4) > 0 {
			in.follows = append(in.follows, p)
		}
	}
	return in
}

func property(kind string, value map[string]string) olmcore.Property {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return olmcore.Property{Type: kind, Value: text}
}

func api(n int) map[string]string {
	return map[string]string{"group": "g", "version": "v1", "kind": fmt.Sprintf("K%d", n)}
}

func (in *instance) input() resolution.Input {
	var packages []resolution.Package
	for p, versions := range in.packages {
		pkg := resolution.Package{Name: fmt.Sprintf("p%d", p), DefaultChannel: "c", Channels: []resolution.Channel{{Name: "c"}}}
		for i, v := range versions {
			b := resolution.Bundle{Name: v.name(p, i)}
			b.Properties = append(b.Properties, property(resolution.PropertyPackage, map[string]string{"packageName": pkg.Name, "version": fmt.Sprintf("1.0.%d", i)}))
			if v.provides > 0 {
				b.Properties = append(b.Properties, property(resolution.PropertyGVK, api(v.provides)))
			}
			for _, k := range v.requires {
				b.Properties = append(b.Properties, property(resolution.PropertyGVKRequired, api(k)))
			}
			e := resolution.ChannelEntry{Name: b.Name}
			if i > 0 {
				e.Replaces = versions[i-1].name(p, i-1)
			}
			pkg.Bundles = append(pkg.Bundles, b)
			pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, e)
		}
		packages = append(packages, pkg)
	}
	content, _ := resolution.Build(packages)
	out := resolution.Input{
		Namespace:      "ns",
		OperatorGroups: []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}},
		Catalogs:       []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "ns", Name: "cat"}, Content: content}},
		Policy:         resolution.Policy{AllOrNothing: true, OmitHeldBack: true},
	}
	for _, p := range in.follows {
		out.Subscriptions = append(out.Subscriptions, &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("s%d", p)},
			Spec:       &v1alpha1.SubscriptionSpec{Package: fmt.Sprintf("p%d", p), Channel: "c", CatalogSource: "cat", CatalogSourceNamespace: "ns"},
		})
	}
	return out
}

// pick is a version of a package.
type pick struct{ pkg, version int }

// satisfiable asks the SAT solver about the Subscriptions to some packages, when some versions are selected.
func (in *instance) satisfiable(follows []int, picks ...pick) bool {
	solver := gini.New()
	clause := func(literals ...z.Lit) {
		for _, m := range literals {
			solver.Add(m)
		}
		solver.Add(z.LitNull)
	}
	next := z.Var(1)
	vars := make([][]z.Lit, len(in.packages))
	providers, named := map[int][]z.Lit{}, map[string][]z.Lit{}
	for p, versions := range in.packages {
		for i, v := range versions {
			m := next.Pos()
			next++
			vars[p] = append(vars[p], m)
			named[v.name(p, i)] = append(named[v.name(p, i)], m)
			if v.provides > 0 {
				providers[v.provides] = append(providers[v.provides], m)
			}
		}
	}
	groups := slices.Clone(vars)
	for _, list := range providers {
		groups = append(groups, list)
	}
	for _, list := range named {
		groups = append(groups, list)
	}
	for _, group := range groups {
		for i := range group {
			for j := range i {
				clause(group[i].Not(), group[j].Not())
			}
		}
	}
	for p, versions := range in.packages {
		for i, v := range versions {
			for _, k := range v.requires {
				clause(append([]z.Lit{vars[p][i].Not()}, providers[k]...)...)
			}
		}
	}
	for _, p := range follows {
		clause(vars[p]...)
	}
	for _, p := range picks {
		clause(vars[p.pkg][p.version])
	}
	return solver.Solve() == 1
}

// requireFirst requires that no Subscription could have a newer version beside what the earlier ones have.
func requireFirst(t *testing.T, in *instance, res resolution.Result) {
	t.Helper()
	var picks []pick
	for _, target := range res.Targets { // they come by name, as the Subscriptions of equal age do
		var p int
		if _, err := fmt.Sscanf(target.Subscription, "s%d", &p); err != nil {
			t.Fatal(err)
		}
		for i := len(in.packages[p]) - 1; ; i-- {
			possible := in.satisfiable(in.follows, append(slices.Clip(picks), pick{p, i})...)
			if chosen := in.packages[p][i].name(p, i) == target.Target; chosen != possible {
				t.Fatalf("%s: %s is possible: %v, chosen: %v\n%+v", target.Subscription, in.packages[p][i].name(p, i), possible, chosen, in)
			} else if chosen {
				picks = append(picks, pick{p, i})
				break
			}
		}
	}
}

func TestSATSolverAgreesWithTheSearch(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	satisfiable, gaveUp := 0, 0
	const instances = 1500
	for n := range instances {
		in := random(r)
		res := resolution.Resolve(in.input())
		if res.Outcome == resolution.Failed {
			gaveUp++
			continue
		}
		want := in.satisfiable(in.follows)
		if want {
			satisfiable++
		}
		if got := res.Failure == nil; got != want {
			t.Fatalf("instance %d: satisfiable=%v, the SAT solver says %v\n%+v", n, got, want, in)
		}
		if want {
			requireFirst(t, &in, res)
			continue
		}
		// The Subscriptions of the first core contradict each other, and no fewer of them do.
		core := res.Cores[0]
		var follows []int
		for _, p := range in.follows {
			if slices.Contains(core.Subscriptions, fmt.Sprintf("s%d", p)) {
				follows = append(follows, p)
			}
		}
		if in.satisfiable(follows) {
			t.Fatalf("instance %d: the core of %v has a solution", n, core.Subscriptions)
		}
		for i := range follows {
			if core.Minimal && !in.satisfiable(slices.Delete(slices.Clone(follows), i, i+1)) {
				t.Fatalf("instance %d: the core of %v does not need %s", n, core.Subscriptions, core.Subscriptions[i])
			}
		}
	}
	t.Logf("%d instances: %d satisfiable, %d beyond the step budget", instances, satisfiable, gaveUp)
	if satisfiable < instances/20 || satisfiable > instances*19/20 || gaveUp > 0 {
		t.Error("the instances are too one-sided, or too many were given up")
	}
}
