// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// TestPlanIsMadeInTwoRounds: the object first, its status when every Subscription that it changes refers to it.
//
// OLM's case: a new Subscription gets the steps of a version.
func TestPlanIsMadeInTwoRounds(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a"), subscription("b")}
	in := createInput(subs, operator("a"), operator("b"))
	first := planned(t, in)
	p := made(t, first)
	require.Equal(t, olmcore.Ref{}, first.Plan)
	hash := p.Annotations["olmcore/content-hash"]
	require.Len(t, hash, 64)
	same(t, &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: "install-" + olmcore.NameSuffix(10, hash, "1"), UID: "uid-plan", ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(noon), Finalizers: []string{installplan.Finalizer},
			Labels: map[string]string{"olm.managed": "true", "operators.coreos.com/a.ops": "", "operators.coreos.com/b.ops": ""},
			Annotations: map[string]string{
				"olmcore/content-hash": hash, "olmcore/contributors": "uid-a,uid-b", "olmcore/packages": "a,b",
			},
			OwnerReferences: []metav1.OwnerReference{ownerRef(subs[0]), ownerRef(subs[1])},
		},
		Spec: v1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{"a.v1", "b.v1"}, Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1,
		},
		Status: v1alpha1.InstallPlanStatus{CatalogSources: []string{}},
	}, p)

	in.InstallPlans = olmcore.Found(p)
	waits := planned(t, in)
	require.Empty(t, waits.Actions)
	require.Equal(t, olmcore.RefOf(p).Unversioned(), waits.Plan)
	require.Equal(t, 1, waits.Generation)
	require.Equal(t, "Subscription a, b does not refer to the plan yet", waits.Diagnostics[0].Message)

	in.Subscriptions = olmcore.Found(append(referring(subs[:1], p), subs[1])...)
	require.Empty(t, planned(t, in).Actions, "one of two is not enough")

	in.Subscriptions = olmcore.Found(referring(subs, p)...)
	in.Subscriptions.Items[0].Status.CurrentCSV = "a.v1" // what the resolution itself brings is no change
	last := planned(t, in)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, describe(last.Result))
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](last.Actions)
	require.Equal(t, installing, got.Status.Phase)
	require.Equal(t, []string{"cool"}, got.Status.CatalogSources)
	require.Equal(t, []v1alpha1.StepStatus{unknown, unknown}, statuses(got.Status))
	require.Equal(t, []olmcore.Transition{{
		Target: last.Plan, Type: "Phase", To: "Installing", At: metav1.NewTime(noon), Bound: olmcore.Exact, Certainty: olmcore.CertaintyObserved,
	}}, last.Transitions)

	in.InstallPlans = olmcore.Found(got)
	settled := planned(t, in)
	require.True(t, settled.Empty())
	require.Equal(t, waits.Plan, settled.Plan)
}

// TestFindsThePlanOfItsContent has the rule by which a plan is found again.
//
// OLM's case: failing forward by skips and ranges, not by replaces.
func TestFindsThePlanOfItsContent(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
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

	out := planned(t, done(failed))
	require.Equal(t, 2, made(t, out).Spec.Generation, "a failed plan that nobody refers to is not waited for")

	refers := done(failed)
	refers.Subscriptions = olmcore.Found(referring(subs, p)...)
	refers.Resolution = installs(operator("a"))(refers.Subscriptions.Items)
	out = planned(t, refers)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonPreviousPlanFailed}, reasons(out.Result))

	finished := done(complete)
	require.Equal(t, 2, made(t, planned(t, finished)).Spec.Generation, "its version is gone, so it is installed again")
	finished.ClusterServiceVersions = olmcore.Found(csv("a.v1"))
	out = planned(t, finished)
	require.True(t, out.Empty())
	require.Equal(t, p.Name, out.Plan.Name)

	deleted := with(func(q *v1alpha1.InstallPlan) { q.DeletionTimestamp = ago(0) })
	require.Equal(t, 2, made(t, planned(t, deleted)).Spec.Generation)

	other := with(func(q *v1alpha1.InstallPlan) { q.Annotations = nil })
	require.Equal(t, 2, made(t, planned(t, other)).Spec.Generation, "a plan is never met by its generation")

	taken := with(func(q *v1alpha1.InstallPlan) {
		q.Annotations, q.Spec.Generation = nil, 0
	})
	require.NotEqual(t, p.Name, made(t, planned(t, taken)).Name, "the name belongs to something else")
}

