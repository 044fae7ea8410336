// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// convergedInput is a namespace of n Subscriptions that have all they want, with
// the five plans that OLM keeps, each owned by all Subscriptions as OLM makes it.
func convergedInput(n int) subscription.Input { return convergedWith(n, 5) }

func convergedWith(n, plans int) subscription.Input {
	var subs []*v1alpha1.Subscription
	for i := range n {
		subs = append(subs, newSub(fmt.Sprintf("subscription-%04d", i), func(s *v1alpha1.Subscription) {
			s.Spec.Package = fmt.Sprintf("package-%04d", i)
			s.Labels = map[string]string{"operators.coreos.com/" + s.Spec.Package + ".ops": ""}
		}))
	}
	var objects []olmcore.Object
	names := make([]string, min(n, plans))
	for i := range names {
		names[i] = "install-" + olmcore.NameSuffix(10, fmt.Sprint(i))
		p := newPlan(names[i], "Complete", started(3), done(9))
		p.OwnerReferences = nil
		for _, owner := range subs {
			p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(owner))
		}
		objects = append(objects, p)
	}
	for i, s := range subs {
		csv := fmt.Sprintf("package-%04d.v1.2.3", i)
		follows(names[i%len(names)], csv)(s)
		installed(s)
		objects = append(objects, s, newCSV(csv, func(c *v1alpha1.ClusterServiceVersion) { c.Labels = s.Labels }))
	}
	in := inputOf(objects...)
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in.InstallPlans = nil
	for _, o := range snapshot.Objects() {
		if p, ok := o.(*v1alpha1.InstallPlan); ok {
			in.InstallPlans = append(in.InstallPlans, p)
		}
	}
	return answered(in)
}

func TestAConvergedNamespaceCostsNoAllocation(t *testing.T) {
	for name, in := range map[string]subscription.Input{
		"no Subscription":     inputOf(),
		"one":                 convergedInput(1),
		"a hundred":           convergedInput(100),
		"a plan for each":     convergedWith(20, 20),
		"waiting for a plan":  answered(inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1)))),
		"waiting, no answer":  inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1))),
		"with a foreign word": answered(inputOf(newSub("a", follows("p", "etcd.v1"), installed, withCondition("Foreign", "X", "", 1)), newPlan("p", "Complete"), newCSV("etcd.v1"))),
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, in)
			require.True(t, out.Empty(), "%+v", out)
			require.Zero(t, out.RequeueAfter)
			require.Nil(t, out.Resolve)
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = subscription.Reconcile(in) }))

			in.Histories = map[types.UID]subscription.History{}
			for uid, h := range reconcile(t, in).Histories {
				in.Histories[uid] = h
			}
			require.Nil(t, reconcile(t, in).Histories)
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = subscription.Reconcile(in) }), "with memory")
		})
	}
}

func BenchmarkConverged(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := convergedInput(n)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subscription")
		})
	}
}

// withCatalogs adds four healthy catalogs, as recorded.
func withCatalogs(in subscription.Input) subscription.Input {
	var list []*v1alpha1.CatalogSource
	for _, name := range []string{"a", "b", "c", "cool"} {
		list = append(list, newCatalog("olm", name, true))
	}
	in.Catalogs = sources(list...)
	for _, s := range in.Subscriptions {
		records(list...)(s)
		saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)(s)
	}
	return in
}

// sizes are the namespaces that are measured.
var sizes = []int{1, 10, 100, 1000, 10000}

// TestCatalogsCostNoAllocation: with four catalogs, with and without memory, a
// namespace at rest of any size asks for nothing and allocates nothing.
func TestCatalogsCostNoAllocation(t *testing.T) {
	for _, n := range sizes {
		in := withCatalogs(convergedInput(n))
		for range 2 {
			require.True(t, reconcile(t, in).Empty())
			require.Zero(t, testing.AllocsPerRun(2, func() { _, _ = subscription.Reconcile(in) }), n)
			in.Histories = map[types.UID]subscription.History{}
			in.Histories = reconcile(t, in).Histories
		}
	}
}

func BenchmarkConvergedWithCatalogs(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := withCatalogs(convergedInput(n))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subscription")
		})
	}
}

// BenchmarkConvergedManyPlans has a plan of its own for each Subscription.
func BenchmarkConvergedManyPlans(b *testing.B) {
	in := convergedWith(300, 300)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = subscription.Reconcile(in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/subscription")
}

// BenchmarkConvergedWithHistory has four catalogs too.
func BenchmarkConvergedWithHistory(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := withCatalogs(convergedInput(n))
			in.Histories = map[types.UID]subscription.History{}
			in.Histories = reconcile(b, in).Histories
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subscription")
		})
	}
}

// BenchmarkOneChange is a namespace with four catalogs in which one plan moved on:
// its cost beyond BenchmarkConvergedWithCatalogs is that of the change.
func BenchmarkOneChange(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := withCatalogs(convergedInput(n))
			pending("Installing", 6)(in.Subscriptions[n/2])
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
		})
	}
}

// BenchmarkAudit is a namespace with four catalogs in which all is well but for the
// labels of its plans.
func BenchmarkAudit(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := withCatalogs(convergedInput(n))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Audit(in)
			}
		})
	}
}

// BenchmarkUnanswered is a converged namespace that asks to be resolved.
func BenchmarkUnanswered(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := convergedInput(n)
			in.Resolution = nil
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
		})
	}
}

// BenchmarkLabels is a namespace whose operators lost all their labels.
func BenchmarkLabels(b *testing.B) {
	in := convergedInput(100)
	for i := range in.Subscriptions {
		in.Subscriptions[i].Labels, in.ClusterServiceVersions[i].Labels = nil, nil
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = subscription.Reconcile(in)
	}
}
