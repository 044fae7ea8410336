// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// anySweepInput returns a namespace with up to twelve plans in any state. Subscriptions may own or reference them.
func anySweepInput(t *rapid.T) sweep.Input {
	var objects []olmcore.Object
	var subs []*v1alpha1.Subscription
	for _, name := range []string{"a", "b"} {
		if !Maybe(t, "has "+name) {
			continue
		}
		s := Subscription(name)
		if Maybe(t, "refers") {
			RefersTo(fmt.Sprintf("install-%d", rapid.IntRange(1, 13).Draw(t, "plan")))(s)
			s.Status.LastUpdated = *Ago(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "updated"))
		} else if Maybe(t, "generated") {
			Generated(fmt.Sprintf("install-%d", rapid.IntRange(1, 13).Draw(t, "by")))(s)
		}
		subs = append(subs, s)
		objects = append(objects, s)
	}
	phases := []v1alpha1.InstallPlanPhase{None, RequiresApproval, Installing, Complete, Complete, Complete, Failed}
	for i := 1; i <= rapid.IntRange(0, 12).Draw(t, "plans"); i++ {
		p := Numbered(i, rapid.SampledFrom(phases).Draw(t, "phase"))
		if p.Status.Phase == None {
			WithoutSteps(p)
		}
		for _, s := range subs {
			if Maybe(t, "owns") {
				Owned(p, s)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "going") == 0 {
			gone(p)
		}
		if rapid.IntRange(0, 4).Draw(t, "young") == 0 {
			p.CreationTimestamp = *Ago(time.Minute)
		}
		objects = append(objects, p)
	}
	return SweepInput(objects...)
}

func TestConvergedNamespaceHasNoActions(t *testing.T) {
	in := SweepInput(history(5, Subscription("a"))...)
	in.InstallPlans.Items[4].Status.Plan = append(in.InstallPlans.Items[4].Status.Plan, RoleStep("a.v1", "r"), CRDStep("a.v1", "v1"))
	in.Steps = []sweep.StepObjects{{InstallPlan: "uid-install-5", Objects: []olmcore.Object{
		CSV("a.v1"), Installed(CRDObject("v1"), true), &rbacv1.Role{ObjectMeta: Meta("r")},
	}}}
	for _, p := range in.InstallPlans.Items {
		p.Annotations = map[string]string{"olmcore/content-hash": p.Name, "olmcore/packages": "a", "olmcore/contributors": "uid-a"}
	}
	in.Lookups = []v1alpha1.BundleLookup{Lookup(t)}
	require.True(t, Swept(t, in).Empty())
	out, err := sweep.Reconcile(in)
	require.NoError(t, err)
	require.NotNil(t, out.Checkpoint)
	require.NoError(t, invariant.CheckpointSound(sweep.Reconcile, in))
	// Only the path and the CatalogSource of a lookup matter.
	require.NoError(t, invariant.CheckpointCovers(sweep.Reconcile, in, "Lookups: entry 0: Identifier", "Lookups: entry 0: Replaces",
		"Lookups: entry 0: Properties", "Lookups: entry 0: Conditions"))
	in.Checkpoint = out.Checkpoint
	require.Zero(t, testing.AllocsPerRun(100, func() { out, _ = sweep.Reconcile(in) }), "a call with its Checkpoint allocates nothing")
	require.True(t, Swept(t, SweepInput()).Empty())
}

// TestSweepIsSafe checks the laws of reconcile functions, and that sweeping ends. It deletes at most five plans in a
// call, and no plan that is unfinished, referenced or recent.
//
// OLM's case: old plans go until five are left.
func TestSweepIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anySweepInput(t)
		require.NoError(t, invariant.Laws(SweepResult, in))
		require.NoError(t, invariant.CheckpointSound(sweep.Reconcile, in))
		for round := 0; ; round++ {
			require.Less(t, round, 6, "sweeping ends")
			result := Swept(t, in)
			deleted := 0
			for _, a := range result.Actions {
				verb, target, _ := a.Describe()
				if verb != olmcore.VerbDelete {
					before, after := a.(olmcore.Update).Before, a.(olmcore.Update).After
					for _, ref := range before.GetOwnerReferences() {
						require.True(t, olmcore.OwnedBy(after, ref.UID), "no owner is dropped")
					}
					continue
				}
				deleted++
				newer := 0
				var p *v1alpha1.InstallPlan
				for _, other := range in.InstallPlans.Items {
					if other.Name == target.Name {
						p = other
					}
				}
				for _, other := range in.InstallPlans.Items {
					if other.Spec.Generation > p.Spec.Generation {
						newer++
					}
				}
				for _, s := range in.Subscriptions.Items {
					require.False(t, s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.Name == p.Name)
				}
				if len(p.Status.Plan) > 0 {
					require.Contains(t, []v1alpha1.InstallPlanPhase{Complete, Failed}, p.Status.Phase)
					require.GreaterOrEqual(t, newer, 5)
				}
				require.NotEmpty(t, target.UID)
				require.NotEmpty(t, target.ResourceVersion)
			}
			require.LessOrEqual(t, deleted, 5)
			if len(result.Actions) == 0 {
				break
			}
			apply(&in, result)
		}
	})
}

