// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestPlanGetsStepsOnceItIsReferenced checks that a plan is created without steps, and that its status is written once
// every Subscription that it changes references it.
//
// OLM's case: a new Subscription gets the steps of a version.
func TestPlanGetsStepsOnceItIsReferenced(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a"), Subscription("b")}
	in := CreateInput(subs, Operator("a"), Operator("b"))
	first := Planned(t, in)
	p := Made(t, first)
	require.Equal(t, olmcore.Ref{}, first.Plan)
	hash := p.Annotations["olmcore/content-hash"]
	require.Len(t, hash, 64)
	Same(t, &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: NS, Name: "install-" + olmcore.NameSuffix(10, hash, "1"), UID: "uid-plan", ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(Noon), Finalizers: []string{installplan.Finalizer},
			Labels: map[string]string{"olm.managed": "true", "operators.coreos.com/a.ops": "", "operators.coreos.com/b.ops": ""},
			Annotations: map[string]string{
				"olmcore/content-hash": hash, "olmcore/contributors": "uid-a,uid-b", "olmcore/packages": "a,b",
			},
			OwnerReferences: []metav1.OwnerReference{OwnerRef(subs[0]), OwnerRef(subs[1])},
		},
		Spec: v1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{"a.v1", "b.v1"}, Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1,
		},
		Status: v1alpha1.InstallPlanStatus{CatalogSources: []string{}},
	}, p)

	in.InstallPlans = olmcore.Found(p)
	waits := Planned(t, in)
	require.Empty(t, waits.Actions)
	require.Equal(t, olmcore.RefOf(p).Unversioned(), waits.Plan)
	require.Equal(t, 1, waits.Generation)
	require.Equal(t, "Subscription a, b does not reference the plan yet", waits.Diagnostics[0].Message)

	in.Subscriptions = olmcore.Found(append(Referring(subs[:1], p), subs[1])...)
	require.Empty(t, Planned(t, in).Actions, "one of two is not enough")

	in.Subscriptions = olmcore.Found(Referring(subs, p)...)
	in.Subscriptions.Items[0].Status.CurrentCSV = "a.v1" // a change by the resolution itself does not count
	last := Planned(t, in)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, Describe(last.Result))
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](last.Actions)
	require.Equal(t, Installing, got.Status.Phase)
	require.Equal(t, []string{"cool"}, got.Status.CatalogSources)
	require.Equal(t, []v1alpha1.StepStatus{Unknown, Unknown}, Statuses(got.Status))
	require.Equal(t, []olmcore.Transition{{
		Target: last.Plan, Type: "Phase", To: "Installing", At: metav1.NewTime(Noon), Bound: olmcore.Exact, Certainty: olmcore.CertaintyObserved,
	}}, last.Transitions)

	in.InstallPlans = olmcore.Found(got)
	settled := Planned(t, in)
	require.True(t, settled.Empty())
	require.Equal(t, waits.Plan, settled.Plan)
}

