// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// setsText returns the Subscriptions, operators and generated Subscriptions of each set as text.
func setsText(sets []create.Set) (lines []string) {
	for _, s := range sets {
		var operators, generated []string
		for _, o := range s.Resolution.Operators {
			operators = append(operators, o.Name)
		}
		for _, g := range s.Resolution.Generated {
			generated = append(generated, g.Name)
		}
		lines = append(lines, fmt.Sprint(s.Subscriptions, operators, generated))
	}
	return lines
}

func TestSetsContainDependentSubscriptions(t *testing.T) {
	observed := func(name, current, installed string) olmcore.SubscriptionFingerprint {
		return olmcore.SubscriptionFingerprint{Name: name, CurrentCSV: current, InstalledCSV: installed}
	}
	generated := func(csv string) *v1alpha1.Subscription {
		return Subscription("for-"+csv, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = csv })
	}
	of := func(name string, subscriptions ...string) olmcore.Operator {
		return olmcore.Operator{Name: name, For: subscriptions}
	}
	by := func(name string, versions ...string) olmcore.Operator {
		return olmcore.Operator{Name: name, RequiredBy: versions}
	}
	for name, tt := range map[string]struct {
		r    olmcore.Resolution
		want []string
	}{
		"an empty resolution": {},
		"a failed resolution": {r: olmcore.Resolution{
			Operators: []olmcore.Operator{of("a1", "a")}, Failure: &olmcore.ResolutionFailure{},
		}},
		"unrelated Subscriptions": {
			olmcore.Resolution{Operators: []olmcore.Operator{of("a1", "a"), of("b1", "b")}}, []string{"[a] [a1] []", "[b] [b1] []"},
		},
		"a Subscription with nothing to install": {
			olmcore.Resolution{
				Observed:  []olmcore.SubscriptionFingerprint{observed("a", "", ""), observed("b", "b1", "b1")},
				Operators: []olmcore.Operator{of("a1", "a")},
			}, []string{"[a] [a1] []"},
		},
		"one requires another": {
			olmcore.Resolution{Operators: []olmcore.Operator{of("a1", "a"), {Name: "b1", For: []string{"b"}, RequiredBy: []string{"a1"}}}},
			[]string{"[a b] [a1 b1] []"},
		},
		"both require a third": {
			olmcore.Resolution{
				Operators: []olmcore.Operator{of("a1", "a"), of("b1", "b"), by("c1", "a1", "b1"), of("d1", "d")},
				Generated: []*v1alpha1.Subscription{generated("c1")},
			}, []string{"[a b] [a1 b1 c1] [for-c1]", "[d] [d1] []"},
		},
		"an installed version requires both": {
			olmcore.Resolution{
				Observed: []olmcore.SubscriptionFingerprint{observed("a", "a1", "a1"), observed("b", "b1", "b1"), observed("c", "c1", "c1")},
				Operators: []olmcore.Operator{
					{Name: "b2", For: []string{"b"}, RequiredBy: []string{"a1"}}, {Name: "c2", For: []string{"c"}, RequiredBy: []string{"a1"}},
				},
			}, []string{"[a b c] [b2 c2] []"},
		},
		"a Subscription that waits for a newer version": {
			olmcore.Resolution{
				Observed:  []olmcore.SubscriptionFingerprint{observed("a", "a2", "a1"), observed("b", "b1", "b1")},
				Operators: []olmcore.Operator{{Name: "b2", For: []string{"b"}, RequiredBy: []string{"a1"}}},
			}, []string{"[a b] [b2] []"},
		},
		"two Subscriptions of one package": {
			olmcore.Resolution{Operators: []olmcore.Operator{
				{Name: "a1", Package: "p", For: []string{"a"}}, {Name: "b1", Package: "p", For: []string{"b"}},
			}}, []string{"[a b] [a1 b1] []"},
		},
		"two Subscriptions of one version": {
			olmcore.Resolution{Operators: []olmcore.Operator{of("a1", "a", "b")}}, []string{"[a b] [a1] []"},
		},
		"two versions that replace one": {
			olmcore.Resolution{Operators: []olmcore.Operator{
				{Name: "a2", For: []string{"a"}, Replaces: "x"}, {Name: "b2", For: []string{"b"}, Replaces: "x"},
			}}, []string{"[a b] [a2 b2] []"},
		},
		"an operator that no Subscription needs": {
			olmcore.Resolution{
				Observed:  []olmcore.SubscriptionFingerprint{observed("z", "", "")},
				Operators: []olmcore.Operator{of("a1", "a"), of("b1", "b"), of("c1")},
			}, []string{"[] [a1 b1 c1] []"},
		},
		"a generated Subscription without an operator": {
			olmcore.Resolution{Operators: []olmcore.Operator{of("a1", "a"), of("b1", "b")}, Generated: []*v1alpha1.Subscription{generated("c1")}},
			[]string{"[] [a1 b1] [for-c1]"},
		},
		"no Subscription": {r: olmcore.Resolution{Operators: []olmcore.Operator{of("a1")}}},
		"a name that is a version and a Subscription": {
			olmcore.Resolution{Operators: []olmcore.Operator{of("a", "b"), of("b", "a")}}, []string{"[b] [a] []", "[a] [b] []"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, setsText(create.Sets(tt.r))) })
	}
}

