// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

const (
	ns       = "ops"
	labelKey = "operators.coreos.com/etcd.ops"
)

// epoch is second 0 of every test; now is a minute later.
var (
	epoch = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Minute)
)

func second(n int) metav1.Time   { return metav1.NewTime(epoch.Add(time.Duration(n) * time.Second)) }
func epochPlus(n int) time.Time  { return second(n).Time }
func secondp(n int) *metav1.Time { return new(second(n)) }

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: ns, Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "7", Generation: 1, CreationTimestamp: second(0),
	}
}

// newSub returns a labelled Subscription to package etcd, last updated at second
// 5, without a plan.
func newSub(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: meta(name), Spec: &v1alpha1.SubscriptionSpec{
		CatalogSource: "cool", CatalogSourceNamespace: "olm", Package: "etcd", Channel: "stable",
	}}
	s.Labels = map[string]string{labelKey: ""}
	s.Status.LastUpdated = second(5)
	for _, f := range change {
		f(s)
	}
	return s
}

// follows makes a Subscription refer to the plan p and wait for the CSV.
func follows(p, csv string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = refTo(p)
		s.Status.Install = v1alpha1.NewInstallPlanReference(s.Status.InstallPlanRef)
		s.Status.CurrentCSV, s.Status.State, s.Status.InstallPlanGeneration = csv, v1alpha1.SubscriptionStateUpgradePending, 1
	}
}

// installed makes a Subscription have installed its current CSV.
func installed(s *v1alpha1.Subscription) {
	s.Status.InstalledCSV, s.Status.State = s.Status.CurrentCSV, v1alpha1.SubscriptionStateAtLatest
}

func refTo(plan string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: ns, Name: plan,
		UID: types.UID(plan + "-uid"), ResourceVersion: "7",
	}
}

func pending(reason string, at int) func(*v1alpha1.Subscription) {
	return withCondition(v1alpha1.SubscriptionInstallPlanPending, reason, "", at)
}

func withCondition(t v1alpha1.SubscriptionConditionType, reason, message string, at int) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.Conditions = append(s.Status.Conditions, condition(t, reason, message, at))
	}
}

func condition(t v1alpha1.SubscriptionConditionType, reason, message string, at int) v1alpha1.SubscriptionCondition {
	return v1alpha1.SubscriptionCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: secondp(at)}
}

// newPlan returns an Automatic plan with one step, created at second 2, that the
// Subscription "a" owns.
func newPlan(name string, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: meta(name)}
	p.CreationTimestamp = second(2)
	p.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(newSub("a"))}
	p.Spec = v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1, ClusterServiceVersionNames: []string{"etcd.v1"}}
	p.Status.Phase = phase
	p.Status.Plan = []*v1alpha1.Step{{Resolving: "etcd.v1"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func manual(generation int64) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		p.Spec.Approval, p.Spec.Approved, p.Generation = v1alpha1.ApprovalManual, generation != 1, generation
	}
}

func started(at int) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = secondp(at) }
}

func done(at int) func(*v1alpha1.InstallPlan) {
	return installedIs(corev1.ConditionTrue, "", "", at)
}

func failed(at int) func(*v1alpha1.InstallPlan) {
	return installedIs(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, "step broke", at)
}

func installedIs(status corev1.ConditionStatus, reason v1alpha1.InstallPlanConditionReason, message string, at int) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
			Type: v1alpha1.InstallPlanInstalled, Status: status, Reason: reason, Message: message,
			LastUpdateTime: secondp(at), LastTransitionTime: secondp(at),
		}}
	}
}

func newCSV(name string, change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: meta(name)}
	c.Labels = map[string]string{labelKey: ""}
	c.Status.Phase = v1alpha1.CSVPhaseSucceeded
	for _, f := range change {
		f(c)
	}
	return c
}