// TestPlanGetsStepsAfterEarlierPlans checks what a new plan does while an earlier plan of the same package is
// unfinished. "a" waits for a version of the earlier plan, so it forgets that version before the new plan installs it.
func TestPlanGetsStepsAfterEarlierPlans(t *testing.T) {
	a, b := Subscription("a", RefersTo("install-x"), Current("a.v1")), Subscription("b")
	a.Status.State = v1alpha1.SubscriptionStateUpgradePending
	in := CreateInput([]*v1alpha1.Subscription{a, b}, Operator("a"), Operator("b"))
	in.Resolution.Decisions = []olmcore.SubscriptionDecision{{Name: "a", CurrentCSV: "a.v1"}, {Name: "b", CurrentCSV: "b.v1", Changed: true}}
	in.Resolution.Observed = []olmcore.SubscriptionFingerprint{olmcore.FingerprintOf(a), olmcore.FingerprintOf(b)}
	earlier := func(change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		return Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, append([]func(*v1alpha1.InstallPlan){func(p *v1alpha1.InstallPlan) {
			p.Spec.Generation, p.Annotations = 1, map[string]string{"olmcore/packages": "a"}
		}}, change...)...)
	}
	in.InstallPlans = olmcore.Found(earlier())
	p := Made(t, Planned(t, in))
	in.Subscriptions = olmcore.Found(append(Referring([]*v1alpha1.Subscription{b}, p), a)...)

	started := func(p *v1alpha1.InstallPlan) { p.Status.Phase, p.Status.StartTime = Installing, Ago(time.Minute) }
	applied := func(p *v1alpha1.InstallPlan) { started(p); p.Status.Plan[0].Status = Created }
	superseded := func(p *v1alpha1.InstallPlan) {
		p.Status.Phase = Failed
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, "Superseded", "superseded by InstallPlan "+p.Name)}
	}
	for _, c := range []struct {
		name    string
		earlier *v1alpha1.InstallPlan
		want    string
	}{
		{"the earlier plan waits for approval", earlier(), "[updateStatus InstallPlan ops/install-x (Superseded)]"},
		{"the earlier plan has started", earlier(started), "EarlierPlanUnfinished: InstallPlan install-x is not finished"},
		{"the earlier plan was superseded", earlier(superseded), "ReferencesAwaited: Subscription a does not reference the plan yet"},
		{"the earlier plan has applied its steps", earlier(applied), "[updateStatus InstallPlan ops/" + p.Name + " (PlanReady)]"},
		{"the earlier plan has other packages", earlier(started, func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{"olmcore/packages": "c"} }),
			"[updateStatus InstallPlan ops/" + p.Name + " (PlanReady)]"},
		{"the phase of the earlier plan is unknown", earlier(started, func(p *v1alpha1.InstallPlan) { p.Status.Phase = "Odd" }),
			"[updateStatus InstallPlan ops/" + p.Name + " (PlanReady)]"},
		{"the earlier plan is being deleted", earlier(started, Held, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(time.Second) }),
			"[updateStatus InstallPlan ops/" + p.Name + " (PlanReady)]"},
		{"a user set the earlier plan back to RequiresApproval", earlier(started, func(p *v1alpha1.InstallPlan) { p.Status.Phase = RequiresApproval }),
			"[updateStatus InstallPlan ops/" + p.Name + " (PlanReady)]"},
	} {
		in.InstallPlans = olmcore.Found(c.earlier, p)
		require.Equal(t, c.want, says(Planned(t, in)), c.name)
	}
}

// TestHugeGenerationsAreIgnored checks that a plan or a Subscription with a huge generation does not use up the
// generations.
func TestHugeGenerationsAreIgnored(t *testing.T) {
	a := Subscription("a")
	a.Status.InstallPlanGeneration = math.MaxInt
	in := CreateInput([]*v1alpha1.Subscription{a}, Operator("a"))
	in.InstallPlans = olmcore.Found(Plan(Complete, nil, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = math.MaxInt }))
	require.Equal(t, 1, Made(t, Planned(t, in)).Spec.Generation)
}

func says(out create.Outcome) string {
	if len(out.Actions) > 0 || len(out.Diagnostics) == 0 {
		return fmt.Sprint(Describe(out.Result))
	}
	return out.Diagnostics[0].Reason + ": " + out.Diagnostics[0].Message
}

// TestPlanWithTheSameContentIsReused checks when an existing plan with the same content is used again.
//
// OLM's case: failing forward by skips and ranges, not by replaces.
func TestPlanWithTheSameContentIsReused(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	with := func(change func(*v1alpha1.InstallPlan)) create.Input {
		q := p.DeepCopy()
		change(q)
		next := in
		next.InstallPlans = olmcore.Found(q)
		return next
	}
	done := func(phase v1alpha1.InstallPlanPhase) create.Input {
		return with(func(q *v1alpha1.InstallPlan) { q.Status.Phase = phase })
	}

	out := Planned(t, done(Failed))
	require.Equal(t, 2, Made(t, out).Spec.Generation, "a failed plan without a reference is not used")

	refers := done(Failed)
	refers.Subscriptions = olmcore.Found(Referring(subs, p)...)
	refers.Resolution = Installs(Operator("a"))(refers.Subscriptions.Items)
	out = Planned(t, refers)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonPreviousPlanFailed}, Reasons(out.Result))

	finished := done(Complete)
	require.Equal(t, 2, Made(t, Planned(t, finished)).Spec.Generation, "its version was deleted, so it is installed again")
	finished.ClusterServiceVersions = olmcore.Found(CSV("a.v1"))
	out = Planned(t, finished)
	require.True(t, out.Empty())
	require.Equal(t, p.Name, out.Plan.Name)

	deleted := with(func(q *v1alpha1.InstallPlan) { q.DeletionTimestamp = Ago(0) })
	require.Equal(t, 2, Made(t, Planned(t, deleted)).Spec.Generation)

	other := with(func(q *v1alpha1.InstallPlan) { q.Annotations = nil })
	require.Equal(t, 2, Made(t, Planned(t, other)).Spec.Generation, "a plan is not found by its generation")

	taken := with(func(q *v1alpha1.InstallPlan) {
		q.Annotations, q.Spec.Generation = nil, 0
	})
	require.NotEqual(t, p.Name, Made(t, Planned(t, taken)).Name, "another plan has the name")
}

