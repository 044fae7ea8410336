// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// apply changes an Input as a cluster would if the actions were run.
func apply(in *sweep.Input, result olmcore.Result) {
	for _, a := range result.Actions {
		verb, target, _ := a.Describe()
		for i, p := range in.InstallPlans.Items {
			if p.Name != target.Name || target.Kind != "InstallPlan" {
				continue
			}
			if verb == olmcore.VerbDelete {
				in.InstallPlans.Items = append(in.InstallPlans.Items[:i:i], in.InstallPlans.Items[i+1:]...)
				break
			}
			in.InstallPlans.Items[i] = a.(olmcore.Update).After.(*v1alpha1.InstallPlan)
		}
		for i, s := range in.Subscriptions.Items {
			if s.Name == target.Name && target.Kind == "Subscription" {
				in.Subscriptions.Items[i] = a.(olmcore.Update).After.(*v1alpha1.Subscription)
			}
		}
		if target.Kind == "ConfigMap" {
			in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
		}
	}
}

// findings contains, for each reason of the audit, an Input with the problem, and what a user does if Reconcile does
// not repair it.
var findings = map[string]struct {
	world []olmcore.Object
	steps []sweep.StepObjects
	mend  func(in *sweep.Input)
}{
	"OwnerReferenceMissing": {
		world: []olmcore.Object{Subscription("a", RefersTo("install-1")), Subscription("b"), Owned(Numbered(1, Complete), Subscription("b"))},
	},
	"OwnerReferenceStale": {world: []olmcore.Object{Subscription("a", RefersTo("install-1")), Owned(Numbered(1, Complete), Subscription("a", func(s *v1alpha1.Subscription) {
		s.UID = "before"
	}))}, mend: collectGarbage},
	"PlanWithoutOwner": {world: []olmcore.Object{Subscription("a", func(s *v1alpha1.Subscription) { s.CreationTimestamp = *Ago(200 * time.Hour) }),
		Numbered(1, Complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })}},
	"ComponentLabelMissing": {world: []olmcore.Object{Subscription("a", RefersTo("install-1")), Owned(Numbered(1, Complete, func(p *v1alpha1.InstallPlan) {}), Subscription("a"))},
		mend: func(*sweep.Input) {}},
	"ComponentLabelUnused": {world: []olmcore.Object{Subscription("a"), Owned(Numbered(1, Complete), Subscription("a"), Subscription("b"))},
		mend: func(in *sweep.Input) { in.Subscriptions.Items = append(in.Subscriptions.Items, Subscription("b")) }},
	"PlanReferenceDangling": {world: []olmcore.Object{Subscription("a", RefersTo("install-9"), writtenAgo(time.Hour))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(Subscription("a")) }},
	"GeneratedByDangling": {world: []olmcore.Object{Subscription("a", Generated("install-9"))}},
	"PlansCollide": {world: []olmcore.Object{Subscription("a"), Owned(Numbered(1, Complete), Subscription("a")),
		Owned(Numbered(2, Complete, func(p *v1alpha1.InstallPlan) {}), Subscription("a"))},
		mend: func(in *sweep.Input) { in.InstallPlans.Items = in.InstallPlans.Items[:1] }},
	"GeneratedOwnerMissing": {
		world: []olmcore.Object{Subscription("a", Generated("install-1")), Subscription("b"), Owned(Numbered(1, Complete), Subscription("b"))},
	},
	"OwnerReferenceDuplicate": {
		world: []olmcore.Object{Subscription("a"), Owned(Numbered(1, Complete), Subscription("a"), Subscription("a"))},
	},
	"CurrentCSVNotInPlan": {world: []olmcore.Object{Subscription("a", RefersTo("install-1"), Current("a.v2")), Owned(Numbered(1, Complete), Subscription("a"))},
		mend: func(in *sweep.Input) {
			in.Subscriptions = olmcore.Found(Subscription("a", RefersTo("install-1"), Current("a.v1")))
		}},
	"PlanWithoutStatus": {world: []olmcore.Object{Subscription("a", RefersTo("install-1")), Owned(Numbered(1, None, WithoutSteps), Subscription("a"))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(Subscription("a")) }},
	"UnpackedBundleUnused": {world: []olmcore.Object{UnpackedBundle(25 * time.Hour)}},
	"StepObjectAbsent": {world: []olmcore.Object{Subscription("a", RefersTo("install-1")), Owned(Numbered(1, Complete), Subscription("a"))},
		steps: []sweep.StepObjects{{InstallPlan: "uid-install-1"}},
		mend: func(in *sweep.Input) {
			in.Steps = []sweep.StepObjects{{InstallPlan: "uid-install-1", Objects: []olmcore.Object{CSV("a.v1")}}}
		}},
}