// anyResolution returns a resolution of up to eight operators that require each other in any way.
func anyResolution(t *rapid.T) (r olmcore.Resolution) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	some := func(of []string, label string, most int) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, most, rapid.ID).Draw(t, label)
	}
	for _, name := range some(names, "subscriptions", 8) {
		f := olmcore.SubscriptionFingerprint{Name: name}
		if rapid.Bool().Draw(t, "installed") {
			f.InstalledCSV = name + ".v1"
			f.CurrentCSV = rapid.SampledFrom([]string{name + ".v1", name + ".v2"}).Draw(t, "current")
		}
		r.Observed = append(r.Observed, f)
	}
	for _, name := range some(names, "operators", 8) {
		o := olmcore.Operator{Name: name + ".v2", Package: name, For: some(names, "for", 1)}
		for _, other := range some(names, "required by", 2) {
			o.RequiredBy = append(o.RequiredBy, other+rapid.SampledFrom([]string{".v1", ".v2"}).Draw(t, "version"))
		}
		if len(o.For) == 0 && rapid.Bool().Draw(t, "generated") {
			r.Generated = append(r.Generated, Subscription("for-"+name, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = name + ".v2" }))
		}
		r.Operators = append(r.Operators, o)
	}
	return r
}

// TestSetsAreAPartitionOfTheOperators checks that each operator and each generated Subscription is in one set, a set
// contains what its operators require, and the order of the resolution does not matter.
func TestSetsAreAPartitionOfTheOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyResolution(t)
		sets := create.Sets(r)
		operators, generated, subscriptions := map[string]int{}, map[string]int{}, map[string]int{}
		for i, s := range sets {
			require.True(t, len(s.Subscriptions) > 0 || len(sets) == 1, "only the set of the whole namespace names no Subscription")
			require.True(t, slices.IsSorted(s.Subscriptions))
			require.Equal(t, r.Observed, s.Resolution.Observed)
			for _, o := range s.Resolution.Operators {
				require.NotContains(t, operators, o.Name)
				operators[o.Name] = i
			}
			for _, g := range s.Resolution.Generated {
				require.NotContains(t, generated, g.Name)
				generated[g.Name] = i
				require.Equal(t, i, operators[g.Spec.StartingCSV])
			}
			for _, name := range s.Subscriptions {
				require.NotContains(t, subscriptions, name)
				subscriptions[name] = i
			}
		}
		if len(sets) > 0 {
			require.Len(t, operators, len(r.Operators))
			require.Len(t, generated, len(r.Generated))
		}
		byInstalled := map[string]int{}
		for _, o := range r.Operators {
			i, known := operators[o.Name]
			for _, name := range o.For {
				require.Equal(t, i, subscriptions[name])
			}
			for _, version := range o.RequiredBy {
				if other, isNew := operators[version]; isNew {
					require.Equal(t, i, other, "%s requires %s", version, o.Name)
				} else if known {
					other, isSeen := byInstalled[version]
					require.True(t, !isSeen || other == i, "%s requires operators of two sets", version)
					byInstalled[version] = i
				}
			}
		}
		for _, f := range r.Observed {
			if i, requires := byInstalled[f.InstalledCSV]; requires && f.InstalledCSV != "" {
				require.Equal(t, i, subscriptions[f.Name], "%s follows a version that requires an operator of the set", f.Name)
			}
		}
		shuffled := r
		shuffled.Observed = rapid.Permutation(r.Observed).Draw(t, "observed")
		shuffled.Operators = rapid.Permutation(r.Operators).Draw(t, "order")
		shuffled.Generated = rapid.Permutation(r.Generated).Draw(t, "generated order")
		if len(sets) > 1 { // a single set is the resolution as it is
			require.Equal(t, setsText(sets), setsText(create.Sets(shuffled)))
		}
	})
}

