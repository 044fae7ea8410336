// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestOwnersOfAPlan checks the relations between plans and their Subscriptions in typical situations.
func TestOwnersOfAPlan(t *testing.T) {
	a, b := Subscription("a"), Subscription("b")
	installedA := Subscription("a", Manual, func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.InstallPlanGeneration = "a.v0", "a.v0", 4
	})
	both := []*v1alpha1.Subscription{installedA, b}

	t.Run("a resolution of other Subscriptions is not acted on", func(t *testing.T) {
		in := CreateInput([]*v1alpha1.Subscription{a, b}, Operator("b"))
		in.Subscriptions = olmcore.Found(a)
		out := Planned(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, []string{create.ReasonStaleResolution}, Reasons(out.Result))

		in.Subscriptions = olmcore.Found(a, Subscription("b", func(s *v1alpha1.Subscription) { s.Generation = 2 }))
		require.Equal(t, []string{create.ReasonStaleResolution}, Reasons(Planned(t, in).Result))
	})
	t.Run("a Manual Subscription and a new Automatic one both own the new plan", func(t *testing.T) {
		out := Planned(t, CreateInput(both, Operator("b")))
		p := Made(t, out)
		Same(t, []metav1.OwnerReference{OwnerRef(installedA), OwnerRef(b)}, p.OwnerReferences)
		require.Equal(t, map[string]string{"olm.managed": "true", "operators.coreos.com/b.ops": ""}, p.Labels)
		require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval)
		require.False(t, p.Spec.Approved)
		require.Equal(t, 5, p.Spec.Generation)
		require.Equal(t, []string{create.ReasonManualBecauseOf}, Reasons(out.Result))
		require.Equal(t, "the plan needs approval because of Subscription a", out.Diagnostics[0].Message)
	})
	t.Run("a waits for its plan, b is new: the second plan has both", func(t *testing.T) {
		first := Made(t, Planned(t, CreateInput([]*v1alpha1.Subscription{a}, Operator("a"))))
		pending := Referring([]*v1alpha1.Subscription{a}, first)[0]
		pending.Status.CurrentCSV = "a.v1"
		in := CreateInput([]*v1alpha1.Subscription{pending, b}, Operator("a"), Operator("b"))
		in.InstallPlans = olmcore.Found(first)
		second := Made(t, Planned(t, in))
		require.Equal(t, []string{"a.v1", "b.v1"}, second.Spec.ClusterServiceVersionNames)
		Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(b)}, second.OwnerReferences)
		require.Equal(t, 2, second.Spec.Generation)
		require.False(t, in.Resolution.Decisions[0].Changed, "a keeps its reference")
	})
	t.Run("a dependency's Subscription becomes an owner", func(t *testing.T) {
		d := Subscription("d", func(s *v1alpha1.Subscription) {
			s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
		})
		r := reconcile(t, input(Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(a)), with(a, d)))
		Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(d)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a stale list does not remove the owner that replaced a Subscription", func(t *testing.T) {
		old := Subscription("b", RefersTo("install-x"), func(s *v1alpha1.Subscription) { s.CreationTimestamp = metav1.NewTime(Noon) })
		again := Subscription("b", func(s *v1alpha1.Subscription) { s.UID = "uid-b-again" })
		plan := Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("b.v1")}, OwnedBy(a, again), func(p *v1alpha1.InstallPlan) {
			p.Annotations = map[string]string{"olmcore/contributors": string(a.UID) + "," + string(old.UID) + "," + string(again.UID)}
		})
		r := reconcile(t, input(plan, with(a, old)))
		Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(again), OwnerRef(old)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a Subscription that was created again is added", func(t *testing.T) {
		again := Subscription("b", RefersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-again", metav1.NewTime(Noon)
		})
		r := reconcile(t, input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("b.v1")}, OwnedBy(a, b)), with(a, again)))
		Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(b), OwnerRef(again)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a stale cache removes no newer owner", func(t *testing.T) {
		old := Subscription("b", RefersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-before", metav1.NewTime(Born.Add(-time.Hour))
		})
		r := reconcile(t, input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("b.v1")}, OwnedBy(b)), with(old)))
		Same(t, []metav1.OwnerReference{OwnerRef(b), OwnerRef(old)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a second worker with another view joins the plan of the first", func(t *testing.T) {
		first := Made(t, Planned(t, CreateInput([]*v1alpha1.Subscription{b}, Operator("b"))))
		in := CreateInput(both, Operator("b"))
		in.InstallPlans = olmcore.Found(first)
		out := Planned(t, in)
		require.Equal(t, []string{"update InstallPlan ops/" + first.Name + " (ManualOwner)"}, Describe(out.Result))
		after := out.Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
		Same(t, []metav1.OwnerReference{OwnerRef(b), OwnerRef(installedA)}, after.OwnerReferences)
		require.Equal(t, v1alpha1.ApprovalManual, after.Spec.Approval)
		require.False(t, after.Spec.Approved)
	})
	t.Run("lost references and labels come back from the plan's own memory", func(t *testing.T) {
		p := Made(t, Planned(t, CreateInput([]*v1alpha1.Subscription{a, b}, Operator("a"), Operator("b"))))
		p.OwnerReferences, p.Labels = nil, nil
		p.Status.Phase, p.Status.Plan, p.Finalizers = Complete, []*v1alpha1.Step{CSVStep("a.v1")}, nil
		after := reconcile(t, input(p, with(a, b))).Actions[0].(olmcore.Update).After
		Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(b)}, after.GetOwnerReferences())
		Same(t, map[string]string{"operators.coreos.com/a.ops": "", "operators.coreos.com/b.ops": ""}, after.GetLabels())
	})
}