// collectGarbage removes references to Subscriptions that do not exist, as the garbage collector does.
func collectGarbage(in *sweep.Input) {
	for _, p := range in.InstallPlans.Items {
		p.OwnerReferences = slices.DeleteFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
			return !slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool { return s.UID == r.UID })
		})
	}
}

// TestEachFindingIsReportedAndRepaired checks that each problem is reported, and that it is not reported any more once
// Reconcile or a user has repaired it.
func TestEachFindingIsReportedAndRepaired(t *testing.T) {
	for reason, c := range findings {
		t.Run(reason, func(t *testing.T) {
			in := SweepInput(c.world...)
			in.Steps = c.steps
			switch reason {
			case "ComponentLabelMissing":
				in.InstallPlans.Items[0].Labels = nil
			case "PlansCollide":
				in.InstallPlans.Items[1].Spec.Generation = 1
			}
			require.NoError(t, invariant.Laws(SweepResult, in))
			first := Swept(t, in)
			require.Contains(t, Reasons(first), reason)
			for range 3 {
				result := Swept(t, in)
				apply(&in, result)
			}
			if c.mend != nil {
				c.mend(&in)
			}
			if c.mend != nil {
				apply(&in, Swept(t, in))
			}
			last := Swept(t, in)
			require.NotContains(t, Reasons(last), reason, "%v", last.Diagnostics)
			require.Empty(t, Describe(last))
		})
	}
}

// TestPlansOfOneGenerationAreReportedOnceForEachSet checks that all plans of a generation are compared, and that plans
// that collide with each other are reported once, by name.
func TestPlansOfOneGenerationAreReportedOnceForEachSet(t *testing.T) {
	ofSet := func(number int, packages string) *v1alpha1.InstallPlan {
		p := Owned(Numbered(number, Complete), Subscription("a"))
		p.Spec.Generation = 1
		p.Annotations = map[string]string{olmcore.AnnotationSeparatePlan: "true", "olmcore/packages": packages}
		return p
	}
	shared := Owned(Numbered(4, Complete), Subscription("a"))
	shared.Spec.Generation = 1
	for name, c := range map[string]struct {
		plans []olmcore.Object
		want  map[string]string // messages by plan
	}{
		"three sets": {plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "b"), ofSet(3, "c")}},
		"the last two share a package": {
			plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "b"), ofSet(3, "b")},
			want:  map[string]string{"install-3": "InstallPlan install-2 has the same generation 1"},
		},
		"three of one package": {
			plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "a"), ofSet(3, "a")},
			want:  map[string]string{"install-3": "InstallPlans install-1 and install-2 have the same generation 1"},
		},
		"the third joins two": {
			plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "b"), ofSet(3, "a,b")},
			want:  map[string]string{"install-3": "InstallPlans install-1 and install-2 have the same generation 1"},
		},
		"two packages twice": {
			plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "b"), ofSet(3, "a"), ofSet(5, "b")},
			want: map[string]string{
				"install-3": "InstallPlan install-1 has the same generation 1", "install-5": "InstallPlan install-2 has the same generation 1",
			},
		},
		"a plan of all sets": {
			plans: []olmcore.Object{ofSet(1, "a"), ofSet(2, "b"), ofSet(3, "c"), shared},
			want:  map[string]string{"install-4": "InstallPlans install-1, install-2 and install-3 have the same generation 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, d := range Swept(t, SweepInput(append(c.plans, Subscription("a"))...)).Diagnostics {
				if d.Reason == sweep.ReasonPlansCollide {
					require.Empty(t, got[d.Target.Name])
					got[d.Target.Name] = d.Message
				}
			}
			require.Len(t, got, len(c.want))
			for plan, message := range c.want {
				require.Equal(t, message, got[plan])
			}
		})
	}
}

