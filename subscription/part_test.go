// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// twoParts is an answer by which a gets etcd.v1 with plan p and b gets etcd.v2 with plan q.
func twoParts(objects ...olmcore.Object) subscription.Input {
	in := inputOf(objects...)
	in.SeparatePlans, in.Resolution = true, bring(in, "etcd.v1", "a")
	r := in.Resolution
	r.At = now
	r.Resolution.Operators = append(r.Resolution.Operators, olmcore.Operator{Name: "etcd.v2"})
	for i := range r.Resolution.Decisions {
		if d := &r.Resolution.Decisions[i]; d.Name == "b" {
			d.CurrentCSV, d.Changed = "etcd.v2", true
		}
	}
	r.Parts = []subscription.Part{
		{Subscriptions: []string{"a"}, PlanProgress: subscription.PlanProgress{Plan: olmcore.RefOf(newPlan("p", ""))}},
		{Subscriptions: []string{"b"}, PlanProgress: subscription.PlanProgress{Plan: olmcore.RefOf(newPlan("q", ""))}},
	}
	return in
}

func ownedBy(name string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(newSub(name))}
		p.Annotations = map[string]string{olmcore.AnnotationSeparatePlan: "true"}
	}
}

func TestEachPartUsesItsOwnPlan(t *testing.T) {
	in := twoParts(newSub("a"), newSub("b"), newSub("c"), newPlan("p", "", empty, ownedBy("a")), newPlan("q", "", empty, ownedBy("b")))
	out := reconcile(t, in)
	require.Equal(t, "p", statusOf(t, in, out, "a").InstallPlanRef.Name)
	require.Equal(t, "etcd.v1", statusOf(t, in, out, "a").CurrentCSV)
	require.Equal(t, "q", statusOf(t, in, out, "b").InstallPlanRef.Name)
	require.Equal(t, "etcd.v2", statusOf(t, in, out, "b").CurrentCSV)
	require.Nil(t, statusOf(t, in, out, "c").InstallPlanRef, "it is in no set")
}

// TestPartDoesNotWaitForAnotherPart checks that Subscription a references its InstallPlan whatever blocks
// Subscription b, and that the conditions of a do not mention b.
func TestPartDoesNotWaitForAnotherPart(t *testing.T) {
	lookup := v1alpha1.BundleLookup{Conditions: []v1alpha1.BundleLookupCondition{
		{Type: v1alpha1.BundleLookupFailed, Status: "True", Reason: "JobFailed", Message: "no"},
	}}
	held := newSub("b", follows("old", "etcd.v1"))
	type progress = subscription.PlanProgress
	for name, tc := range map[string]struct {
		b      *v1alpha1.Subscription
		of     progress
		reason string
	}{
		"its plan is not visible":       {newSub("b"), progress{Plan: olmcore.RefOf(newPlan("r", ""))}, ""},
		"its plan could not be written": {newSub("b"), progress{PlanError: "no"}, "EnsureInstallPlanFailed"},
		"its plan cannot be created":    {newSub("b"), progress{PlanRefused: olmcore.Cause{Reason: "PlanTooLarge"}}, "PlanTooLarge"},
		"its bundle cannot be unpacked": {
			newSub("b"), progress{Unpacking: &subscription.Unpacking{Lookups: []v1alpha1.BundleLookup{lookup}}}, "BundleUnpackFailed",
		},
		"it keeps its present plan": {held, progress{Plan: olmcore.RefOf(newPlan("q", ""))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := newPlan("old", "Installing", started(3), ownedBy("b"))
			in := twoParts(newSub("a"), tc.b, old, newPlan("p", "", empty, ownedBy("a")), newPlan("q", "", empty, ownedBy("b")))
			in.Resolution.Parts[1].PlanProgress = tc.of
			out := reconcile(t, in)
			a, b := statusOf(t, in, out, "a"), statusOf(t, in, out, "b")
			require.Equal(t, "p", a.InstallPlanRef.Name)
			require.NotEqual(t, "etcd.v2", b.CurrentCSV)
			failed := v1alpha1.SubscriptionBundleUnpackFailed
			require.Empty(t, a.GetCondition(failed).Reason)
			require.Equal(t, tc.reason, b.GetCondition(failed).Reason)
		})
	}
}