func TestWrongRelationsAreRepaired(t *testing.T) {
	a := Subscription("a")
	marked := Subscription("g", Generated("install-x"))
	ref := func(change func(*corev1.ObjectReference)) *v1alpha1.Subscription {
		return Subscription("b", RefersTo("install-x"), func(s *v1alpha1.Subscription) { change(s.Status.InstallPlanRef) })
	}
	formed := func(change func(*metav1.OwnerReference)) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { change(&p.OwnerReferences[0]) }
	}
	for name, c := range map[string]struct {
		plan   *v1alpha1.InstallPlan
		subs   []olmcore.Object
		config installplan.Config
		repair bool
	}{
		"a reference to a plan of another namespace": {
			plan: Plan(Complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.Namespace = "there" })},
		},
		"a reference to an earlier plan of its name": {
			plan: Plan(Complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.UID = "before" })},
		},
		"a reference without UID": {
			plan: Plan(Complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.UID = "" })}, repair: true,
		},
		"a Subscription without UID": {
			plan: Plan(Complete, nil, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/b.ops": ""} }), subs: []olmcore.Object{Subscription("b", RefersTo("install-x"), func(s *v1alpha1.Subscription) { s.UID = "" })},
		},
		"a version that a finished plan installed": {
			plan: Plan(Complete, []*v1alpha1.Step{CSVStep("b.v1")}), subs: []olmcore.Object{Subscription("b", Current("b.v1"))},
		},
		"a version that a running plan installs": {
			plan: Plan(Installing, []*v1alpha1.Step{CSVStep("b.v1")}), subs: []olmcore.Object{Subscription("b", Current("b.v1"))}, repair: true,
		},
		"an owner under another name": {
			plan: Plan(Complete, nil, OwnedBy(a), formed(func(r *metav1.OwnerReference) { r.Name = "old" })), subs: []olmcore.Object{Subscription("a", RefersTo("install-x"))}, repair: true,
		},
		"an owner that controls": {
			plan: Plan(Complete, nil, OwnedBy(a), formed(func(r *metav1.OwnerReference) { r.Controller = new(true) })), subs: []olmcore.Object{Subscription("a", RefersTo("install-x"))}, repair: true,
		},
		"no finalizer if finalizers are disabled": {
			plan: Plan(Installing, nil, func(p *v1alpha1.InstallPlan) { p.Finalizers = nil }), config: installplan.Config{DisableFinalizer: true},
		},
		"a finalizer although finalizers are disabled": {
			plan: Plan(Installing, nil, Held), config: installplan.Config{DisableFinalizer: true}, repair: true,
		},
		"a running plan without finalizer":             {plan: Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")})},
		"a marked Subscription, without the finalizer": {plan: Plan(Complete, nil, OwnedBy(marked)), subs: []olmcore.Object{marked}},
		"a marked Subscription with another plan": {
			plan: Plan(Complete, nil, OwnedBy(marked)), subs: []olmcore.Object{Subscription("g", Generated("install-x"), RefersTo("install-y"))},
		},
		"a Manual owner of a finished plan": {
			plan: Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(a)), subs: []olmcore.Object{Subscription("a", Manual)},
		},
		"a Manual owner of a plan that has started": {
			plan: Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(a), Started(time.Second)), subs: []olmcore.Object{Subscription("a", Manual)},
		},
		"a Manual owner of a plan that was retried": {
			plan: Plan(Installing, []*v1alpha1.Step{WithStatus(Created, CSVStep("a.v1"))}, OwnedBy(a)), subs: []olmcore.Object{Subscription("a", Manual)},
		},
		"a Manual owner that is being deleted": {
			plan: Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(a)), subs: []olmcore.Object{Subscription("a", Manual, func(s *v1alpha1.Subscription) { s.DeletionTimestamp = Ago(0) })},
		},
		"a Manual owner of a plan that has not started": {
			plan: Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(a)), subs: []olmcore.Object{Subscription("a", Manual)}, repair: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.plan, with(c.subs...))
			in.Config = c.config
			actions := reconcile(t, in).Actions
			require.Equal(t, c.repair, len(actions) > 0 && slices.Contains([]string{installplan.ReasonRelationRepaired, installplan.ReasonManualOwner}, reasonOf(actions[0])))
		})
	}
}