// TestPlansWithTheSameContentAreReportedOnce checks that the diagnostic names all unfinished plans with the same
// content.
func TestPlansWithTheSameContentAreReportedOnce(t *testing.T) {
	var objects []olmcore.Object
	for number := range 3 {
		p := Owned(Numbered(number+1, RequiresApproval), Subscription("a"))
		p.Annotations = map[string]string{"olmcore/content-hash": "h"}
		objects = append(objects, p)
	}
	var got []string
	for _, d := range Swept(t, SweepInput(append(objects, Subscription("a"))...)).Diagnostics {
		if d.Reason == sweep.ReasonPlansCollide {
			got = append(got, d.Target.Name+": "+d.Message)
		}
	}
	require.Equal(t, []string{"install-3: InstallPlans install-1 and install-2 have the same content and are not finished either"}, got)
}

// TestValidRelationsAreNotReported checks relations that look like a problem, but are not one, or not yet.
func TestValidRelationsAreNotReported(t *testing.T) {
	inOrder := func(change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		return Owned(Numbered(1, Complete, change...), Subscription("a"))
	}
	copyOf := func(generation int, hash string, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		p := Owned(Numbered(2, Complete, change...), Subscription("a"))
		p.Spec.Generation = generation
		p.Annotations = map[string]string{"olmcore/content-hash": hash}
		return p
	}
	hashed := func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{"olmcore/content-hash": "h"} }
	ungenerated := inOrder()
	ungenerated.Spec.Generation = 0
	earlier := func(age time.Duration) *v1alpha1.Subscription {
		return Subscription("a", func(s *v1alpha1.Subscription) { s.UID, s.CreationTimestamp = "other", *Ago(age) })
	}
	notMade := inOrder()
	notMade.Status.Plan = append(notMade.Status.Plan, WithStatus(v1alpha1.StepStatusNotCreated, RoleStep("a.v1", "r")))
	misnamed := inOrder()
	misnamed.Status.Plan[0].Resource.Name = "step"
	made := inOrder()
	made.Status.Plan = append(made.Status.Plan, WithStatus(Created, Step("", "operators.coreos.com", "v1alpha1", "Subscription", "s", `{"metadata":{"name":"s"}}`)))
	there := []sweep.StepObjects{{InstallPlan: "uid-install-1", Objects: []olmcore.Object{CSV("a.v1")}}}

	for name, c := range map[string]struct {
		world   []olmcore.Object
		steps   []sweep.StepObjects
		requeue time.Duration
	}{
		"a reference that was just written": {
			world: []olmcore.Object{Subscription("a", RefersTo("install-9"), writtenAgo(time.Minute))}, requeue: 4 * time.Minute,
		},
		"a Subscription that was just created": {
			world: []olmcore.Object{Subscription("a", Generated("install-9"), bornAgo(time.Minute))}, requeue: 4 * time.Minute,
		},
		"a Subscription whose plan exists": {
			world: []olmcore.Object{Subscription("a", Generated("install-1")), inOrder(func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} })},
		},
		"another version before the plan has steps": {
			world: []olmcore.Object{Subscription("a", RefersTo("install-1"), Current("a.v2")), Owned(Numbered(1, None, WithoutSteps, func(p *v1alpha1.InstallPlan) { p.Status.BundleLookups = make([]v1alpha1.BundleLookup, 1) }), Subscription("a"))},
		},
		"two plans without generation":                           {world: []olmcore.Object{Subscription("a"), ungenerated, copyOf(0, "")}},
		"two plans of one content, one of them finished":         {world: []olmcore.Object{Subscription("a"), inOrder(hashed), copyOf(2, "h")}},
		"two plans of one generation, one of them being deleted": {world: []olmcore.Object{Subscription("a"), inOrder(), copyOf(1, "", gone)}},
		"an owner that is older than the plan":                   {world: []olmcore.Object{earlier(200 * time.Hour), inOrder()}},
		"a step that was left out": {
			world: []olmcore.Object{Subscription("a", RefersTo("install-1")), notMade}, steps: there,
		},
		"a Subscription that a user deleted": {
			world: []olmcore.Object{Subscription("a", RefersTo("install-1")), made}, steps: there,
		},
		"an object under the name of its manifest": {
			world: []olmcore.Object{Subscription("a", RefersTo("install-1")), misnamed}, steps: there,
		},
		"a label whose Subscription is younger than the plan": {world: []olmcore.Object{Subscription("a", bornAgo(time.Minute)), Numbered(1, Complete, func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Subscription", Name: "z", UID: "z"}}
			p.Labels = map[string]string{"operators.coreos.com/a.ops": ""}
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			in := SweepInput(c.world...)
			in.Steps = c.steps
			got := Swept(t, in)
			require.Empty(t, got.Diagnostics)
			require.Empty(t, Describe(got))
			require.Equal(t, c.requeue, got.RequeueAfter)
		})
	}
}

