// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

func createInput(subs []*v1alpha1.Subscription, operators ...olmcore.Operator) create.Input {
	return create.Input{Now: noon, Namespace: ns, Subscriptions: olmcore.Found(subs...), Resolution: installs(operators...)(subs)}
}

func planned(t testing.TB, in create.Input) create.Outcome {
	t.Helper()
	out, err := create.Plan(completed(in))
	require.NoError(t, err)
	return out
}

// completed says that what the input lacks does not exist.
func completed(in create.Input) create.Input {
	in.Subscriptions.Complete, in.InstallPlans.Complete, in.OperatorGroups.Complete = true, true, true
	in.ClusterServiceVersions.Complete, in.ConfigMaps.Complete = true, true
	return in
}

// made returns the plan that Create asks for, as the cluster then has it.
func made(t testing.TB, out create.Outcome) *v1alpha1.InstallPlan {
	t.Helper()
	require.Len(t, out.Actions, 1)
	p := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion, p.CreationTimestamp = "uid-plan", "1", metav1.NewTime(noon)
	return p
}

// referring returns the Subscriptions as they refer to a plan.
func referring(subs []*v1alpha1.Subscription, p *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	var out []*v1alpha1.Subscription
	for _, s := range subs {
		s = s.DeepCopy()
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: ns, Name: p.Name, UID: p.UID}
		out = append(out, s)
	}
	return out
}