func TestGeneratedSubscriptionOwnsThePlan(t *testing.T) {
	generated := Subscription("dep")
	generated.ObjectMeta, generated.Spec.StartingCSV = Bare("dep-stable-cool-olm"), "dep.v1"
	resolve := func(subs []*v1alpha1.Subscription) olmcore.Resolution {
		r := Installs(Operator("a"), Operator("dep"))(subs)
		if len(subs) == 1 {
			r.Generated = []*v1alpha1.Subscription{generated}
			return r
		}
		return olmcore.Resolution{}
	}
	c := World(t, UserSubscription("a"))
	driven(t, c, 0, makers(resolve, installplan.Config{}), plans(installplan.Config{}))
	p := onlyPlan(t, c)
	require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
	require.Len(t, p.OwnerReferences, 2)
	require.Contains(t, p.Labels, "operators.coreos.com/dep.ops")
	dep, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), c, NS, "dep-stable-cool-olm")
	require.NoError(t, err)
	require.Equal(t, p.Name, dep.Annotations[installplan.AnnotationGeneratedBy])
	require.True(t, olmcore.OwnedBy(p, dep.UID))
	require.Equal(t, []string{installplan.Finalizer}, p.Finalizers, "the mark on the Subscription is still there")
}

// TestReferencingSubscriptionBecomesAnOwner checks creators that install different versions and observe different
// Subscriptions. After one sweep, every Subscription that references a plan owns it.
func TestReferencingSubscriptionBecomesAnOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(UserSubscription("a"), UserSubscription("b"))
		require.NoError(t, err)
		Faults(t, c)
		views := []*fake.View{c.View("one"), c.View("two")}
		creators := []controller.Controller{
			makers(Installs(Operator("a")), installplan.Config{}), makers(Installs(Operator("b")), installplan.Config{}), makers(Installs(Operator("a"), Operator("b")), installplan.Config{}),
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			who, view := rapid.IntRange(0, 2).Draw(t, "who"), views[rapid.IntRange(0, 1).Draw(t, "view")]
			c.Faults().RestartController()
			if r, err := creators[who].Reconcile(t.Context(), view, types.NamespacedName{Namespace: NS}, c.Now(), nil); err == nil {
				_ = olmcore.Run(t.Context(), c, r.Actions)
			}
			if Maybe(t, "see") {
				views[rapid.IntRange(0, 1).Draw(t, "which")].Sync()
			}
			c.Advance(time.Second)
		}
		c.Faults().Clear()
		in, err := sweep.Gather(t.Context(), c, NS, installplan.Config{})
		require.NoError(t, err)
		in.Now = c.Now()
		require.NoError(t, olmcore.Run(t.Context(), c, Swept(t, in).Actions))
		for _, name := range []string{"a", "b"} {
			s := fake.Find[*v1alpha1.Subscription](c, NS, name)
			if ref := s.Status.InstallPlanRef; ref != nil {
				if p := fake.Find[*v1alpha1.InstallPlan](c, NS, ref.Name); p != nil {
					require.True(t, olmcore.OwnedBy(p, s.UID), "%s refers to %s", name, p.Name)
				}
			}
		}
	})
}