// TestLabelMakesNoYoungerSubscriptionAnOwner checks that a Subscription that is younger than the plan does not become
// its owner because of a label.
func TestLabelMakesNoYoungerSubscriptionAnOwner(t *testing.T) {
	p := Numbered(1, Complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })
	got := Swept(t, SweepInput(Subscription("a", bornAgo(time.Minute)), p))
	require.Empty(t, Describe(got))
	require.Equal(t, []string{"PlanWithoutOwner"}, Reasons(got))
	require.Equal(t, "no Subscription owns the plan, and no reference or label shows which one should", got.Diagnostics[0].Message)
}

// TestMissingLabelOfARecordedPackageIsReported checks that the label of a package in the annotation of the plan is
// required even after its Subscription changed to another package.
func TestMissingLabelOfARecordedPackageIsReported(t *testing.T) {
	p := Owned(Numbered(1, Complete), Subscription("a"))
	p.Labels = nil
	p.Annotations = map[string]string{"olmcore/packages": "a"}
	got := Swept(t, SweepInput(Subscription("a"), p))
	require.Equal(t, []string{"ComponentLabelMissing"}, Reasons(got))
	require.Equal(t, []string{"update InstallPlan ops/install-1 (RelationRepaired)"}, Describe(got))
}

// TestGeneratedSubscriptionBecomesAnOwner checks that a Subscription that the plan created becomes its owner. The
// missing reference is not reported while the Subscription is new.
func TestGeneratedSubscriptionBecomesAnOwner(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		0: nil, 9 * time.Second: nil, 10 * time.Second: {sweep.ReasonGeneratedOwnerMissing},
	} {
		p := Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(Subscription("a")))
		g := Subscription("g", Generated("install-x"), func(s *v1alpha1.Subscription) { s.CreationTimestamp = *Ago(age) })
		r := Swept(t, SweepInput(p, Subscription("a"), g))
		require.Len(t, r.Actions, 1, "it is made one")
		got := slices.DeleteFunc(Reasons(r), func(reason string) bool { return reason != sweep.ReasonGeneratedOwnerMissing })
		Same(t, want, got)
	}
}