// TestNewestOfSeveralEqualPlansIsReused checks that the plan with the highest generation is used, then the oldest one.
func TestNewestOfSeveralEqualPlansIsReused(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	another := func(name string, generation int, age time.Duration) *v1alpha1.InstallPlan {
		q := p.DeepCopy()
		q.Name, q.Spec.Generation, q.CreationTimestamp = name, generation, *Ago(age)
		return q
	}
	in.InstallPlans = olmcore.Found(another("a", 1, time.Hour), another("c", 2, time.Second), another("b", 2, time.Minute), another("d", 1, 0))
	require.Equal(t, "b", Planned(t, in).Plan.Name)
	in.InstallPlans = olmcore.Found(another("c", 2, time.Minute), another("b", 2, time.Second))
	require.Equal(t, "c", Planned(t, in).Plan.Name)
}

// TestPlanWithForgedContentHashIsNotReused checks that a plan is used only if its steps have the hash in its
// annotation. Otherwise a Subscription could reference steps that another tenant wrote.
func TestPlanWithForgedContentHashIsNotReused(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a", Manual)}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(Referring(subs, p)...)
	p, _ = olmcore.StatusOf[*v1alpha1.InstallPlan](Planned(t, in).Actions)
	create := func(change func(*v1alpha1.InstallPlan)) create.Outcome {
		existing := p.DeepCopy()
		change(existing)
		in.InstallPlans = olmcore.Found(existing)
		return Planned(t, in)
	}
	require.Equal(t, p.Name, create(func(*v1alpha1.InstallPlan) {}).Plan.Name)
	require.Equal(t, p.Name, create(func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Status = Present }).Plan.Name, "the progress of the plan does not matter")
	for name, forge := range map[string]func(*v1alpha1.InstallPlan){
		"another manifest": func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = "{}" },
		"one step more":    func(p *v1alpha1.InstallPlan) { p.Status.Plan = append(p.Status.Plan, RoleStep("a.v1", "evil")) },
		"an empty step":    func(p *v1alpha1.InstallPlan) { p.Status.Plan = append(p.Status.Plan, nil) },
		"a lookup instead": func(p *v1alpha1.InstallPlan) {
			p.Status.Plan, p.Status.BundleLookups = nil, []v1alpha1.BundleLookup{Lookup(t)}
		},
	} {
		out := create(forge)
		require.Empty(t, out.Plan.Name, name)
		require.Len(t, out.Actions, 1, name)
		require.IsType(t, olmcore.Create{}, out.Actions[0], name)
	}
}

// TestStepsWaitOnlyForSubscriptionsThatWillReferenceThePlan checks that a plan does not wait for a Subscription that is
// being deleted or that the resolution does not change.
func TestStepsWaitOnlyForSubscriptionsThatWillReferenceThePlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a"), Subscription("b"), Subscription("c")}
	in := CreateInput(subs, Operator("a"), Operator("b"), Operator("c"))
	in.Resolution.Decisions[2].Failure = &olmcore.ResolutionFailure{Message: "no"}
	p := Made(t, Planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	in.Subscriptions = olmcore.Found(append(Referring(subs[:1], p), subs[1:]...)...)
	out := Planned(t, in)
	require.Equal(t, []string{"a", "b"}, out.Subscriptions)
	require.Empty(t, out.Actions)
	in.Subscriptions.Items[1] = Subscription("b", func(s *v1alpha1.Subscription) { s.DeletionTimestamp = Ago(0) })
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, Describe(Planned(t, in).Result))
}