// TestStaleListRemovesNoOwner checks that a manager which still lists a deleted Subscription removes no reference to
// the Subscription that was created again with the same name. The garbage collector removes the reference to the
// deleted one.
func TestStaleListRemovesNoOwner(t *testing.T) {
	for _, order := range [][]string{{"current", "stale"}, {"stale", "current"}, {"stale", "current", "stale"}} {
		t.Run(strings.Join(order, " then "), func(t *testing.T) {
			plan := Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("b.v1")})
			c := World(t, UserSubscription("a"), plan)
			subscribe := func() {
				require.NoError(t, c.Create(UserSubscription("b")))
				require.NoError(t, fake.Edit(c, NS, "b", func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "b.v1" }))
			}
			a := fake.Find[*v1alpha1.Subscription](c, NS, "a")
			require.NoError(t, fake.Edit(c, NS, plan.Name, OwnedBy(a)))
			c.Advance(time.Minute)
			subscribe()
			views := map[string]*fake.View{"stale": c.View("stale")}
			b := fake.Find[*v1alpha1.Subscription](c, NS, "b")
			require.NoError(t, c.Delete(olmcore.RefOf(b)))
			c.Advance(time.Minute)
			subscribe()
			views["current"] = c.View("current")

			safety := invariant.Safety{Cluster: c}
			for _, manager := range order {
				views[manager].SyncKind(v1alpha1.SchemeGroupVersion.WithKind("InstallPlan"))
				key := types.NamespacedName{Namespace: NS, Name: plan.Name}
				r, err := plans(installplan.Config{}).Reconcile(t.Context(), views[manager], key, c.Now(), nil)
				require.NoError(t, err)
				require.NotEmpty(t, r.Actions, manager)
				require.NoError(t, olmcore.Run(t.Context(), c, r.Actions))
				require.NoError(t, safety.Check())
				require.NoError(t, c.Settle())
				require.NoError(t, safety.Check())
			}
			b = fake.Find[*v1alpha1.Subscription](c, NS, "b")
			Same(t, []metav1.OwnerReference{OwnerRef(a), OwnerRef(b)}, planNamed(t, c, plan.Name).OwnerReferences)
		})
	}
}

