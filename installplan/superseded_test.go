// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// follows is a Subscription to a package that refers to a plan.
func follows(name, plan string, generation int) *v1alpha1.Subscription {
	s := subscription(name, refersTo(plan))
	s.Status.InstallPlanGeneration = generation
	return s
}

func operatorOf(pkg, v string) olmcore.Operator {
	o := operator(pkg)
	o.Name, o.Version = pkg+"."+v, v
	o.Bundle.Objects[0] = csv(o.Name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Name: o.Name} })
	return o
}

// TestASupersededPlanIsNotExecuted: a waits for a plan of v2 when v3 comes, and b
// with it. Approving both runs the second; the first says why not.
func TestASupersededPlanIsNotExecuted(t *testing.T) {
	for name, wait := range map[string]bool{"approved later": true, "approved before it is noticed": false} {
		t.Run(name, func(t *testing.T) {
			sub := userSubscription("a")
			sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
			c := world(t, sub)
			run := func(controllers ...fake.Controller) {
				d := &fake.Driver{Cluster: c, Controllers: controllers}
				require.NoError(t, d.RunFor(t.Context(), time.Minute))
			}
			approve := func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }
			run(makers(installs(operatorOf("a", "v2")), things), plans(things))
			first := onlyPlan(t, c)
			require.Equal(t, requiresApproval, first.Status.Phase)
			require.NoError(t, c.Create(userSubscription("b")))
			run(makers(installs(operatorOf("a", "v3"), operatorOf("b", "v1")), things))
			if wait {
				run(plans(things))
				require.Equal(t, failed, planNamed(t, c, first.Name).Status.Phase)
			}
			for _, p := range everyPlan(t, c) {
				require.NoError(t, fake.Edit(c, ns, p.Name, approve))
			}
			run(plans(things))
			next := fake.Find[*v1alpha1.Subscription](c, ns, "a").Status.InstallPlanRef.Name
			first = planNamed(t, c, first.Name)
			require.Equal(t, failed, first.Status.Phase)
			require.Equal(t, "superseded by InstallPlan "+next, first.Status.Message)
			require.EqualValues(t, "Superseded", first.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason)
			require.Equal(t, first.Status.Message, first.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
			require.Nil(t, first.Status.StartTime)
			require.Equal(t, complete, planNamed(t, c, next).Status.Phase)
			versions, err := olmcore.List[*v1alpha1.ClusterServiceVersion](t.Context(), c, ns, nil)
			require.NoError(t, err)
			require.Len(t, versions, 2)
			require.Equal(t, []string{"a.v3", "b.v1"}, []string{versions[0].Name, versions[1].Name})
		})
	}
}

func planNamed(t *testing.T, c *fake.Cluster, name string) *v1alpha1.InstallPlan {
	p, err := olmcore.Get[*v1alpha1.InstallPlan](context.Background(), c, ns, name)
	require.NoError(t, err)
	require.NotNil(t, p)
	return p
}

