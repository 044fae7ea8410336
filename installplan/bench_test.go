// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

var sink olmcore.Result

func configMapSteps(n int, status v1alpha1.StepStatus) []*v1alpha1.Step {
	steps := []*v1alpha1.Step{WithStatus(status, CSVStep("a.v1"))}
	for i := 1; i < n; i++ {
		name := fmt.Sprintf("c%d", i)
		steps = append(steps, WithStatus(status, Step("a.v1", "", "v1", "ConfigMap", name, `{"metadata":{"name":"`+name+`"},"data":{"a":"1"}}`)))
	}
	return steps
}

// converged returns a Complete plan with its Subscriptions, among many ClusterServiceVersions.
func converged(steps, csvs int) installplan.Input {
	a, b := Subscription("a", RefersTo("install-x")), Subscription("b")
	p := Plan(Complete, configMapSteps(steps, Created), OwnedBy(a, b), Started(time.Hour), func(p *v1alpha1.InstallPlan) {
		p.Annotations = map[string]string{"olmcore/contributors": "uid-a,uid-b", "olmcore/packages": "a,b"}
	})
	in := input(p, with(a, b))
	for i := range csvs {
		in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, CSV(fmt.Sprintf("v%d", i)))
	}
	return in
}

// TestConvergedPlanAllocatesNothing checks a call with the Checkpoint of an earlier call, for plans and namespaces of
// any size.
func TestConvergedPlanAllocatesNothing(t *testing.T) {
	for _, steps := range []int{1, 100, 1000} {
		in := converged(steps, 1000)
		in.Checkpoint = checkpointOf(t, in)
		require.True(t, reconcile(t, in).Empty())
		require.Zero(t, testing.AllocsPerRun(100, func() { sink, _ = reconcileResult(in) }))
	}
}

func checkpointOf(t testing.TB, in installplan.Input) *olmcore.Checkpoint {
	out, err := installplan.Reconcile(in)
	require.NoError(t, err)
	require.NotNil(t, out.Checkpoint)
	return out.Checkpoint
}

// sizes are the plans and namespaces that figures are given for.
func sizes(b *testing.B, run func(b *testing.B, steps, csvs int)) {
	for _, steps := range []int{1, 10, 100, 1000} {
		for _, csvs := range []int{0, 1000, 10_000} {
			b.Run(fmt.Sprintf("steps=%d/csvs=%d", steps, csvs), func(b *testing.B) {
				b.ReportAllocs()
				run(b, steps, csvs)
			})
		}
	}
}

func BenchmarkComplete(b *testing.B) {
	sizes(b, func(b *testing.B, steps, csvs int) {
		in := converged(steps, csvs)
		for b.Loop() {
			sink, _ = reconcileResult(in)
		}
	})
}

// BenchmarkCompleteCheckpoint does the same with the Checkpoint of the previous call.
func BenchmarkCompleteCheckpoint(b *testing.B) {
	sizes(b, func(b *testing.B, steps, csvs int) {
		in := converged(steps, csvs)
		in.Checkpoint = checkpointOf(b, in)
		for b.Loop() {
			sink, _ = reconcileResult(in)
		}
	})
}

// beside returns the Input of a plan in a namespace with many other versions, as Gather reads it.
func beside(b *testing.B, csvs int, p *v1alpha1.InstallPlan, objects ...olmcore.Object) installplan.Input {
	objects = append(objects, p, Group(), CSV("a.v1"))
	for i := range csvs {
		objects = append(objects, CSV(fmt.Sprintf("v%d", i)))
	}
	s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(b, err)
	in, err := installplan.Gather(b.Context(), s, key, installplan.Config{})
	require.NoError(b, err)
	in.Now = Noon
	return in
}

// BenchmarkInstalling reconciles a plan whose objects all exist.
func BenchmarkInstalling(b *testing.B) {
	sizes(b, func(b *testing.B, steps, csvs int) {
		fresh := input(Plan(Installing, configMapSteps(steps, Unknown), Started(time.Second)), with(CSV("a.v1")))
		var objects []olmcore.Object
		for _, a := range reconcile(b, fresh).Actions {
			if c, ok := a.(olmcore.Create); ok {
				objects = append(objects, seen(c.Object))
			}
		}
		in := beside(b, csvs, Plan(Installing, configMapSteps(steps, Created), Started(time.Second)), objects...)
		if got := statusOf(in, reconcile(b, in)).Phase; got != Complete {
			b.Fatal(got)
		}
		for b.Loop() {
			sink, _ = reconcileResult(in)
		}
	})
}

// BenchmarkFirstPass reconciles a plan whose objects do not exist yet.
func BenchmarkFirstPass(b *testing.B) {
	sizes(b, func(b *testing.B, steps, csvs int) {
		in := beside(b, csvs, Plan(Installing, configMapSteps(steps, Unknown), Started(time.Second)))
		for b.Loop() {
			sink, _ = reconcileResult(in)
		}
	})
}

// BenchmarkRequiresApproval reconciles a plan that waits for approval.
func BenchmarkRequiresApproval(b *testing.B) {
	in := input(Plan(RequiresApproval, configMapSteps(100, Unknown), func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }))
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = reconcileResult(in)
	}
}

// BenchmarkBesideManyVersions gathers and reconciles a plan with one step in a namespace with many other versions.
func BenchmarkBesideManyVersions(b *testing.B) {
	for _, csvs := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprintf("csvs=%d", csvs), func(b *testing.B) {
			objects := []olmcore.Object{Plan(Installing, configMapSteps(1, Unknown), Started(time.Second)), Group()}
			for i := range csvs {
				objects = append(objects, CSV(fmt.Sprintf("v%d", i)))
			}
			s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				in, err := installplan.Gather(b.Context(), s, key, installplan.Config{})
				if err != nil {
					b.Fatal(err)
				}
				in.Now = Noon
				sink, _ = reconcileResult(in)
			}
		})
	}
}