// TestStaleCacheDelaysANewPlan checks that no second plan with the same content is created while the first one may be
// missing in the cache.
func TestStaleCacheDelaysANewPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	seen := Referring(subs, p)
	seen[0].Status.InstallPlanGeneration, seen[0].Status.LastUpdated = 1, *Ago(9 * time.Second)
	in.Subscriptions, in.Resolution = olmcore.Found(seen...), Installs(Operator("a"))(seen)
	out := Planned(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonPlanNotVisible}, Reasons(out.Result))
	require.Equal(t, time.Second, out.RequeueAfter)
	in.Now = Noon.Add(time.Second)
	require.Equal(t, 2, Made(t, Planned(t, in)).Spec.Generation)

	p.Status.Phase = Complete
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition("True", "", "")}
	in = CreateInput(subs, Operator("a"))
	in.InstallPlans = olmcore.Found(p)
	out = Planned(t, in)
	require.Empty(t, out.Actions, "its versions may not be visible yet")
	require.Equal(t, 10*time.Second, out.RequeueAfter)
}

// TestDeletedPlansAndVersionsDelayNoPlan checks that plans and versions that are being deleted do not delay a new plan.
func TestDeletedPlansAndVersionsDelayNoPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	done := p.DeepCopy()
	done.Status.Phase = Complete
	done.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition("True", "", "")}
	going := done.DeepCopy()
	going.DeletionTimestamp = Ago(0)
	in.InstallPlans = olmcore.Found(going)
	require.Equal(t, 2, Made(t, Planned(t, in)).Spec.Generation)

	done.Status.Conditions = nil
	in.InstallPlans = olmcore.Found(done)
	in.ClusterServiceVersions = olmcore.Found(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(0) }))
	require.Equal(t, 2, Made(t, Planned(t, in)).Spec.Generation, "the version is being deleted")
	in.ClusterServiceVersions = olmcore.Found(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }))
	require.Equal(t, 2, Made(t, Planned(t, in)).Spec.Generation, "a copy is not the version")

	// Another plan has the name now. The referenced plan is still not observed.
	seen := Referring(subs, p)
	seen[0].Status.InstallPlanGeneration, seen[0].Status.LastUpdated = 1, metav1.NewTime(Noon)
	in.Subscriptions, in.Resolution = olmcore.Found(seen...), Installs(Operator("a"))(seen)
	other := p.DeepCopy()
	other.UID, other.Annotations = "uid-other", nil
	in.InstallPlans = olmcore.Found(other)
	require.Equal(t, []string{create.ReasonPlanNotVisible}, Reasons(Planned(t, in).Result))
}

// TestSubscriptionOfAPlanWithoutStepsReferencesTheNewPlan checks that a Subscription whose plan never got steps should
// reference the new plan with its version.
func TestSubscriptionOfAPlanWithoutStepsReferencesTheNewPlan(t *testing.T) {
	a, b := Subscription("a"), Subscription("b")
	first := Made(t, Planned(t, CreateInput([]*v1alpha1.Subscription{b}, Operator("b"))))
	stranded := Referring([]*v1alpha1.Subscription{b}, first)[0]
	stranded.Status.CurrentCSV = "b.v1"
	in := CreateInput([]*v1alpha1.Subscription{a, stranded}, Operator("a"), Operator("b"))
	in.InstallPlans = olmcore.Found(first)
	second := Made(t, Planned(t, in))
	second.UID = "uid-second"
	in.InstallPlans.Items = append(in.InstallPlans.Items, second)
	require.Equal(t, []string{"a", "b"}, Planned(t, in).Subscriptions)
	first.Status.Phase, first.Status.Plan = Installing, []*v1alpha1.Step{CSVStep("b.v1")}
	require.Equal(t, []string{"a"}, Planned(t, in).Subscriptions)
}

// TestSubscriptionsOfOtherPlansKeepTheirPlan checks that only Subscriptions of a plan without steps change their plan.
func TestSubscriptionsOfOtherPlansKeepTheirPlan(t *testing.T) {
	a, b := Subscription("a"), Subscription("b", Current("b.v1"))
	in := CreateInput([]*v1alpha1.Subscription{a, b}, Operator("a"), Operator("b"))
	empty := Plan(None, nil)
	p := Made(t, Planned(t, in))
	in.InstallPlans = olmcore.Found(empty, p)
	require.Equal(t, []string{"a"}, Planned(t, in).Subscriptions)
}