// TestCreateMakesAPlanInTwoRounds: the object first, its status when every
// Subscription that it changes refers to it.
func TestCreateMakesAPlanInTwoRounds(t *testing.T) {
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

// TestWhoOwnsAPlan has the acceptance table of the relation between plans and
// their Subscriptions.
func TestWhoOwnsAPlan(t *testing.T) {
	a, b := subscription("a"), subscription("b")
	installedA := subscription("a", manual, func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.InstallPlanGeneration = "a.v0", "a.v0", 4
	})
	both := []*v1alpha1.Subscription{installedA, b}

	t.Run("a resolution of other Subscriptions is not acted on", func(t *testing.T) {
		in := createInput([]*v1alpha1.Subscription{a, b}, operator("b"))
		in.Subscriptions = olmcore.Found(a)
		out := planned(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, []string{create.ReasonStaleResolution}, reasons(out.Result))

		in.Subscriptions = olmcore.Found(a, subscription("b", func(s *v1alpha1.Subscription) { s.Generation = 2 }))
		require.Equal(t, []string{create.ReasonStaleResolution}, reasons(planned(t, in).Result))
	})
	t.Run("a Manual Subscription and a new Automatic one both own the new plan", func(t *testing.T) {
		out := planned(t, createInput(both, operator("b")))
		p := made(t, out)
		same(t, []metav1.OwnerReference{ownerRef(installedA), ownerRef(b)}, p.OwnerReferences)
		require.Equal(t, map[string]string{"olm.managed": "true", "operators.coreos.com/b.ops": ""}, p.Labels)
		require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval)
		require.False(t, p.Spec.Approved)
		require.Equal(t, 5, p.Spec.Generation)
		require.Equal(t, []string{create.ReasonManualBecauseOf}, reasons(out.Result))
		require.Equal(t, "the plan needs approval because of Subscription a", out.Diagnostics[0].Message)
	})
	t.Run("a waits for its plan, b is new: the second plan has both", func(t *testing.T) {
		first := made(t, planned(t, createInput([]*v1alpha1.Subscription{a}, operator("a"))))
		pending := referring([]*v1alpha1.Subscription{a}, first)[0]
		pending.Status.CurrentCSV = "a.v1"
		in := createInput([]*v1alpha1.Subscription{pending, b}, operator("a"), operator("b"))
		in.InstallPlans = olmcore.Found(first)
		second := made(t, planned(t, in))
		require.Equal(t, []string{"a.v1", "b.v1"}, second.Spec.ClusterServiceVersionNames)
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, second.OwnerReferences)
		require.Equal(t, 2, second.Spec.Generation)
		require.False(t, in.Resolution.Decisions[0].Changed, "a keeps its reference")
	})
	t.Run("a reference without an owner is repaired", func(t *testing.T) {
		p := plan(installing, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(a))
		r := reconcile(t, input(p, with(a, subscription("b", refersTo("install-x")))))
		after := r.Actions[0].(olmcore.Update).After
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, after.GetOwnerReferences())
		require.Contains(t, after.GetLabels(), "operators.coreos.com/b.ops")
	})
	t.Run("a dependency's Subscription becomes an owner", func(t *testing.T) {
		d := subscription("d", func(s *v1alpha1.Subscription) {
			s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
		})
		r := reconcile(t, input(plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a)), with(a, d)))
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(d)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a Subscription that was made anew replaces its former self", func(t *testing.T) {
		again := subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-again", metav1.NewTime(noon)
		})
		r := reconcile(t, input(plan(requiresApproval, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(a, b)), with(a, again)))
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(again)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a cache that is behind drops no newer owner", func(t *testing.T) {
		old := subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-before", metav1.NewTime(born.Add(-time.Hour))
		})
		r := reconcile(t, input(plan(requiresApproval, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(b)), with(old)))
		same(t, []metav1.OwnerReference{ownerRef(b), ownerRef(old)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("two workers with one view ask for one name", func(t *testing.T) {
		in := createInput(both, operator("b"))
		require.Equal(t, made(t, planned(t, in)).Name, made(t, planned(t, in)).Name)
	})
	t.Run("a second worker with another view joins the plan of the first", func(t *testing.T) {
		first := made(t, planned(t, createInput([]*v1alpha1.Subscription{b}, operator("b"))))
		in := createInput(both, operator("b"))
		in.InstallPlans = olmcore.Found(first)
		out := planned(t, in)
		require.Equal(t, []string{"update InstallPlan ops/" + first.Name + " (ManualOwner)"}, describe(out.Result))
		after := out.Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
		same(t, []metav1.OwnerReference{ownerRef(b), ownerRef(installedA)}, after.OwnerReferences)
		require.Equal(t, v1alpha1.ApprovalManual, after.Spec.Approval)
		require.False(t, after.Spec.Approved)
	})
	t.Run("lost references and labels come back from the plan's own memory", func(t *testing.T) {
		p := made(t, planned(t, createInput([]*v1alpha1.Subscription{a, b}, operator("a"), operator("b"))))
		p.OwnerReferences, p.Labels = nil, nil
		p.Status.Phase, p.Status.Plan, p.Finalizers = complete, []*v1alpha1.Step{csvStep("a.v1")}, nil
		after := reconcile(t, input(p, with(a, b))).Actions[0].(olmcore.Update).After
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, after.GetOwnerReferences())
		same(t, map[string]string{"operators.coreos.com/a.ops": "", "operators.coreos.com/b.ops": ""}, after.GetLabels())
	})
}