// TestWhichOfSeveralPlansIsUsed: the one of the highest generation, then the oldest.
func TestWhichOfSeveralPlansIsUsed(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	another := func(name string, generation int, age time.Duration) *v1alpha1.InstallPlan {
		q := p.DeepCopy()
		q.Name, q.Spec.Generation, q.CreationTimestamp = name, generation, *ago(age)
		return q
	}
	in.InstallPlans = olmcore.Found(another("a", 1, time.Hour), another("c", 2, time.Second), another("b", 2, time.Minute), another("d", 1, 0))
	require.Equal(t, "b", planned(t, in).Plan.Name)
	in.InstallPlans = olmcore.Found(another("c", 2, time.Minute), another("b", 2, time.Second))
	require.Equal(t, "c", planned(t, in).Plan.Name)
}

// TestPlanThatOnlySaysItHasTheContentIsNotUsed: its steps are looked at, so that no Subscription refers to steps that
// another tenant wrote under its hash.
func TestPlanThatOnlySaysItHasTheContentIsNotUsed(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a", manual)}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(referring(subs, p)...)
	p, _ = olmcore.StatusOf[*v1alpha1.InstallPlan](planned(t, in).Actions)
	create := func(change func(*v1alpha1.InstallPlan)) create.Outcome {
		existing := p.DeepCopy()
		change(existing)
		in.InstallPlans = olmcore.Found(existing)
		return planned(t, in)
	}
	require.Equal(t, p.Name, create(func(*v1alpha1.InstallPlan) {}).Plan.Name)
	require.Equal(t, p.Name, create(func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Status = present }).Plan.Name, "how far it is does not count")
	for name, forge := range map[string]func(*v1alpha1.InstallPlan){
		"another manifest": func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = "{}" },
		"one step more":    func(p *v1alpha1.InstallPlan) { p.Status.Plan = append(p.Status.Plan, roleStep("a.v1", "evil")) },
		"an empty step":    func(p *v1alpha1.InstallPlan) { p.Status.Plan = append(p.Status.Plan, nil) },
		"a lookup instead": func(p *v1alpha1.InstallPlan) {
			p.Status.Plan, p.Status.BundleLookups = nil, []v1alpha1.BundleLookup{lookup(t)}
		},
	} {
		out := create(forge)
		require.Empty(t, out.Plan.Name, name)
		require.Len(t, out.Actions, 1, name)
		require.IsType(t, olmcore.Create{}, out.Actions[0], name)
	}
}

// TestWaitsForNoSubscriptionThatWillNotRefer: a Subscription that goes, or that the resolution left out, never refers
// to the plan.
func TestWaitsForNoSubscriptionThatWillNotRefer(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a"), subscription("b"), subscription("c")}
	in := createInput(subs, operator("a"), operator("b"), operator("c"))
	in.Resolution.Decisions[2].Failure = &olmcore.ResolutionFailure{Message: "no"}
	p := made(t, planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	in.Subscriptions = olmcore.Found(append(referring(subs[:1], p), subs[1:]...)...)
	out := planned(t, in)
	require.Equal(t, []string{"a", "b"}, out.Subscriptions)
	require.Empty(t, out.Actions)
	in.Subscriptions.Items[1] = subscription("b", func(s *v1alpha1.Subscription) { s.DeletionTimestamp = ago(0) })
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, describe(planned(t, in).Result))
}

// TestWaitsForPlansThatAreNotVisibleYet before a plan of the same content is made again.
func TestWaitsForPlansThatAreNotVisibleYet(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	seen := referring(subs, p)
	seen[0].Status.InstallPlanGeneration, seen[0].Status.LastUpdated = 1, *ago(9 * time.Second)
	in.Subscriptions, in.Resolution = olmcore.Found(seen...), installs(operator("a"))(seen)
	out := planned(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonPlanNotVisible}, reasons(out.Result))
	require.Equal(t, time.Second, out.RequeueAfter)
	in.Now = noon.Add(time.Second)
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation)

	p.Status.Phase = complete
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{condition("True", "", "")}
	in = createInput(subs, operator("a"))
	in.InstallPlans = olmcore.Found(p)
	out = planned(t, in)
	require.Empty(t, out.Actions, "its versions may not be visible yet")
	require.Equal(t, 10*time.Second, out.RequeueAfter)
}

