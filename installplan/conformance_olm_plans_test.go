// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestOLMsPhaseChanges: what OLM's tests make of a plan in one phase, with and
// without an error. The whole status is compared.
//
// OLM's cases: without error Installing becomes Complete, approved or not; an error
// when no time is left fails the plan; an error while time is left: no condition; a
// plan of nothing keeps its phase; without a group Installing stays, with the
// condition; no steps, nothing to do.
func TestOLMsPhaseChanges(t *testing.T) {
	const notFound = `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	fine := func() []*v1alpha1.Step { return []*v1alpha1.Step{withStatus(notPresent, csvStep("a.v1"))} }
	broken := func() []*v1alpha1.Step { return []*v1alpha1.Step{roleStep("gone.v1", "r")} }
	approved := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approved = approved }
	}
	brief := func(in *installplan.Input) { in.Config.InstallTimeout = time.Nanosecond }
	nobody := func(in *installplan.Input) { in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]() }
	completes := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Plan[0].Status = complete, created
		s.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionTrue, "", "")}
	}
	fails := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Message = failed, notFound
		s.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, notFound)}
	}
	stops := func(s *v1alpha1.InstallPlanStatus) {
		s.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed,
			"no operator group found that is managing this namespace")}
	}
	for name, c := range map[string]struct {
		in      installplan.Input
		want    func(*v1alpha1.InstallPlanStatus)
		requeue time.Duration
	}{
		"no error, approved":               {in: input(plan(installing, fine(), started(time.Second)), with(csv("a.v1"))), want: completes},
		"no error, Automatic, approved no": {in: input(plan(installing, fine(), started(time.Second), approved(false)), with(csv("a.v1"))), want: completes},
		"Automatic, approved no: it starts": {in: input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, approved(false)), with(csv("a.v1"))), requeue: 5 * time.Second,
			want: func(s *v1alpha1.InstallPlanStatus) { s.StartTime = ago(0) }},
		"an error, and no time is left": {in: input(plan(installing, broken(), started(time.Second), func(p *v1alpha1.InstallPlan) {
			p.Status.Message = "retrying execution due to error: " + notFound // OLM fails at the first try
		}), brief), want: fails},
		"an error, and time is left": {in: input(plan(installing, broken(), started(0)), brief), requeue: time.Nanosecond,
			want: func(s *v1alpha1.InstallPlanStatus) { s.Message = "retrying execution due to error: " + notFound }},
		"neither steps nor lookups":  {in: input(plan(none, nil))},
		"Installing without a group": {in: input(plan(installing, fine(), started(time.Second)), nobody), want: stops, requeue: 30 * time.Second},
		"waiting without a group":    {in: input(plan(requiresApproval, fine(), approved(true)), nobody), want: stops, requeue: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.in.InstallPlan.DeepCopy().Status
			if c.want != nil {
				c.want(&want)
			}
			r := reconcile(t, c.in)
			same(t, want, statusOf(c.in, r))
			require.Equal(t, c.requeue, r.RequeueAfter)
			for _, a := range r.Actions {
				require.IsType(t, olmcore.UpdateStatus{}, a)
			}
		})
	}
}

// TestWhoseAccountAPlanRunsAs has each set of OperatorGroups that a namespace may
// have.
//
// OLM's cases: two groups are counted in the condition; a group's account that is not
// there is asked for; whose account a namespace's plans run as.
func TestWhoseAccountAPlanRunsAs(t *testing.T) {
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped", UID: "uid-scoped"}
	named := func(name string, namespaces ...string) *operatorsv1.OperatorGroup {
		return group(func(g *operatorsv1.OperatorGroup) { g.ObjectMeta, g.Status.Namespaces = meta(name), namespaces })
	}
	targeting := named("targets")
	targeting.Spec.TargetNamespaces = []string{"elsewhere"}
	asked, found := named("asked", ns), named("found", ns)
	asked.Spec.ServiceAccountName, found.Spec.ServiceAccountName = "scoped", "scoped"
	found.Status.ServiceAccountRef = account
	stray := named("stray")
	stray.Spec.ServiceAccountName, stray.Status.ServiceAccountRef = "other", &corev1.ObjectReference{Name: "other"}
	type groups = []*operatorsv1.OperatorGroup
	const nobody = "no operator group found that is managing this namespace"
	for name, c := range map[string]struct {
		groups  groups
		account *corev1.ObjectReference
		problem string
	}{
		"no group":                                   {problem: nobody},
		"a group that targets another namespace":     {groups: groups{targeting}, problem: nobody},
		"a group whose status has another namespace": {groups: groups{named("a", "elsewhere")}},
		"two groups":                                 {groups: groups{named("a", ns), named("b", ns)}, problem: "more than one operator group(s) are managing this namespace count=2"},
		"three groups, one manages nothing":          {groups: groups{named("a", ns), named("b"), named("c", "")}, problem: "more than one operator group(s) are managing this namespace count=2"},
		"a group without account":                    {groups: groups{named("a", ns)}},
		"an account that was not found":              {groups: groups{asked}, problem: "please make sure the service account exists. sa=scoped operatorgroup=ops/asked"},
		"an account that was found":                  {groups: groups{found}, account: account},
		"an account, beside one that does not count": {groups: groups{stray, found}, account: account},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
				p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
			}))
			in.OperatorGroups = olmcore.Found(c.groups...)
			want := in.InstallPlan.DeepCopy().Status
			want.AttenuatedServiceAccountRef = c.account
			if c.problem != "" {
				want.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, c.problem)}
			}
			same(t, want, statusOf(in, reconcile(t, in)))
		})
	}
}

// TestTenWorkersMakeOnePlan of generation 1: they have one view, and the API
// server takes the first of ten equal names.
//
// OLM's cases: ten workers at once make one plan; many equal catalogs, one plan.
func TestTenWorkersMakeOnePlan(t *testing.T) {
	c := world(t, userSubscription("a"))
	making := makers(installs(operator("a")), installplan.Config{})
	snapshot, err := c.Snapshot()
	require.NoError(t, err)
	results := make([]olmcore.Result, 10)
	var workers sync.WaitGroup
	for i := range results {
		workers.Go(func() {
			r, err := making.Reconcile(t.Context(), snapshot, types.NamespacedName{Namespace: ns}, noon, nil)
			if err == nil {
				results[i] = r
			}
		})
	}
	workers.Wait()
	for _, r := range results {
		require.Len(t, r.Actions, 1)
		_ = olmcore.Run(t.Context(), c, r.Actions) // nine of them exist already
	}
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{making}}
	require.NoError(t, d.Settle(t.Context()))
	p := onlyPlan(t, c)
	require.Equal(t, 1, p.Spec.Generation)
	sub := fake.Find[*v1alpha1.Subscription](c, ns, "a")
	require.Equal(t, p.UID, sub.Status.InstallPlanRef.UID)
	require.Equal(t, 1, sub.Status.InstallPlanGeneration)
}

// TestAGenerationThatIsTaken is left alone, whatever plan has it: the new plan
// gets the next one, and so does its Subscription.
//
// OLM's case: a generation that is taken: the next one, for the Subscription too.
func TestAGenerationThatIsTaken(t *testing.T) {
	foreign := plan(installing, []*v1alpha1.Step{csvStep("other.v1")}, func(p *v1alpha1.InstallPlan) { p.Finalizers = nil })
	c := world(t, userSubscription("a"), foreign)
	before := fake.Find[*v1alpha1.InstallPlan](c, ns, foreign.Name).DeepCopy()
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(operator("a")), installplan.Config{})}}
	require.NoError(t, d.Settle(t.Context()))
	same(t, before, fake.Find[*v1alpha1.InstallPlan](c, ns, foreign.Name))
	sub := fake.Find[*v1alpha1.Subscription](c, ns, "a")
	require.Equal(t, 2, sub.Status.InstallPlanGeneration)
	made := fake.Find[*v1alpha1.InstallPlan](c, ns, sub.Status.InstallPlanRef.Name)
	require.Equal(t, 2, made.Spec.Generation)
	require.Equal(t, []string{"a.v1"}, made.Spec.ClusterServiceVersionNames)
}

// TestAVersionIsNamedOnce, although it has steps and a lookup.
//
// OLM's case: a version with steps and a lookup is named once.
func TestAVersionIsNamedOnce(t *testing.T) {
	o, cm := imageOf(t, rich())
	cm.UID, cm.ResourceVersion = "", ""
	c := world(t, &v1alpha1.CatalogSource{ObjectMeta: inOLM("cool")}, cm, userSubscription("rich"), userSubscription("b"))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o, operator("b")), things)}}
	require.NoError(t, d.Settle(t.Context()))
	p := onlyPlan(t, c)
	require.Len(t, p.Status.BundleLookups, 1)
	require.Equal(t, "rich.v1", p.Status.BundleLookups[0].Identifier)
	require.Equal(t, []string{"b.v1", "rich.v1"}, p.Spec.ClusterServiceVersionNames)
}

// TestStepsNameTheirCatalog: each its own, and the plan names all of them.
//
// OLM's case: steps of two catalogs; the dependency arrives; an update, another plan.
func TestStepsNameTheirCatalog(t *testing.T) {
	a, b := operator("a", crdObject("v1")), operator("b")
	b.Catalog = types.NamespacedName{Namespace: "there", Name: "warm"}
	c := world(t, userSubscription("a"), userSubscription("b"))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(a, b), installplan.Config{})}}
	require.NoError(t, d.Settle(t.Context()))
	p := onlyPlan(t, c)
	var got []string
	for _, s := range p.Status.Plan {
		got = append(got, fmt.Sprintf("%s %s from %s/%s for %s", s.Resource.Kind, s.Resource.Name, s.Resource.CatalogSourceNamespace, s.Resource.CatalogSource, s.Resolving))
	}
	require.Equal(t, []string{
		"ClusterServiceVersion a.v1 from olm/cool for a.v1", "ClusterServiceVersion b.v1 from there/warm for b.v1",
		"CustomResourceDefinition things.example.com from olm/cool for a.v1",
	}, got)
	require.Equal(t, []string{"cool", "warm"}, p.Status.CatalogSources)
}