// TestWhichPlansAreSuperseded has each relation that a plan of generation 2 may have
// to the Subscriptions of its packages.
func TestWhichPlansAreSuperseded(t *testing.T) {
	const unclear = ""
	packages := func(list string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Annotations = map[string]string{olmcore.KeyPrefix + "packages": list}
			for _, pkg := range []string{"a", "b"} {
				p.Labels, _ = olmcore.MergeLabels(p.Labels, map[string]string{olmcore.ComponentLabelPrefix + pkg + "." + ns: ""})
			}
		}
	}
	properties := func(text string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Status.Plan[0].Resource.Manifest = text
		}
	}
	generated := subscription("b", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	})
	unowned := subscription("d", func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = 9 })
	for name, c := range map[string]struct {
		change func(*v1alpha1.InstallPlan)
		subs   []*v1alpha1.Subscription
		by     string
	}{
		"its Subscription moved on":                   {packages("a"), []*v1alpha1.Subscription{follows("a", "install-y", 3)}, "install-y"},
		"both moved on, to the same":                  {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("b", "install-y", 3)}, "install-y"},
		"each to one of its own: the latest is named": {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("b", "install-z", 4)}, "install-z"},
		"two of one generation: the first by name":    {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-z", 3), follows("b", "install-y", 3)}, "install-y"},
		"others do not count":                         {packages("a"), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("c", "install-1", 1), unowned}, "install-y"},
		"one still refers to it":                      {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("b", "install-x", 2)}, unclear},
		"one is elsewhere, earlier":                   {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("b", "install-1", 1)}, unclear},
		"one does not refer to any":                   {packages("a,b"), []*v1alpha1.Subscription{follows("a", "install-y", 3), subscription("b")}, unclear},
		"it made one that does not refer yet":         {packages("a"), []*v1alpha1.Subscription{follows("a", "install-y", 3), generated}, unclear},
		"its Subscription is gone":                    {packages("a"), []*v1alpha1.Subscription{follows("c", "install-y", 3)}, unclear},
		"an unknown generation":                       {func(p *v1alpha1.InstallPlan) { packages("a")(p); p.Spec.Generation = 0 }, []*v1alpha1.Subscription{follows("a", "install-y", 3)}, unclear},
		"a step was applied":                          {func(p *v1alpha1.InstallPlan) { packages("a")(p); p.Status.Plan[0].Status = notPresent }, []*v1alpha1.Subscription{follows("a", "install-y", 3)}, unclear},
		"it started, and a write may have been lost": {func(p *v1alpha1.InstallPlan) {
			packages("a")(p)
			p.Status.StartTime = ago(time.Second)
		}, []*v1alpha1.Subscription{follows("a", "install-y", 3)}, unclear},
		"OLM's plan, packages from the version's properties": {properties(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1","annotations":{"operatorframework.io/properties":"{\"properties\":[{\"type\":\"x\",\"value\":\"y\"},{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\",\"version\":\"1\"}}]}"}}}`),
			[]*v1alpha1.Subscription{follows("a", "install-y", 3), follows("c", "install-1", 1)}, "install-y"},
		"OLM's plan of an image": {properties(`{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"","properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\",\"version\":\"1\"}}]}"}`),
			[]*v1alpha1.Subscription{follows("a", "install-y", 3), follows("c", "install-1", 1)}, "install-y"},
		"nothing names packages: all owners moved on":  {ownedBy(subscription("a"), subscription("c")), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("c", "install-y", 3)}, "install-y"},
		"nothing names packages: an owner stayed":      {ownedBy(subscription("a"), subscription("c")), []*v1alpha1.Subscription{follows("a", "install-y", 3), follows("c", "install-1", 1)}, unclear},
		"nothing names packages, and it has no owners": {func(*v1alpha1.InstallPlan) {}, []*v1alpha1.Subscription{follows("a", "install-y", 3)}, unclear},
	} {
		t.Run(name, func(t *testing.T) {
			for phase, approved := range map[v1alpha1.InstallPlanPhase]bool{requiresApproval: false, installing: true} {
				p := plan(phase, []*v1alpha1.Step{csvStep("a.v1")}, c.change, func(p *v1alpha1.InstallPlan) {
					p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved
					if p.Spec.Generation != 0 {
						p.Spec.Generation = 2
					}
				})
				in := input(p, func(in *installplan.Input) {
					in.Subscriptions, in.OperatorGroups = olmcore.Found(c.subs...), olmcore.Found[*operatorsv1.OperatorGroup]()
				})
				require.NoError(t, invariant.Laws(reconcileResult, in))
				r := reconcile(t, in)
				if c.by == "" {
					require.NotEqual(t, failed, statusOf(in, r).Phase)
					continue
				}
				require.Equal(t, installplan.StateSuperseded, assess(t, in).State)
				same(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, describe(r))
				want := p.Status
				want.Phase, want.Message = failed, "superseded by InstallPlan "+c.by
				want.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, installplan.ReasonSuperseded, want.Message)}
				same(t, want, statusOf(in, r))
				require.Equal(t, "Superseded", r.Transitions[0].Reason)
				require.Equal(t, []string{"Superseded"}, reasons(r))

				in.InstallPlan = p.DeepCopy()
				in.InstallPlan.Status, in.InstallPlan.Finalizers, in.InstallPlan.Spec.Approved = want, nil, true
				same(t, olmcore.Result{}, reconcile(t, in))
			}
		})
	}
}

// TestGoingBackIsANewPlan: the catalog takes its newer version back.
func TestGoingBackIsANewPlan(t *testing.T) {
	sub := userSubscription("a")
	sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
	c := world(t, sub)
	for _, v := range []string{"v2", "v3", "v2"} {
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(operatorOf("a", v)), things)}}
		require.NoError(t, d.RunFor(t.Context(), time.Minute))
	}
	require.Len(t, everyPlan(t, c), 3)
	require.Equal(t, 3, fake.Find[*v1alpha1.Subscription](c, ns, "a").Status.InstallPlanGeneration)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(things)}}
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	phases := map[int]v1alpha1.InstallPlanPhase{}
	for _, p := range everyPlan(t, c) {
		phases[p.Spec.Generation] = p.Status.Phase
	}
	require.Equal(t, map[int]v1alpha1.InstallPlanPhase{1: failed, 2: failed, 3: requiresApproval}, phases)
}