// TestSupersededPlanIsNotExecuted checks a Subscription a that waits for a plan of v2 when v3 is published together
// with b. If both plans are approved, the second one runs. The first one reports why it does not.
func TestSupersededPlanIsNotExecuted(t *testing.T) {
	for name, wait := range map[string]bool{"approved later": true, "approved before it is noticed": false} {
		t.Run(name, func(t *testing.T) {
			sub := UserSubscription("a")
			sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
			c := World(t, sub)
			run := func(controllers ...controller.Controller) {
				d := &fake.Driver{Cluster: c, Controllers: controllers}
				require.NoError(t, d.RunFor(t.Context(), time.Minute))
			}
			approve := func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }
			run(makers(Installs(operatorOf("a", "v2")), Things), plans(Things))
			first := onlyPlan(t, c)
			require.Equal(t, RequiresApproval, first.Status.Phase)
			require.NoError(t, c.Create(UserSubscription("b")))
			next := makers(Installs(operatorOf("a", "v3"), operatorOf("b", "v1")), Things)
			run(next)
			if wait {
				run(plans(Things), next)
				require.Equal(t, Failed, planNamed(t, c, first.Name).Status.Phase)
			}
			for _, p := range everyPlan(t, c) {
				require.NoError(t, fake.Edit(c, NS, p.Name, approve))
			}
			run(plans(Things), next)
			second := fake.Find[*v1alpha1.Subscription](c, NS, "a").Status.InstallPlanRef.Name
			first = planNamed(t, c, first.Name)
			require.Equal(t, Failed, first.Status.Phase)
			require.Equal(t, "superseded by InstallPlan "+second, first.Status.Message)
			require.EqualValues(t, "Superseded", first.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason)
			require.Equal(t, first.Status.Message, first.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
			require.Nil(t, first.Status.StartTime)
			require.Equal(t, Complete, planNamed(t, c, second).Status.Phase)
			versions, err := olmcore.List[*v1alpha1.ClusterServiceVersion](t.Context(), c, NS, nil)
			require.NoError(t, err)
			require.Len(t, versions, 2)
			require.Equal(t, []string{"a.v3", "b.v1"}, []string{versions[0].Name, versions[1].Name})
		})
	}
}