// TestEmptyResolutionCreatesNoPlan checks that a resolution that installs nothing creates no plan. It includes OLM's
// cases.
//
// OLM's case: nothing new, no steps.
func TestEmptyResolutionCreatesNoPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	require.Equal(t, create.Outcome{}, Planned(t, CreateInput(subs)))
	in := CreateInput(subs, Operator("a"))
	in.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true}
	require.Equal(t, create.Outcome{}, Planned(t, in))
}

// TestNoPlanIsCreatedThatNoSubscriptionWouldReference checks that no plan is created if no Subscription would reference
// it. Such a plan would never get its steps, would be deleted, and would be created again.
func TestNoPlanIsCreatedThatNoSubscriptionWouldReference(t *testing.T) {
	has := func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.InstalledCSV = s.Spec.Package+".v1", s.Spec.Package+".v1"
	}
	going := func(s *v1alpha1.Subscription) { s.DeletionTimestamp = Ago(0) }
	empty := &v1alpha1.InstallPlan{ObjectMeta: Meta("old")}
	empty.UID = "uid-old"
	image := Operator("a")
	image.Bundle = olmcore.Bundle{Image: "registry.example.com/a:1"}
	for name, tc := range map[string]struct {
		subs    []*v1alpha1.Subscription
		plans   []*v1alpha1.InstallPlan
		of      []olmcore.Operator
		wants   []string
		lookups int
	}{
		"a version that was removed": {subs: []*v1alpha1.Subscription{Subscription("a", has)}, of: []olmcore.Operator{Operator("a")}},
		"an image that was removed":  {subs: []*v1alpha1.Subscription{Subscription("a", has)}, of: []olmcore.Operator{image}},
		"an image that is new":       {subs: []*v1alpha1.Subscription{Subscription("a")}, of: []olmcore.Operator{image}, lookups: 1},
		"its plan never got steps": {
			subs: []*v1alpha1.Subscription{Subscription("a", has, RefersTo("old"))}, plans: []*v1alpha1.InstallPlan{empty}, of: []olmcore.Operator{Operator("a")}, wants: []string{"a.v1"},
		},
		"its Subscription is being deleted": {subs: []*v1alpha1.Subscription{Subscription("a", going)}, of: []olmcore.Operator{Operator("a")}},
		"another Subscription is changed": {
			subs: []*v1alpha1.Subscription{Subscription("a", has), Subscription("b")}, of: []olmcore.Operator{Operator("a"), Operator("b")}, wants: []string{"a.v1", "b.v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := CreateInput(tc.subs, tc.of...)
			in.InstallPlans = olmcore.Found(tc.plans...)
			out := Planned(t, in)
			require.Len(t, out.Lookups, tc.lookups)
			if tc.wants == nil {
				require.Empty(t, out.Actions)
				return
			}
			require.Equal(t, tc.wants, Made(t, out).Spec.ClusterServiceVersionNames)
		})
	}
}

// TestStepsWaitForSubscriptionsWithADeletedPlan checks that a plan waits for Subscription b, which waits for a version
// of the plan and references a deleted plan. Otherwise b might drop the version while it is being installed.
func TestStepsWaitForSubscriptionsWithADeletedPlan(t *testing.T) {
	b := Subscription("b", RefersTo("gone"), func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.State = "b.v1", v1alpha1.SubscriptionStateUpgradePending
	})
	a := Subscription("a")
	in := CreateInput([]*v1alpha1.Subscription{a, b}, Operator("a"), Operator("b"))
	p := Made(t, Planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	a = a.DeepCopy()
	RefersTo(p.Name)(a)
	a.Status.CurrentCSV, a.Status.InstallPlanRef.UID = "a.v1", p.UID
	in.Subscriptions = olmcore.Found(a, b)
	out := Planned(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, Reasons(out.Result))

	removed := b.DeepCopy()
	removed.Status.InstalledCSV = "b.v1" // no Subscription waits for it
	in.Subscriptions = olmcore.Found(a, removed)
	in.Resolution.Observed[1] = olmcore.FingerprintOf(removed)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, Describe(Planned(t, in).Result))

	follower := b.DeepCopy()
	follower.Status.InstallPlanRef = a.Status.InstallPlanRef
	in.Subscriptions = olmcore.Found(a, follower)
	in.Resolution.Observed[1] = olmcore.FingerprintOf(follower)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, Describe(Planned(t, in).Result))
}