// TestDoesNotWaitForDeletedPlansAndVersions: plans that go, and versions that go.
func TestDoesNotWaitForDeletedPlansAndVersions(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	done := p.DeepCopy()
	done.Status.Phase = complete
	done.Status.Conditions = []v1alpha1.InstallPlanCondition{condition("True", "", "")}
	going := done.DeepCopy()
	going.DeletionTimestamp = ago(0)
	in.InstallPlans = olmcore.Found(going)
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation)

	done.Status.Conditions = nil
	in.InstallPlans = olmcore.Found(done)
	in.ClusterServiceVersions = olmcore.Found(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) }))
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation, "the version goes")
	in.ClusterServiceVersions = olmcore.Found(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }))
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation, "a copy is not the version")

	// Another plan took the name since: what is referred to is still not visible.
	seen := referring(subs, p)
	seen[0].Status.InstallPlanGeneration, seen[0].Status.LastUpdated = 1, metav1.NewTime(noon)
	in.Subscriptions, in.Resolution = olmcore.Found(seen...), installs(operator("a"))(seen)
	other := p.DeepCopy()
	other.UID, other.Annotations = "uid-other", nil
	in.InstallPlans = olmcore.Found(other)
	require.Equal(t, []string{create.ReasonPlanNotVisible}, reasons(planned(t, in).Result))
}

// TestSubscriptionOfAPlanWithoutStepsMovesToTheNewPlan to the plan that has its version.
func TestSubscriptionOfAPlanWithoutStepsMovesToTheNewPlan(t *testing.T) {
	a, b := subscription("a"), subscription("b")
	first := made(t, planned(t, createInput([]*v1alpha1.Subscription{b}, operator("b"))))
	stranded := referring([]*v1alpha1.Subscription{b}, first)[0]
	stranded.Status.CurrentCSV = "b.v1"
	in := createInput([]*v1alpha1.Subscription{a, stranded}, operator("a"), operator("b"))
	in.InstallPlans = olmcore.Found(first)
	second := made(t, planned(t, in))
	second.UID = "uid-second"
	in.InstallPlans.Items = append(in.InstallPlans.Items, second)
	require.Equal(t, []string{"a", "b"}, planned(t, in).Subscriptions)
	first.Status.Phase, first.Status.Plan = installing, []*v1alpha1.Step{csvStep("b.v1")}
	require.Equal(t, []string{"a"}, planned(t, in).Subscriptions)
}

// TestOnlySubscriptionsOfThePlanWithoutStepsMove: only of one that refers to the plan that never started.
func TestOnlySubscriptionsOfThePlanWithoutStepsMove(t *testing.T) {
	a, b := subscription("a"), subscription("b", current("b.v1"))
	in := createInput([]*v1alpha1.Subscription{a, b}, operator("a"), operator("b"))
	empty := plan(none, nil)
	p := made(t, planned(t, in))
	in.InstallPlans = olmcore.Found(empty, p)
	require.Equal(t, []string{"a"}, planned(t, in).Subscriptions)
}

// TestNothingToInstall has cases of OLM.
//
// OLM's case: nothing new, no steps.
func TestNothingToInstall(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	require.Equal(t, create.Outcome{}, planned(t, createInput(subs)))
	in := createInput(subs, operator("a"))
	in.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true}
	require.Equal(t, create.Outcome{}, planned(t, in))
}

// TestNoPlanIsMadeThatNoSubscriptionWouldReferTo: it would never get its steps, be deleted for that, and made again.
func TestNoPlanIsMadeThatNoSubscriptionWouldReferTo(t *testing.T) {
	has := func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.InstalledCSV = s.Spec.Package+".v1", s.Spec.Package+".v1"
	}
	going := func(s *v1alpha1.Subscription) { s.DeletionTimestamp = ago(0) }
	empty := &v1alpha1.InstallPlan{ObjectMeta: meta("old")}
	empty.UID = "uid-old"
	image := operator("a")
	image.Bundle = olmcore.Bundle{Image: "registry.example.com/a:1"}
	for name, tc := range map[string]struct {
		subs    []*v1alpha1.Subscription
		plans   []*v1alpha1.InstallPlan
		of      []olmcore.Operator
		wants   []string
		lookups int
	}{
		"a version that was removed":      {subs: []*v1alpha1.Subscription{subscription("a", has)}, of: []olmcore.Operator{operator("a")}},
		"an image that was removed":       {subs: []*v1alpha1.Subscription{subscription("a", has)}, of: []olmcore.Operator{image}},
		"an image that is new":            {subs: []*v1alpha1.Subscription{subscription("a")}, of: []olmcore.Operator{image}, lookups: 1},
		"its plan never got steps":        {subs: []*v1alpha1.Subscription{subscription("a", has, refersTo("old"))}, plans: []*v1alpha1.InstallPlan{empty}, of: []olmcore.Operator{operator("a")}, wants: []string{"a.v1"}},
		"who wants it is being deleted":   {subs: []*v1alpha1.Subscription{subscription("a", going)}, of: []olmcore.Operator{operator("a")}},
		"another Subscription is changed": {subs: []*v1alpha1.Subscription{subscription("a", has), subscription("b")}, of: []olmcore.Operator{operator("a"), operator("b")}, wants: []string{"a.v1", "b.v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := createInput(tc.subs, tc.of...)
			in.InstallPlans = olmcore.Found(tc.plans...)
			out := planned(t, in)
			require.Len(t, out.Lookups, tc.lookups)
			if tc.wants == nil {
				require.Empty(t, out.Actions)
				return
			}
			require.Equal(t, tc.wants, made(t, out).Spec.ClusterServiceVersionNames)
		})
	}
}

