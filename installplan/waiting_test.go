// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"slices"
	"strings"
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

// TestPhaseChanges: what OLM's tests make of a plan in phase Installing. The whole status is compared.
//
// OLM's cases: without error it becomes Complete, approved or not; an error when no time is left fails it; an error
// while time is left: no condition. TestGates and TestPhases have the others.
func TestPhaseChanges(t *testing.T) {
	const notFound = `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	fine := func() []*v1alpha1.Step { return []*v1alpha1.Step{withStatus(notPresent, csvStep("a.v1"))} }
	broken := func() []*v1alpha1.Step { return []*v1alpha1.Step{roleStep("gone.v1", "r")} }
	approved := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approved = approved }
	}
	brief := func(in *installplan.Input) { in.Config.InstallTimeout = time.Nanosecond }
	completes := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Plan[0].Status = complete, created
		s.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionTrue, "", "")}
	}
	fails := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Message = failed, notFound
		s.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, notFound)}
	}
	for name, c := range map[string]struct {
		in      installplan.Input
		want    func(*v1alpha1.InstallPlanStatus)
		requeue time.Duration
	}{
		"no error, Automatic, approved no": {in: input(plan(installing, fine(), started(time.Second), approved(false)), with(csv("a.v1"))), want: completes},
		"Automatic, approved no: it starts": {in: input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, approved(false)), with(csv("a.v1"))), requeue: 5 * time.Second,
			want: func(s *v1alpha1.InstallPlanStatus) { s.StartTime = ago(0) }},
		"an error, and no time is left": {in: input(plan(installing, broken(), started(time.Second), func(p *v1alpha1.InstallPlan) {
			p.Status.Message = "retrying execution due to error: " + notFound // OLM fails at the first try
		}), brief), want: fails},
		"an error, and time is left": {in: input(plan(installing, broken(), started(0)), brief), requeue: time.Nanosecond,
			want: func(s *v1alpha1.InstallPlanStatus) { s.Message = "retrying execution due to error: " + notFound }},
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

// TestMessagesGoWithTheirPhase: what an earlier phase said is not said by the next.
func TestMessagesGoWithTheirPhase(t *testing.T) {
	leftover := func(p *v1alpha1.InstallPlan) { p.Status.Message, p.Spec.Approval = "leftover", v1alpha1.ApprovalManual }
	approved := input(plan(requiresApproval, []*v1alpha1.Step{roleStep("", "r")}, leftover))
	withdrawn := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, leftover, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = false }))
	for in, phase := range map[*installplan.Input]v1alpha1.InstallPlanPhase{&approved: installing, &withdrawn: requiresApproval} {
		got := statusOf(*in, reconcile(t, *in))
		require.Equal(t, phase, got.Phase)
		require.Empty(t, got.Message)
	}
}

// TestConditionsKeepTheirTimes: the time of the transition is that of the status.
func TestConditionsKeepTheirTimes(t *testing.T) {
	old := condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "another text")
	old.LastTransitionTime, old.LastUpdateTime = ago(time.Hour), ago(time.Hour)
	foreign := v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanResolved, Reason: v1alpha1.InstallPlanReasonInstallCheckFailed, Status: corev1.ConditionTrue}
	in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, func(p *v1alpha1.InstallPlan) {
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{foreign, old}
	}))
	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	want := condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "no operator group found that is managing this namespace")
	want.LastTransitionTime = old.LastTransitionTime
	same(t, []v1alpha1.InstallPlanCondition{foreign, want}, statusOf(in, reconcile(t, in)).Conditions)

	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](group())
	same(t, []v1alpha1.InstallPlanCondition{foreign}, statusOf(in, reconcile(t, in)).Conditions)
}

// TestMessageOfAWaitIsRemoved, whatever it was.
func TestMessageOfAWaitIsRemoved(t *testing.T) {
	for message, want := range map[string]string{
		"waiting for ClusterServiceVersion a.v1 to finish deleting": "",
		"bundle a.v1 is not unpacked":                               "",
		"retrying execution due to error: no":                       "",
		"written by somebody else":                                  "written by somebody else",
	} {
		in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.Message = message }))
		in.LastRun = ran("r")
		require.Equal(t, want, statusOf(in, reconcile(t, in)).Message)
	}
}

// TestLookups: what they did not unpack is waited for, and what could not be unpacked fails the plan.
func TestLookups(t *testing.T) {
	for want, lookup := range map[string]v1alpha1.BundleLookup{
		"bundle b.v1 is not unpacked":   {Identifier: "b.v1", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupPending, Status: "True", Message: "it broke"}}},
		"it broke":                      {Identifier: "b.v1", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: "True", Message: "it broke"}}},
		"bundle img cannot be unpacked": {Path: "img", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: "True"}}},
	} {
		in := input(plan(installing, nil, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.BundleLookups = []v1alpha1.BundleLookup{lookup} }))
		got := statusOf(in, reconcile(t, in))
		require.Equal(t, want, strings.TrimPrefix(got.Message, "retrying execution due to error: "))
		in.InstallPlan.Status.Message, in.Now = got.Message, noon.Add(time.Minute)
		require.Equal(t, lookup.Conditions[0].Type == v1alpha1.BundleLookupFailed, statusOf(in, reconcile(t, in)).Phase == failed)
	}
}

// TestListsAreWrittenEmptyNotNull, as the API wants them.
func TestListsAreWrittenEmptyNotNull(t *testing.T) {
	null := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Spec.ClusterServiceVersionNames, p.Status.CatalogSources = nil, nil
	})
	after := reconcile(t, input(null, with(subscription("a", refersTo("install-x"))))).Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
	require.NotNil(t, after.Spec.ClusterServiceVersionNames)
	in := input(null)
	require.NotNil(t, statusOf(in, reconcile(t, in)).CatalogSources)
}

// TestCompletePlanIsAtRest: its finalizer went before.
func TestCompletePlanIsAtRest(t *testing.T) {
	c := world(t, userSubscription("rich"))
	var held []bool
	var completed string
	watch := func(inner fake.Controller) fake.Controller {
		reconcile := inner.Reconcile
		inner.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			for _, p := range everyPlan(t, c) {
				held = append(held, slices.Contains(p.Finalizers, installplan.Finalizer))
				if p.Status.Phase == complete && completed == "" {
					completed = p.ResourceVersion
				}
			}
			return reconcile(ctx, r, key, now, last)
		}
		return inner
	}
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), watch(plans(things)), watch(sweeps(things))}}
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.True(t, held[0], "it is there from the creation")
	require.False(t, slices.Contains(held[slices.Index(held, false):], true), "once gone it stays away")
	p := onlyPlan(t, c)
	require.Equal(t, complete, p.Status.Phase)
	require.Equal(t, completed, p.ResourceVersion)
}

// TestPlanWithoutStatusIsLeftAlone: what a client creates and is about to give a status.
func TestPlanWithoutStatusIsLeftAlone(t *testing.T) {
	bare := plan(none, nil)
	bare.OwnerReferences = nil
	c := world(t, bare)
	before := onlyPlan(t, c)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(things), sweeps(things)}}
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, before.ResourceVersion, onlyPlan(t, c).ResourceVersion)

	given := before.DeepCopy()
	given.Status = plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}).Status
	require.NoError(t, c.UpdateStatus(given))
	given = onlyPlan(t, c)
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, given.Finalizers, onlyPlan(t, c).Finalizers)
	require.Empty(t, onlyPlan(t, c).Finalizers)
}