func TestPlanWithoutReferenceGetsNoSteps(t *testing.T) {
	s := Subscription("a", Manual)
	in := create.Input{Now: Noon, Namespace: NS, Resolution: Installs(Operator("a"))([]*v1alpha1.Subscription{s}), Subscriptions: olmcore.Found(s)}
	made, err := create.Plan(Completed(in))
	require.NoError(t, err)
	s.Status.CurrentCSV = "a.v1"
	in.Resolution = Installs(Operator("a"))(in.Subscriptions.Items)
	p := made.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion = types.UID("uid-"+p.Name), "1"
	in.InstallPlans = olmcore.Found(p)
	out, err := create.Plan(Completed(in))
	require.NoError(t, err)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, Reasons(out.Result))
	RefersTo(p.Name)(s)
	in.Resolution = Installs(Operator("a"))(in.Subscriptions.Items)
	out, err = create.Plan(Completed(in))
	require.NoError(t, err)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, Describe(out.Result))
}

// TestPlansWithoutContentHashAreNotReused checks that plans without a content hash are not used, and that invalid
// generations are ignored.
func TestPlansWithoutContentHashAreNotReused(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a", func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = -3 })}
	in := CreateInput(subs, Operator("a"))
	in.InstallPlans = olmcore.Found(Plan(Complete, nil, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = -7 }))
	require.Equal(t, 1, Made(t, Planned(t, in)).Spec.Generation)
}

// TestSizeLimitsOfAPlan checks the limits of bytes and steps exactly.
func TestSizeLimitsOfAPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a", &corev1.ConfigMap{ObjectMeta: Bare("x")}))
	p := Made(t, Planned(t, in))
	many := CreateInput(subs, Operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: Bare("x")}}, 1999)...))
	require.Len(t, Planned(t, many).Actions, 1)
	many = CreateInput(subs, Operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: Bare("x")}}, 2000)...))
	require.Equal(t, []string{create.ReasonPlanTooLarge}, Reasons(Planned(t, many).Result))

	in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(Referring(subs, p)...)
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](Planned(t, in).Actions)
	size := 0
	for _, s := range got.Status.Plan {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		size += len(data)
	}
	in.InstallPlans, in.Subscriptions = olmcore.Found[*v1alpha1.InstallPlan](), olmcore.Found(subs...)
	in.Config.MaxStatusBytes = size
	require.Len(t, Planned(t, in).Actions, 1)
	in.Config.MaxStatusBytes = size - 1
	require.Equal(t, []string{create.ReasonPlanTooLarge}, Reasons(Planned(t, in).Result))
}

const accountAnnotation = "olmcore/service-account"

// ExamplePlan creates a plan that every Subscription of the namespace owns.
func ExamplePlan() {
	subscription := func(name, approval string) *v1alpha1.Subscription {
		return &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID("uid-of-" + name)},
			Spec:       &v1alpha1.SubscriptionSpec{Package: name, InstallPlanApproval: v1alpha1.Approval(approval)},
		}
	}
	a, b := subscription("a", "Manual"), subscription("b", "Automatic")
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "b.v1"}}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	outcome, err := create.Plan(create.Input{
		Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Namespace: "ops",
		Subscriptions: olmcore.Found(a, b), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		OperatorGroups:         olmcore.Found[*operatorsv1.OperatorGroup](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](), ConfigMaps: olmcore.Found[*corev1.ConfigMap](),
		Resolution: olmcore.Resolution{
			Observed:  []olmcore.SubscriptionFingerprint{olmcore.FingerprintOf(a), olmcore.FingerprintOf(b)},
			Decisions: []olmcore.SubscriptionDecision{{Name: "a"}, {Name: "b", CurrentCSV: "b.v1", Changed: true}},
			Operators: []olmcore.Operator{{Name: "b.v1", Package: "b", For: []string{"b"}, Bundle: olmcore.Bundle{Objects: []olmcore.Object{version}}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := outcome.Actions[0].(olmcore.Create).Object.(*v1alpha1.InstallPlan)
	for _, owner := range plan.OwnerReferences {
		fmt.Println("owner:", owner.Kind, owner.Name)
	}
	fmt.Println("approval:", plan.Spec.Approval, plan.Spec.Approved)
	for _, d := range outcome.Diagnostics {
		fmt.Println(d.Reason+":", d.Message)
	}
	// Output:
	// owner: Subscription a
	// owner: Subscription b
	// approval: Manual false
	// ManualBecauseOf: the plan needs approval because of Subscription a
}