// TestStepsWaitForSubscriptionsWhosePlanIsGone: b waits for a version that the plan brings, and its own plan is gone.
// Had the plan its steps before b decides, b might forget the version while that is installed.
func TestStepsWaitForSubscriptionsWhosePlanIsGone(t *testing.T) {
	b := subscription("b", refersTo("gone"), func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.State = "b.v1", v1alpha1.SubscriptionStateUpgradePending
	})
	a := subscription("a")
	in := createInput([]*v1alpha1.Subscription{a, b}, operator("a"), operator("b"))
	p := made(t, planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	a = a.DeepCopy()
	refersTo(p.Name)(a)
	a.Status.CurrentCSV, a.Status.InstallPlanRef.UID = "a.v1", p.UID
	in.Subscriptions = olmcore.Found(a, b)
	out := planned(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, reasons(out.Result))

	removed := b.DeepCopy()
	removed.Status.InstalledCSV = "b.v1" // no Subscription waits for it
	in.Subscriptions = olmcore.Found(a, removed)
	in.Resolution.Observed[1] = olmcore.FingerprintOf(removed)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, describe(planned(t, in).Result))

	follower := b.DeepCopy()
	follower.Status.InstallPlanRef = a.Status.InstallPlanRef
	in.Subscriptions = olmcore.Found(a, follower)
	in.Resolution.Observed[1] = olmcore.FingerprintOf(follower)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, describe(planned(t, in).Result))
}

// TestNoPlanWaitsForApprovalUnreferenced: without a Subscription that refers to it a plan gets no steps.
func TestNoPlanWaitsForApprovalUnreferenced(t *testing.T) {
	s := subscription("a", manual)
	in := create.Input{Now: noon, Namespace: ns, Resolution: installs(operator("a"))([]*v1alpha1.Subscription{s}), Subscriptions: olmcore.Found(s)}
	made, err := create.Plan(completed(in))
	require.NoError(t, err)
	s.Status.CurrentCSV = "a.v1"
	in.Resolution = installs(operator("a"))(in.Subscriptions.Items)
	p := made.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion = types.UID("uid-"+p.Name), "1"
	in.InstallPlans = olmcore.Found(p)
	out, err := create.Plan(completed(in))
	require.NoError(t, err)
	require.Empty(t, out.Actions)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, reasons(out.Result))
	refersTo(p.Name)(s)
	in.Resolution = installs(operator("a"))(in.Subscriptions.Items)
	out, err = create.Plan(completed(in))
	require.NoError(t, err)
	require.Equal(t, []string{"updateStatus InstallPlan ops/" + p.Name + " (PlanReady)"}, describe(out.Result))
}

// TestPlansWithoutContentAreNotUsed, nor do generations count that mean nothing.
func TestPlansWithoutContentAreNotUsed(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a", func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = -3 })}
	in := createInput(subs, operator("a"))
	in.InstallPlans = olmcore.Found(plan(complete, nil, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = -7 }))
	require.Equal(t, 1, made(t, planned(t, in)).Spec.Generation)
}

// TestSizeLimitsOfAPlan, to the byte and to the step.
func TestSizeLimitsOfAPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a", &corev1.ConfigMap{ObjectMeta: bare("x")}))
	p := made(t, planned(t, in))
	many := createInput(subs, operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: bare("x")}}, 1999)...))
	require.Len(t, planned(t, many).Actions, 1)
	many = createInput(subs, operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: bare("x")}}, 2000)...))
	require.Equal(t, []string{create.ReasonPlanTooLarge}, reasons(planned(t, many).Result))

	in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(referring(subs, p)...)
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](planned(t, in).Actions)
	size := 0
	for _, s := range got.Status.Plan {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		size += len(data)
	}
	in.InstallPlans, in.Subscriptions = olmcore.Found[*v1alpha1.InstallPlan](), olmcore.Found(subs...)
	in.Config.MaxStatusBytes = size
	require.Len(t, planned(t, in).Actions, 1)
	in.Config.MaxStatusBytes = size - 1
	require.Equal(t, []string{create.ReasonPlanTooLarge}, reasons(planned(t, in).Result))
}