// TestMeetOrMake has the rule by which a plan is found again.
func TestMeetOrMake(t *testing.T) {
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

// TestWhatCannotBePlannedIsSaid: never a plan that installs a part.
func TestWhatCannotBePlannedIsSaid(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a"), subscription("b")}
	image := olmcore.Operator{Name: "b.v1", Package: "b", Bundle: olmcore.Bundle{Image: "quay.io/b@sha256:1"}}
	two, misnamed, bare, strange := operator("b"), operator("b"), operator("b"), operator("b")
	two.Bundle.Objects = append(two.Bundle.Objects, csv("c.v1"))
	misnamed.Name = "b.v2"
	bare.Bundle.Objects = nil
	strange.Bundle.Properties = []olmcore.Property{{Type: "x", Value: []byte("{")}}
	large := operator("b", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Data: map[string]string{"x": strings.Repeat("x", 1<<20)}})
	for name, c := range map[string]struct {
		operator olmcore.Operator
		reason   string
		message  string
	}{
		"an image": {image, create.ReasonBundleNotUnpacked, "operator b.v1: the objects of bundle image quay.io/b@sha256:1 are not known"},
		"nothing":  {bare, create.ReasonBundleInvalid, "operator b.v1: its bundle has neither objects nor an image"},
		"two CSVs": {two, create.ReasonBundleInvalid, "operator b.v1: its bundle has more than one ClusterServiceVersion"},
		"another":  {misnamed, create.ReasonBundleInvalid, `operator b.v2: its bundle's ClusterServiceVersion is named "b.v1"`},
		"property": {strange, create.ReasonBundleInvalid, `operator b.v1: failed to load bundle properties for "b.v1": json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input`},
		"large":    {large, create.ReasonPlanTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := planned(t, createInput(subs, operator("a"), c.operator))
			require.Empty(t, out.Actions)
			require.Equal(t, []string{c.reason}, reasons(out.Result))
			if c.message != "" {
				require.Equal(t, c.message, out.Diagnostics[0].Message)
			}
		})
	}
}

// TestNobodyIsWaitedForInVain: a Subscription that goes, or that the resolution
// left out, never refers to the plan.
func TestNobodyIsWaitedForInVain(t *testing.T) {
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

// TestWhatIsNotVisibleIsWaitedFor before a plan of the same content is made
// again.
func TestWhatIsNotVisibleIsWaitedFor(t *testing.T) {
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

// TestASubscriptionOfAPlanThatNeverStartedMovesOn to the plan that has its
// version.
func TestASubscriptionOfAPlanThatNeverStartedMovesOn(t *testing.T) {
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

func TestNothingToInstall(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	require.Equal(t, create.Outcome{}, planned(t, createInput(subs)))
	in := createInput(subs, operator("a"))
	in.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true}
	require.Equal(t, create.Outcome{}, planned(t, in))
}

// TestStepsOfABundle: their order, kinds, and what the version carries.
func TestStepsOfABundle(t *testing.T) {
	o := operator("a",
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}},
		crdObject("v1"))
	o.Replaces = "a.v0"
	o.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"a"}`)}}
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy.StrategySpec.Permissions =
		[]v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "a", Rules: rules()}}
	steps, diagnostics, err := create.StepsFromBundle(o, ns)
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	var kinds []string
	for _, s := range steps {
		kinds = append(kinds, s.Resource.Kind)
		require.Equal(t, "a.v1", s.Resolving)
		require.Equal(t, "cool", s.Resource.CatalogSource)
		require.True(t, strings.HasSuffix(s.Resource.Manifest, "}\n"))
	}
	require.Equal(t, []string{"ClusterServiceVersion", "BundleSecret", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding"}, kinds)
	require.Contains(t, steps[0].Resource.Manifest, `"replaces":"a.v0"`)
	require.Contains(t, steps[0].Resource.Manifest, `"operatorframework.io/properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\"}}]}"`)
	require.NotContains(t, steps[4].Resource.Manifest, `"kind":"Role"`, "as OLM writes it")

	o.Bundle.Objects = append(o.Bundle.Objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "t"}, "spec": map[string]any{"replicas": int(1)},
	}})
	steps, _, err = create.StepsFromBundle(o, ns)
	require.NoError(t, err)
	require.Equal(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"replicas":1}}`+"\n", steps[3].Resource.Manifest)

	_, _, err = create.StepsFromBundle(o, "")
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, _, err = create.StepsFromBundle(olmcore.Operator{}, ns)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestNoPlanIsMadeThatNoSubscriptionWouldReferTo: it would never get its steps, be
// deleted for that, and made again.
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

// TestAPlanWaitsForWhoseOwnPlanIsGone: b waits for a version that the plan brings, and
// its own plan is gone. Had the plan its steps before b decides, b might forget the
// version while that is installed.
func TestAPlanWaitsForWhoseOwnPlanIsGone(t *testing.T) {
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