// TestPlanOfASetIsOwnedByItsSubscriptions checks that owners, approval and content of a plan come from its set alone.
// Generations and the observed Subscriptions are those of the namespace.
func TestPlanOfASetIsOwnedByItsSubscriptions(t *testing.T) {
	manual := func(s *v1alpha1.Subscription) {
		s.Spec.Package, s.Spec.InstallPlanApproval = "b", v1alpha1.ApprovalManual
	}
	subs := []*v1alpha1.Subscription{
		Subscription("a", func(s *v1alpha1.Subscription) { s.Spec.Package = "a" }), Subscription("b", manual),
	}
	in := CreateInput(subs, Operator("a"), Operator("b"))
	sets := create.Sets(in.Resolution)
	require.Len(t, sets, 2)
	for _, set := range sets {
		name := set.Subscriptions[0]
		in.Resolution, in.Owners = set.Resolution, set.Subscriptions
		p := Made(t, Planned(t, in))
		require.Len(t, p.OwnerReferences, 1)
		require.Equal(t, name, p.OwnerReferences[0].Name)
		require.Equal(t, name == "b", p.Spec.Approval == v1alpha1.ApprovalManual)
		require.Equal(t, name, p.Annotations["olmcore/packages"])
		require.Contains(t, p.Annotations, olmcore.AnnotationSeparatePlan)
		require.Equal(t, []string{Operator(name).Name}, p.Spec.ClusterServiceVersionNames)

		changed := in
		changed.Subscriptions = olmcore.Found(subs[0], subs[1], Subscription("c"))
		require.Equal(t, create.ReasonStaleResolution, Planned(t, changed).Diagnostics[0].Reason)
	}
}

// TestPlanOfASetIsKeptWithoutSeparatePlans checks that a manager without the option SeparatePlans changes neither
// owners, approval nor annotation of a plan that was made for one set. A manager with the option would change them
// back.
func TestPlanOfASetIsKeptWithoutSeparatePlans(t *testing.T) {
	a := Subscription("a", func(s *v1alpha1.Subscription) { s.Spec.Package = "a" })
	neighbour := Subscription("b", Manual, Current("b.v1"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "b.v1" })
	in := CreateInput([]*v1alpha1.Subscription{a, neighbour}, Operator("a"))
	set := in
	sets := create.Sets(in.Resolution)
	require.Len(t, sets, 1)
	set.Resolution, set.Owners = sets[0].Resolution, []string{"a"}
	plan := Made(t, Planned(t, set))
	require.Equal(t, v1alpha1.ApprovalAutomatic, plan.Spec.Approval)

	for name, one := range map[string]create.Input{"without the option": in, "with the option": set} {
		one.InstallPlans = olmcore.Found(plan)
		out := Planned(t, one)
		require.Empty(t, Describe(out.Result), name)
		require.Equal(t, []string{create.ReasonReferencesAwaited}, Reasons(out.Result), name)
		require.Equal(t, []string{"a"}, out.Subscriptions, name)
	}
}

// TestSharedPlanWaitsForNewPlansOfSets checks that a manager without the option SeparatePlans creates no shared plan
// while new plans of sets install the same versions. A manager with the option would replace the shared plan
// immediately, and both would continue without end.
func TestSharedPlanWaitsForNewPlansOfSets(t *testing.T) {
	in := CreateInput([]*v1alpha1.Subscription{Subscription("a"), Subscription("b")}, Operator("a"), Operator("b"))
	var made []*v1alpha1.InstallPlan
	for _, set := range create.Sets(in.Resolution) {
		one := in
		one.Resolution, one.Owners, one.InstallPlans = set.Resolution, set.Subscriptions, olmcore.Found(made...)
		p := Made(t, Planned(t, one))
		p.CreationTimestamp = *Ago(time.Second)
		made = append(made, p)
	}
	require.Len(t, made, 2)
	for name, tt := range map[string]struct {
		change  func(p *v1alpha1.InstallPlan)
		awaited bool
	}{
		"they are new":               {func(*v1alpha1.InstallPlan) {}, true},
		"they make no progress":      {func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = *Ago(time.Hour) }, false},
		"one is being deleted":       {func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(0) }, false},
		"one failed":                 {func(p *v1alpha1.InstallPlan) { p.Status.Phase = Failed }, false},
		"one has another version":    {func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"b.v2"} }, false},
		"one was not made for a set": {func(p *v1alpha1.InstallPlan) { delete(p.Annotations, olmcore.AnnotationSeparatePlan) }, false},
	} {
		changed := made[1].DeepCopy()
		tt.change(changed)
		in.InstallPlans = olmcore.Found(made[0], changed)
		out := Planned(t, in)
		if tt.awaited {
			require.Empty(t, out.Actions, name)
			require.Equal(t, []string{create.ReasonPlansOfSetsAwaited, create.ReasonPlansOfSetsAwaited}, Reasons(out.Result), name)
			require.NotZero(t, out.RequeueAfter, name)
			continue
		}
		require.NotContains(t, Made(t, out).Annotations, olmcore.AnnotationSeparatePlan, name)
	}
}
