// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// convergedInput returns a converged namespace of n Subscriptions, with the five plans that OLM keeps. All
// Subscriptions own each plan, as in OLM.
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
	in.InstallPlans.Items = nil
	for _, o := range snapshot.Objects() {
		if p, ok := o.(*v1alpha1.InstallPlan); ok {
			in.InstallPlans.Items = append(in.InstallPlans.Items, p)
		}
	}
	return answered(in)
}

// withCatalogs adds four healthy catalogs, as recorded.
func withCatalogs(in subscription.Input) subscription.Input {
	var list []*v1alpha1.CatalogSource
	for _, name := range []string{"a", "b", "c", "cool"} {
		list = append(list, newCatalog("olm", name, true))
	}
	in.Catalogs = sources(list...)
	for _, s := range in.Subscriptions.Items {
		records(list...)(s)
		saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)(s)
	}
	return in
}

// sizes contains the numbers of Subscriptions that are measured.
var sizes = []int{1, 10, 100, 1000}

// full is a namespace at rest with four catalogs, histories and an answer.
func full(t require.TestingT, n int) subscription.Input {
	in := withCatalogs(convergedInput(n))
	in.Histories = map[types.UID]subscription.History{}
	in.Histories = reconcile(t, in).Histories
	return in
}

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	waiting := inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1)))
	for name, in := range map[string]subscription.Input{
		"no Subscription": inputOf(), "waiting for a plan": answered(waiting), "waiting, no answer": waiting,
		"ten": full(t, 10), "a thousand": full(t, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, in)
			require.NotNil(t, out.Checkpoint)
			require.Equal(t, subscription.Outcome{Checkpoint: out.Checkpoint}, out)
			if len(in.Subscriptions.Items) <= 10 {
				require.NoError(t, invariant.Laws(result, in)) // in any order of its lists
			}
			in.Checkpoint = out.Checkpoint
			require.Equal(t, out, reconcile(t, in))
			require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = subscription.Reconcile(in) }))
		})
	}
}

// TestCheckpointIsInvalidOnceTheResultWouldChange checks that a Checkpoint is invalid after every change of the
// Input that changes the Outcome.
func TestCheckpointIsInvalidOnceTheResultWouldChange(t *testing.T) {
	in := full(t, 2)
	in.Catalogs.Probes = map[types.NamespacedName]subscription.Probe{{Namespace: "olm", Name: "a"}: {Healthy: true}}
	in.Catalogs.Entries = []subscription.Entry{entryOf("package-0000.v1.2.3", nil, nil, nil)}
	in.PreviousPackages = map[types.UID][]string{"subscription-0000-uid": {"former"}}
	in.Resolution.At, in.Resolution.Unpacking = now, &subscription.Unpacking{Lookups: []v1alpha1.BundleLookup{{Path: "x"}}}
	in.Components = []olmcore.Object{&corev1.ServiceAccount{ObjectMeta: meta("sa")}}
	require.NotNil(t, reconcile(t, in).Checkpoint)
	require.NoError(t, invariant.CheckpointSound(subscription.Reconcile, in))
	require.NoError(t, invariant.CheckpointCovers(subscription.Reconcile, in, "Resolution: Resolution: Generated")) // that is InstallPlans' to read
	in.SeparatePlans = true
	in.Resolution.Parts = []subscription.Part{{Subscriptions: []string{"subscription-0000"}, PlanProgress: in.Resolution.PlanProgress}}
	require.NotNil(t, reconcile(t, in).Checkpoint)
	require.NoError(t, invariant.CheckpointSound(subscription.Reconcile, in))
	require.NoError(t, invariant.CheckpointCovers(subscription.Reconcile, in, "Resolution: Resolution: Generated"))
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		for range 3 { // nearer to rest
			carryOut(&in, reconcile(t, in))
		}
		require.NoError(t, invariant.CheckpointSound(subscription.Reconcile, in))
	})
}

// measure reports the cost with and without the Checkpoint.
func measure(b *testing.B, n int, in subscription.Input) {
	for name, checkpoint := range map[string]*olmcore.Checkpoint{"plain": nil, "checkpoint": reconcile(b, in).Checkpoint} {
		if name == "checkpoint" && checkpoint == nil {
			continue
		}
		b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
			in.Checkpoint = checkpoint
			b.ReportAllocs()
			for b.Loop() {
				_, _ = subscription.Reconcile(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subscription")
		})
	}
}

// BenchmarkAtRest measures a converged namespace with four catalogs, histories and an answer.
func BenchmarkAtRest(b *testing.B) {
	for _, n := range sizes {
		measure(b, n, full(b, n))
	}
}

// BenchmarkManyPlans measures a namespace with a separate plan for each Subscription.
func BenchmarkManyPlans(b *testing.B) { measure(b, 300, convergedWith(300, 300)) }

// BenchmarkOneChange measures a namespace with four catalogs in which one plan entered another stage.
func BenchmarkOneChange(b *testing.B) {
	for _, n := range sizes {
		in := withCatalogs(convergedInput(n))
		pending("Installing", 6)(in.Subscriptions.Items[n/2])
		measure(b, n, in)
	}
}

// BenchmarkForgottenVersions measures a namespace whose plans were deleted and whose Subscriptions all lost
// status.currentCSV.
func BenchmarkForgottenVersions(b *testing.B) {
	for _, n := range []int{1000, 8000} {
		in := convergedInput(n)
		in.InstallPlans = olmcore.Found[*v1alpha1.InstallPlan]()
		for _, s := range in.Subscriptions.Items {
			s.Status.CurrentCSV, s.Status.InstallPlanRef = "", nil
		}
		measure(b, n, in)
	}
}