// TestLaterPlanSupersedesAnUnstartedPlan checks which later plans end a plan of generation 2 that has not started.
func TestLaterPlanSupersedesAnUnstartedPlan(t *testing.T) {
	type change = func(*v1alpha1.InstallPlan)
	packages := func(list string) change {
		return func(p *v1alpha1.InstallPlan) {
			p.Annotations = map[string]string{olmcore.KeyPrefix + "packages": list}
			for _, pkg := range []string{"a", "b"} {
				p.Labels, _ = olmcore.MergeMaps(p.Labels, map[string]string{olmcore.ComponentLabelPrefix + pkg + "." + NS: ""})
			}
		}
	}
	properties := func(text string) change {
		return func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = text }
	}
	later := func(name string, generation int, more ...change) *v1alpha1.InstallPlan {
		p := Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v2")})
		p.ObjectMeta, p.Spec.Generation = Meta(name), generation
		for _, f := range more {
			f(p)
		}
		return p
	}
	ofA := packages("a")
	started := func(p *v1alpha1.InstallPlan) { p.Status.StartTime = Ago(time.Second) }
	noSteps := func(p *v1alpha1.InstallPlan) { p.Status.Plan, p.Status.Phase = nil, None }
	deleted := func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(time.Second) }
	ended := func(p *v1alpha1.InstallPlan) {
		p.Status.Phase = Failed
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, "Superseded", "superseded by InstallPlan install-z")}
	}
	failed := func(p *v1alpha1.InstallPlan) { p.Status.Phase = Failed; started(p) }
	both := func(f, g change) change { return func(p *v1alpha1.InstallPlan) { f(p); g(p) } }
	generation := func(n int) change { return func(p *v1alpha1.InstallPlan) { p.Spec.Generation = n } }
	applied := func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Status = NotPresent }
	olmsVersion := properties(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1","annotations":` +
		`{"operatorframework.io/properties":"{\"properties\":[{\"type\":\"x\",\"value\":\"y\"},` +
		`{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\",\"version\":\"1\"}}]}"}}}`)
	olmsImage := properties(`{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"",` +
		`"properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\",\"version\":\"1\"}}]}"}`)
	type list = []*v1alpha1.InstallPlan
	type subscriptions = []*v1alpha1.Subscription
	const no = ""
	for name, c := range map[string]struct {
		change change
		later  list
		subs   subscriptions
		by     string
	}{
		"a later plan of the package has steps": {ofA, list{later("install-y", 3, ofA)}, nil, "install-y"},
		"a later plan has one of the packages": {
			packages("a,b"), list{later("install-y", 3, packages("b,c"))}, nil, "install-y",
		},
		"its Subscription still references it": {
			ofA, list{later("install-y", 3, ofA)}, subscriptions{follows("a", "install-x", 2)}, "install-y",
		},
		"the newest of several plans is named": {
			packages("a,b"), list{later("install-z", 4, packages("b")), later("install-y", 3, ofA)}, nil, "install-z",
		},
		"two later plans have one generation": {
			ofA, list{later("install-z", 3, ofA), later("install-y", 3, ofA)}, nil, "install-z",
		},
		"the name decides between plans of one generation":     {ofA, list{later("install-y", 2, ofA)}, nil, "install-y"},
		"the other plan of its generation comes first by name": {ofA, list{later("install-a", 2, ofA)}, nil, no},
		"the later plan has failed after its start":            {ofA, list{later("install-y", 3, ofA, failed)}, nil, "install-y"},
		"the later plan has no steps":                          {ofA, list{later("install-y", 3, ofA, noSteps)}, nil, no},
		"a plan without steps is newer than the one with steps": {
			ofA, list{later("install-z", 4, ofA, noSteps), later("install-y", 3, ofA)}, nil, "install-y",
		},
		"the later plan has other packages":        {ofA, list{later("install-y", 3, packages("b"))}, nil, no},
		"the later plan is being deleted":          {ofA, list{later("install-y", 3, ofA, deleted)}, nil, no},
		"the later plan was superseded":            {ofA, list{later("install-y", 3, ofA, ended)}, nil, no},
		"there is no later plan":                   {ofA, nil, subscriptions{follows("a", "install-y", 3)}, no},
		"its generation is unknown":                {both(ofA, generation(0)), list{later("install-y", 3, ofA)}, nil, no},
		"its generation is huge":                   {both(ofA, generation(math.MaxInt)), list{later("install-y", 3, ofA)}, nil, no},
		"the generation of the other plan is huge": {ofA, list{later("install-y", math.MaxInt, ofA)}, nil, no},
		"it has applied a step":                    {both(ofA, applied), list{later("install-y", 3, ofA)}, nil, no},
		"it has started":                           {both(ofA, started), list{later("install-y", 3, ofA)}, nil, no},
		"it and the later plan have started": {
			both(ofA, started), list{later("install-y", 3, ofA, started)}, nil, "install-y",
		},
		"OLM's plan names its packages in properties": {olmsVersion, list{later("install-y", 3, ofA)}, nil, "install-y"},
		"OLM's plan of an unpacked bundle":            {olmsImage, list{later("install-y", 3, ofA)}, nil, "install-y"},
		"it names no packages, and an owner references the later plan": {
			OwnedBy(Subscription("a"), Subscription("c")), list{later("install-y", 3)},
			subscriptions{follows("a", "install-y", 3), follows("c", "install-1", 1)}, "install-y",
		},
		"it names no packages, and its owner references it": {
			OwnedBy(Subscription("a")), list{later("install-y", 3)}, subscriptions{follows("a", "install-x", 2), follows("c", "install-y", 3)}, no,
		},
		"it names no packages and has no owners": {
			func(*v1alpha1.InstallPlan) {}, list{later("install-y", 3)}, subscriptions{follows("a", "install-y", 3)}, no,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for phase, approved := range map[v1alpha1.InstallPlanPhase]bool{RequiresApproval: false, Installing: true} {
				p := Plan(phase, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
					p.Spec.Approval, p.Spec.Approved, p.Spec.Generation = v1alpha1.ApprovalManual, approved, 2
				}, c.change)
				in := input(p, func(in *installplan.Input) {
					in.RelatedPlans, in.Subscriptions = olmcore.Found(c.later...), olmcore.Found(c.subs...)
					in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
				})
				for _, s := range c.subs { // its relations are in order
					if s.Status.InstallPlanRef.Name == p.Name {
						OwnedBy(s)(p)
					}
				}
				require.NoError(t, invariant.Laws(reconcileResult, in))
				r := reconcile(t, in)
				if c.by == no {
					require.NotEqual(t, Failed, statusOf(in, r).Phase)
					continue
				}
				require.Equal(t, installplan.StateSuperseded, assess(t, in).State)
				Same(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, Describe(r))
				want := *p.Status.DeepCopy()
				want.Phase, want.Message = Failed, "superseded by InstallPlan "+c.by
				want.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, installplan.ReasonSuperseded, want.Message)}
				Same(t, want, statusOf(in, r))
				require.Equal(t, "Superseded", r.Transitions[0].Reason)
				require.Equal(t, []string{"Superseded"}, Reasons(r))

				in.InstallPlan = p.DeepCopy()
				in.InstallPlan.Status, in.InstallPlan.Finalizers, in.InstallPlan.Spec.Approved = want, nil, true
				Same(t, olmcore.Result{}, reconcile(t, in))
			}
		})
	}
}

