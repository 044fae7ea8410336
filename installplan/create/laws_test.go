// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/internal/realdata"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// anyCreateInput returns an Input of Plan with a resolution that may be stale, and plans that may be those of the
// resolution.
func anyCreateInput(t *rapid.T) create.Input {
	var subs []*v1alpha1.Subscription
	for _, name := range []string{"a", "b"} {
		if Maybe(t, "has subscription") {
			subs = append(subs, AnySubscription(t, name))
		}
	}
	var operators []olmcore.Operator
	for _, name := range []string{"a", "b"} {
		if Maybe(t, "has operator") {
			operators = append(operators, Operator(name))
		}
	}
	in := create.Input{Now: Noon, Namespace: NS, Subscriptions: olmcore.Found(subs...)}
	for _, s := range subs {
		if s.Spec == nil {
			return in
		}
	}
	in.Resolution = Installs(operators...)(subs)
	out, err := create.Plan(Completed(in))
	if err != nil || len(out.Actions) == 0 || Maybe(t, "no plan") {
		return in
	}
	p := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion, p.CreationTimestamp = "uid-plan", "1", *Ago(time.Minute)
	p.Status.Phase = rapid.SampledFrom([]v1alpha1.InstallPlanPhase{None, None, RequiresApproval, Installing, Complete, Failed}).Draw(t, "phase")
	if p.Status.Phase != None {
		p.Status.Plan = []*v1alpha1.Step{CSVStep("a.v1")}
	}
	if Maybe(t, "lost owners") {
		p.OwnerReferences = nil
	}
	in.InstallPlans.Items = append(in.InstallPlans.Items, p)
	if Maybe(t, "referred to") {
		in.Subscriptions = olmcore.Found(Referring(subs, p)...)
	}
	if Maybe(t, "resolved again") {
		in.Resolution = Installs(operators...)(in.Subscriptions.Items)
	}
	if Maybe(t, "other plan") {
		in.InstallPlans.Items = append(in.InstallPlans.Items, Plan(Complete, nil, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 7 }))
	}
	return in
}

// anySetInput returns the Input for one set of such a resolution.
func anySetInput(t *rapid.T) create.Input {
	in := anyCreateInput(t)
	if sets := create.Sets(in.Resolution); len(sets) > 0 {
		set := rapid.SampledFrom(sets).Draw(t, "set")
		in.Resolution, in.Owners = set.Resolution, set.Subscriptions
	}
	return in
}

func createLaws(t *rapid.T) {
	in := anyCreateInput(t)
	if err := invariant.Laws(createResult, in); err != nil {
		t.Fatal(err)
	}
}

// TestLawsOfSets checks the laws for plans that are created for one set of Subscriptions.
func TestLawsOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := invariant.Laws(createResult, anySetInput(t)); err != nil {
			t.Fatal(err)
		}
	})
}

func createResult(in create.Input) (olmcore.Result, error) {
	out, err := create.Plan(Completed(in))
	return out.Result, err
}

func TestLaws(t *testing.T) { rapid.Check(t, createLaws) }

// TestNewPlansAreOwnedLabelledAndNumbered checks that generations increase, that Subscriptions own the plans that are
// created for them, and that the approval follows the Subscriptions.
func TestNewPlansAreOwnedLabelledAndNumbered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyCreateInput(t)
		out, err := create.Plan(Completed(in))
		require.NoError(t, err)
		for _, a := range out.Actions {
			c, ok := a.(olmcore.Create)
			if !ok {
				continue
			}
			p := c.Object.(*v1alpha1.InstallPlan)
			manual := false
			for _, s := range in.Subscriptions.Items {
				require.Less(t, s.Status.InstallPlanGeneration, p.Spec.Generation)
				manual = manual || s.DeletionTimestamp == nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
				if s.UID != "" {
					require.True(t, olmcore.OwnedBy(p, s.UID))
				}
			}
			for _, other := range in.InstallPlans.Items {
				require.Less(t, other.Spec.Generation, p.Spec.Generation)
				require.NotEqual(t, other.Name, p.Name)
			}
			require.Equal(t, manual, p.Spec.Approval == v1alpha1.ApprovalManual)
			require.Equal(t, !manual, p.Spec.Approved)
			require.NotNil(t, p.Spec.ClusterServiceVersionNames)
		}
		for _, a := range out.Actions {
			if u, ok := a.(olmcore.Update); ok {
				for _, ref := range u.Before.GetOwnerReferences() {
					require.True(t, olmcore.OwnedBy(u.After, ref.UID), "no owner is dropped")
				}
			}
		}
	})
}

// FuzzLaws runs TestLaws with inputs of the fuzzer.
func FuzzLaws(f *testing.F) { f.Fuzz(rapid.MakeFuzz(createLaws)) }

// BenchmarkPlan creates the plan of the published bundle with the most objects.
func BenchmarkPlan(b *testing.B) {
	var largest realdata.Bundle
	for _, bundle := range realdata.Bundles(b) {
		if len(bundle.Objects) > len(largest.Objects) {
			largest = bundle
		}
	}
	subs := []*v1alpha1.Subscription{Subscription("sub", func(s *v1alpha1.Subscription) { s.Spec.Package = largest.Operator })}
	in := CreateInput(subs, PublishedOperator(largest))
	in.Config.MaxStatusBytes = 4 << 20
	require.Len(b, Planned(b, in).Actions, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = create.Plan(Completed(in))
	}
}