// inputOf puts objects into an Input with one OperatorGroup. Objects of other
// kinds are components.
func inputOf(objects ...olmcore.Object) subscription.Input {
	in := subscription.Input{
		Now: now, Namespace: ns, OperatorGroups: olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: meta("group")}),
		Subscriptions: olmcore.Found[*v1alpha1.Subscription](), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.Subscription:
			in.Subscriptions.Items = append(in.Subscriptions.Items, o)
		case *v1alpha1.InstallPlan:
			in.InstallPlans.Items = append(in.InstallPlans.Items, o)
		case *v1alpha1.ClusterServiceVersion:
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, o)
		default:
			in.Components = append(in.Components, o)
		}
	}
	return in
}

// answered adds the answer that nothing has to change.
func answered(in subscription.Input) subscription.Input {
	in.Resolution = &subscription.Resolved{Resolution: resolutionOf(in)}
	return in
}

// resolutionOf is a resolution of what is there, without changes.
func resolutionOf(in subscription.Input) olmcore.Resolution {
	var r olmcore.Resolution
	for _, s := range in.Subscriptions.Items {
		r.Observed = append(r.Observed, olmcore.FingerprintOf(s))
		r.Decisions = append(r.Decisions, olmcore.SubscriptionDecision{Name: s.Name, CurrentCSV: s.Status.CurrentCSV})
	}
	return r
}

// failForward makes the namespace fail forward.
func failForward(in subscription.Input) subscription.Input {
	in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	return in
}

func reconcile(t testing.TB, in subscription.Input) subscription.Outcome {
	t.Helper()
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	return out
}

func outcomeOf(t require.TestingT, in subscription.Input) subscription.Outcome {
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	return out
}

func gateOf(t require.TestingT, in subscription.Input) subscription.Gate { return assess(t, in).Gate }

// healthOf returns the health of the first Subscription.
func healthOf(t require.TestingT, in subscription.Input) health.Health {
	all, err := health.Of(in)
	require.NoError(t, err)
	return all[assess(t, in).Verdicts[0].Subscription.Name]
}

func assess(t require.TestingT, in subscription.Input) subscription.Assessment {
	a, err := subscription.Assess(in)
	require.NoError(t, err)
	return a
}

// statusOf returns the status that an Outcome leaves a Subscription with.
func statusOf(t require.TestingT, in subscription.Input, out subscription.Outcome, name string) v1alpha1.SubscriptionStatus {
	for _, a := range out.Actions {
		if u, ok := a.(olmcore.UpdateStatus); ok && u.Target.Name == name {
			return u.After.(*v1alpha1.Subscription).Status
		}
	}
	for _, s := range in.Subscriptions.Items {
		if s.Name == name {
			return s.Status
		}
	}
	require.Fail(t, "no Subscription "+name)
	return v1alpha1.SubscriptionStatus{}
}

// planConditions prints the InstallPlan conditions of a status.
func planConditions(s v1alpha1.SubscriptionStatus) string {
	var all []string
	for _, c := range s.Conditions {
		switch c.Type {
		case v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed:
			all = append(all, fmt.Sprintf("%s/%s", strings.TrimPrefix(string(c.Type), "InstallPlan"), c.Reason))
		}
	}
	return strings.Join(all, " ")
}

var short = map[string]string{
	"NoPlan": "-", "NotYetReconciled": "N", "Planning": "P", "RequiresApproval": "A", "Installing": "I",
	"Complete": "C", "Failed": "F", "Missing": "M", "Unknown": "U",
}

// stages prints the InstallPlan transitions of a result, one word each: from,
// to, the certainty unless Observed, "!" for out of band.
func stages(r olmcore.Result) string {
	var all []string
	for _, t := range r.Transitions {
		if t.Type != subscription.TransitionInstallPlan {
			continue
		}
		word := short[t.From] + ">" + short[t.To]
		if t.Certainty != olmcore.CertaintyObserved {
			word += ":" + string(t.Certainty)
		}
		if t.OutOfBand {
			word += "!"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// gaps prints the kinds of the gaps of a result.
func gaps(r olmcore.Result) string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Reason == olmcore.ReasonHistoryGap {
			kind, _, _ := strings.Cut(d.Message, ":")
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}

// reasons prints the reasons of the other diagnostics.
func reasons(r olmcore.Result) string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Reason != olmcore.ReasonHistoryGap {
			all = append(all, d.Reason)
		}
	}
	return strings.Join(all, " ")
}