// TestPlanWithoutStepsEndsIfNoSubscriptionWaits checks when a plan that never got its steps ends. A plan that a
// Subscription waits for is kept, with its approval.
func TestPlanWithoutStepsEndsIfNoSubscriptionWaits(t *testing.T) {
	const installed, unreferenced = "the versions of its Subscriptions are installed", "no Subscription references it"
	type subscription = *v1alpha1.Subscription
	type change = func(*v1alpha1.InstallPlan)
	has := func(name string, more ...func(subscription)) subscription {
		s := Subscription(name, append([]func(subscription){RefersTo("install-x"), Current(name + ".v1")}, more...)...)
		s.Status.InstalledCSV, s.Status.State = s.Status.CurrentCSV, v1alpha1.SubscriptionStateAtLatest
		return s
	}
	waits := func(name string) subscription {
		s := has(name)
		s.Status.InstalledCSV, s.Status.State = "", v1alpha1.SubscriptionStateUpgradePending
		return s
	}
	changed := func(s subscription, change func(subscription)) subscription { change(s); return s }
	upgrades := changed(has("a"), func(s subscription) {
		s.Status.CurrentCSV, s.Status.State = "a.v2", v1alpha1.SubscriptionStateUpgradePending
	})
	withoutUID := changed(has("a"), func(s subscription) { s.Status.InstallPlanRef.UID = "" })
	ofEarlier := changed(has("a"), func(s subscription) { s.Status.InstallPlanRef.UID = "earlier" })
	deleted := changed(waits("b"), func(s subscription) { s.DeletionTimestamp, s.Finalizers = Ago(time.Second), []string{"x"} })
	age := func(d time.Duration) change {
		return func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = *Ago(d) }
	}
	old := age(time.Hour)
	approval := func(approved bool) change {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	lookups := func(p *v1alpha1.InstallPlan) { p.Status.BundleLookups = []v1alpha1.BundleLookup{{}} }
	oddPhase := func(p *v1alpha1.InstallPlan) { p.Status.Phase = "Odd" }
	for name, c := range map[string]struct {
		subs    []subscription
		changes []change
		message string
	}{
		"its Subscription has its version":                      {[]subscription{has("a")}, []change{age(5 * time.Minute)}, installed},
		"both Subscriptions have their versions":                {[]subscription{has("a"), has("b")}, []change{old}, installed},
		"a deleted Subscription waits":                          {[]subscription{has("a"), deleted}, []change{old}, installed},
		"the approved plan is not needed":                       {[]subscription{has("a")}, []change{old, approval(true)}, installed},
		"no Subscription references it":                         {[]subscription{has("a", RefersTo("install-y"))}, []change{old}, unreferenced},
		"no Subscription exists":                                {nil, []change{old}, unreferenced},
		"only a deleted Subscription references it":             {[]subscription{deleted}, []change{old}, unreferenced},
		"it waits for approval, unreferenced":                   {nil, []change{old, approval(false)}, unreferenced},
		"a user approved it, and no Subscription references it": {nil, []change{old, approval(true)}, ""},
		"it is young":                                 {[]subscription{has("a")}, []change{age(5*time.Minute - time.Second)}, ""},
		"it is young and unreferenced":                {nil, []change{age(5*time.Minute - time.Second)}, ""},
		"one of two Subscriptions waits":              {[]subscription{has("a"), waits("b")}, []change{old}, ""},
		"its Subscription waits for the next version": {[]subscription{upgrades}, []change{old}, ""},
		"the reference has no UID":                    {[]subscription{withoutUID}, []change{old}, ""},
		"the reference is to an earlier plan":         {[]subscription{ofEarlier}, []change{old}, ""},
		"one reference may be to an earlier plan":     {[]subscription{has("b"), ofEarlier}, []change{old}, ""},
		"its bundles are unpacked":                    {[]subscription{has("a")}, []change{old, lookups}, ""},
		"its phase is unknown":                        {[]subscription{has("a")}, []change{old, oddPhase}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan("", nil, append([]change{OwnedBy(c.subs...)}, c.changes...)...)
			in := input(p, func(in *installplan.Input) { in.Subscriptions = olmcore.Found(c.subs...) })
			require.NoError(t, invariant.Laws(reconcileResult, in))
			r := reconcile(t, in)
			if c.message == "" {
				require.NotEqual(t, installplan.StateSuperseded, assess(t, in).State)
				require.NotEqual(t, Failed, statusOf(in, r).Phase)
				return
			}
			require.Equal(t, installplan.StateSuperseded, assess(t, in).State)
			Same(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, Describe(r))
			require.Equal(t, Failed, statusOf(in, r).Phase)
			want := []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, "Superseded", c.message)}
			Same(t, want, statusOf(in, r).Conditions)
			require.NotEmpty(t, r.Actions[0].(olmcore.UpdateStatus).Target.ResourceVersion, "the API server decides")
		})
	}
}

// TestWithdrawnVersionLeadsToANewPlan checks a catalog that withdraws its newer version.
func TestWithdrawnVersionLeadsToANewPlan(t *testing.T) {
	sub := UserSubscription("a")
	sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
	c := World(t, sub)
	for _, v := range []string{"v2", "v3", "v2"} {
		driven(t, c, time.Minute, makers(Installs(operatorOf("a", v)), Things), plans(Things))
	}
	require.Len(t, everyPlan(t, c), 3)
	require.Equal(t, 3, fake.Find[*v1alpha1.Subscription](c, NS, "a").Status.InstallPlanGeneration)
	driven(t, c, time.Minute, plans(Things))
	phases := map[int]v1alpha1.InstallPlanPhase{}
	for _, p := range everyPlan(t, c) {
		phases[p.Spec.Generation] = p.Status.Phase
	}
	require.Equal(t, map[int]v1alpha1.InstallPlanPhase{1: Failed, 2: Failed, 3: RequiresApproval}, phases)
}