func TestInputErrors(t *testing.T) {
	for field, change := range map[string]func(*sweep.Input){
		"Now":                    func(in *sweep.Input) { in.Now = time.Time{} },
		"Namespace":              func(in *sweep.Input) { in.Namespace = "" },
		"Namespaces":             func(in *sweep.Input) { in.Namespaces = olmcore.Found(&corev1.Namespace{ObjectMeta: ClusterMeta("x")}) },
		"Config.MaxInstallPlans": func(in *sweep.Input) { in.Config.MaxInstallPlans = -1 },
		"InstallPlans":           func(in *sweep.Input) { in.InstallPlans = olmcore.Observed[*v1alpha1.InstallPlan]{} },
		"InstallPlans[0]":        func(in *sweep.Input) { in.InstallPlans = olmcore.Found(Numbered(1, Complete, InNamespace("x"))) },
		"ConfigMaps[0]":          func(in *sweep.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](nil) },
		"OtherPlans": func(in *sweep.Input) {
			in.OtherPlans = olmcore.Observed[*v1alpha1.InstallPlan]{Items: []*v1alpha1.InstallPlan{Plan(Complete, nil)}}
		},
		"Steps[0].Objects[0]": func(in *sweep.Input) { in.Steps = []sweep.StepObjects{{Objects: []olmcore.Object{nil}}} },
		"Subscriptions[1]":    func(in *sweep.Input) { in.Subscriptions = olmcore.Found(Subscription("a"), Subscription("a")) },
	} {
		in := SweepInput()
		change(&in)
		_, err := sweep.Reconcile(in)
		var problem *olmcore.InputError
		require.ErrorAs(t, err, &problem, field)
		require.Contains(t, problem.Field, field)
	}
}

// FuzzLaws runs the laws of TestSweepIsSafe with inputs of the fuzzer.
func FuzzLaws(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		if err := invariant.Laws(SweepResult, anySweepInput(t)); err != nil {
			t.Fatal(err)
		}
	}))
}

func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{5, 100, 10_000} {
		in := SweepInput(history(n, Subscription("a"))...)
		b.Run(fmt.Sprintf("plans=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = sweep.Reconcile(in)
			}
		})
		if n > 5 {
			continue // there is something to do
		}
		b.Run(fmt.Sprintf("plans=%d with its Checkpoint", n), func(b *testing.B) {
			out, err := sweep.Reconcile(in)
			require.NoError(b, err)
			in.Checkpoint = out.Checkpoint
			b.ReportAllocs()
			for b.Loop() {
				_, _ = sweep.Reconcile(in)
			}
		})
	}
}

// BenchmarkReconcileCrowded reconciles a namespace in which each plan has its own Subscription.
func BenchmarkReconcileCrowded(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("plans=%d", n), func(b *testing.B) {
			var objects []olmcore.Object
			for i := range n {
				s := Subscription(fmt.Sprint("s", i), RefersTo(fmt.Sprint("install-", i)))
				p := Plan(Complete, []*v1alpha1.Step{CSVStep(fmt.Sprint("s", i, ".v1"))}, OwnedBy(s))
				p.Name, p.UID, p.Spec.Generation = fmt.Sprint("install-", i), types.UID(fmt.Sprint("uid-install-", i)), i+1
				objects = append(objects, s, p)
			}
			in := SweepInput(objects...)
			for b.Loop() {
				_, _ = SweepResult(in)
			}
		})
	}
}

func ExampleReconcile() {
	sub := Subscription("a")
	in := SweepInput(history(6, sub)...)
	in.InstallPlans.Items[5].OwnerReferences = nil
	result, err := SweepResult(in)
	if err != nil {
		panic(err)
	}
	for _, d := range result.Diagnostics {
		fmt.Printf("%s %s: %s\n", d.Severity, d.Reason, d.Message)
	}
	for _, line := range Describe(result) {
		fmt.Println(line)
	}
	// Output:
	// Warning OwnerReferenceMissing: Subscription a references the plan and does not own it
	// Warning PlanWithoutOwner: no Subscription owns the plan
	// delete InstallPlan ops/install-1 (PlanHistory)
	// update InstallPlan ops/install-6 (RelationRepaired)
}