// TestUnpackErrorsAreReportedForEachPart checks that the unpack errors of all parts are reported, each about a
// Subscription of its part, and that they keep no part from its plan.
func TestUnpackErrorsAreReportedForEachPart(t *testing.T) {
	failing := func(message string) *subscription.Unpacking {
		return &subscription.Unpacking{Failure: &olmcore.ResolutionFailure{Transient: true, Message: message}}
	}
	for name, tc := range map[string]struct {
		a, b *subscription.Unpacking
		want []string
	}{
		"the first": {a: failing("no"), want: []string{"a: bundle unpacking failed with an error: no"}},
		"the last":  {b: failing("no"), want: []string{"b: bundle unpacking failed with an error: no"}},
		"both": {
			a: failing("no"), b: failing("never"),
			want: []string{"a: bundle unpacking failed with an error: no", "b: bundle unpacking failed with an error: never"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := twoParts(newSub("a"), newSub("b"), newPlan("p", "", empty, ownedBy("a")), newPlan("q", "", empty, ownedBy("b")))
			for i, unpacking := range []*subscription.Unpacking{tc.a, tc.b} {
				if of := &in.Resolution.Parts[i].PlanProgress; unpacking != nil {
					*of = subscription.PlanProgress{Unpacking: unpacking}
				}
			}
			out := reconcile(t, in)
			var got []string
			for _, d := range out.Diagnostics {
				if d.Reason == subscription.ReasonErrorPreventedUnpacking {
					got = append(got, d.Target.Name+": "+d.Message)
				}
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.a == nil, statusOf(t, in, out, "a").InstallPlanRef != nil)
			require.Equal(t, tc.b == nil, statusOf(t, in, out, "b").InstallPlanRef != nil)
			carryOut(&in, out)
			in.Now = now.Add(time.Second)
			require.Equal(t, subscription.ResolveRetry, reconcile(t, in).Resolve.Reason)
		})
	}
}

// TestChangedSubscriptionInvalidatesEveryPart checks that no part of an answer is applied if a Subscription of any
// part changed, except by the answer itself.
func TestChangedSubscriptionInvalidatesEveryPart(t *testing.T) {
	plans := []olmcore.Object{newPlan("p", "", empty, ownedBy("a")), newPlan("q", "", empty, ownedBy("b"))}
	in := twoParts(append(plans, newSub("a"), newSub("b"))...)
	in.Subscriptions.Items[1] = newSub("b", follows("q", "etcd.v2"))
	require.Equal(t, "p", statusOf(t, in, reconcile(t, in), "a").InstallPlanRef.Name, "b was moved to its plan")
	for name, b := range map[string]*v1alpha1.Subscription{
		"another plan has its version": newSub("b", follows("p", "etcd.v2")),
		"another version":              newSub("b", follows("q", "etcd.v3")),
		"another spec":                 newSub("b", func(s *v1alpha1.Subscription) { s.Generation = 7 }),
	} {
		in.Subscriptions.Items[1] = b
		require.Nil(t, statusOf(t, in, reconcile(t, in), "a").InstallPlanRef, name)
	}
}

// TestSharedPlanKeepsItsSubscriptionsUntilItEnds checks that Subscriptions of several sets keep a shared plan that
// seems not to have started: the cache may be stale. They leave the plan once it is superseded.
func TestSharedPlanKeepsItsSubscriptionsUntilItEnds(t *testing.T) {
	shared := func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(newSub("b")))
		p.Spec.ClusterServiceVersionNames = []string{"etcd.v1", "etcd.v2"}
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
		p.Status.Plan[0].Status = v1alpha1.StepStatusUnknown
	}
	for name, change := range map[string]func(*subscription.Input){
		"the option":         func(*subscription.Input) {},
		"without the option": func(in *subscription.Input) { in.SeparatePlans = false },
		"approved":           func(in *subscription.Input) { in.InstallPlans.Items[0].Spec.Approved = true },
		"started":            func(in *subscription.Input) { started(3)(in.InstallPlans.Items[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			next := func(version string) func(*v1alpha1.InstallPlan) {
				return func(p *v1alpha1.InstallPlan) {
					p.Spec.Generation, p.Spec.ClusterServiceVersionNames = 2, []string{version}
				}
			}
			in := twoParts(
				newSub("a", follows("old", "etcd.v1")), newSub("b", follows("old", "etcd.v2")), newPlan("old", "RequiresApproval", shared),
				newPlan("p", "", empty, ownedBy("a"), next("etcd.v1")), newPlan("q", "", empty, ownedBy("b"), next("etcd.v2")))
			for i := range in.Resolution.Resolution.Decisions {
				in.Resolution.Resolution.Decisions[i].Changed = false
			}
			change(&in)
			out := reconcile(t, in)
			for sub, version := range map[string]string{"a": "etcd.v1", "b": "etcd.v2"} {
				status := statusOf(t, in, out, sub)
				require.Equal(t, "old", status.InstallPlanRef.Name)
				require.Equal(t, version, status.CurrentCSV)
			}
		})
	}
}
