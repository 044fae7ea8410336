// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// bring returns a resolution of the Input that changes the named Subscriptions to a CSV, with the plan "p".
func bring(in subscription.Input, csv string, names ...string) *subscription.Resolved {
	r := &subscription.Resolved{Resolution: resolutionOf(in)}
	r.Plan = olmcore.RefOf(newPlan("p", ""))
	r.Resolution.Operators = []olmcore.Operator{{Name: csv, Package: "etcd"}}
	for i := range r.Resolution.Decisions {
		for _, name := range names {
			if d := &r.Resolution.Decisions[i]; d.Name == name {
				d.CurrentCSV, d.Changed = csv, true
			}
		}
	}
	return r
}

func TestResolutionSetsPlanReferences(t *testing.T) {
	a := newSub("a", withCondition(v1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable", "x", 6))
	b := newSub("b", follows("old", "other.v1"), installed, withCondition(v1alpha1.SubscriptionBundleUnpacking, "UnpackingInProgress", "", 6))
	plan := newPlan("p", "", empty, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 3 })
	in := inputOf(a, b, newPlan("old", "Complete", func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(b))
	}), plan, newCSV("other.v1"))
	in.Resolution = bring(in, "etcd.v1", "a")
	out := reconcile(t, in)

	got := statusOf(t, in, out, "a")
	require.Equal(t, refTo("p"), got.InstallPlanRef)
	require.Equal(t, v1alpha1.NewInstallPlanReference(refTo("p")), got.Install)
	require.Equal(t, "etcd.v1", got.CurrentCSV)
	require.Equal(t, 3, got.InstallPlanGeneration)
	require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), got.State)
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition(v1alpha1.SubscriptionInstallPlanPending, "InstallPlanNotYetReconciled", "", 60)}, got.Conditions)
	require.Equal(t, "->N", stages(out.Result))

	other := statusOf(t, in, out, "b")
	require.Empty(t, other.Conditions, "success removes the conditions from every Subscription")
	require.Equal(t, "old", other.InstallPlanRef.Name)
	require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), other.State)
	require.Equal(t, subscription.GateDeferred, gateOf(t, in))

	t.Run("the order of the decisions does not matter", func(t *testing.T) {
		shuffled := in
		r := *in.Resolution
		r.Resolution.Observed, r.Resolution.Decisions = slices.Clone(r.Resolution.Observed), slices.Clone(r.Resolution.Decisions)
		slices.Reverse(r.Resolution.Observed)
		slices.Reverse(r.Resolution.Decisions)
		shuffled.Resolution = &r
		require.Equal(t, out, reconcile(t, shuffled))
	})

	t.Run("an applied answer needs no action", func(t *testing.T) {
		next := in
		next.Subscriptions.Items = nil
		for _, action := range out.Actions {
			next.Subscriptions.Items = append(next.Subscriptions.Items, action.(olmcore.UpdateStatus).After.(*v1alpha1.Subscription))
		}
		again := reconcile(t, next)
		require.True(t, again.Empty(), "%+v", again)
		require.Equal(t, subscription.GateAnswered, gateOf(t, next))

		t.Run("a caller that lost the answer must resolve again to fill the plan", func(t *testing.T) {
			next.Subscriptions.Items = next.Subscriptions.Items[:1] // b would ask anyway
			next.Resolution = nil
			require.Equal(t, subscription.GateNeeded, gateOf(t, next))
			next.InstallPlans.Items = []*v1alpha1.InstallPlan{newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 3 })}
			require.Equal(t, subscription.GateNotNeeded, gateOf(t, next))
		})
	})
	t.Run("a lost write is repeated", func(t *testing.T) {
		in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 6)), newSub("b"), newPlan("p", "", empty, func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(newSub("b")))
		}))
		before := inputOf(newSub("a"), newSub("b"))
		in.Resolution = bring(before, "etcd.v1", "a", "b")
		out := reconcile(t, in)
		require.Len(t, out.Actions, 1)
		require.Equal(t, "p", statusOf(t, in, out, "b").InstallPlanRef.Name)
	})
}

func TestDeletedSubscriptionGetsNoPlan(t *testing.T) {
	in := inputOf(newSub("a", func(s *v1alpha1.Subscription) { s.DeletionTimestamp = secondp(9) }), newPlan("p", "", empty))
	in.Resolution = bring(in, "etcd.v1", "a")
	require.Empty(t, reconcile(t, in).Actions)
}

// TestStaleFailureIsNotPublished checks that the failure of a stale resolution is not written. Another manager
// resolved the namespace since, and the Subscription waits for the InstallPlan of that answer. Otherwise two
// managers would overwrite each other's condition endlessly.
func TestStaleFailureIsNotPublished(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6))
	in := inputOf(sub, newPlan("p", "RequiresApproval", manual(1)))
	in.Resolution = bring(in, "etcd.v1")
	in.Resolution.Resolution.Observed[0].Generation--
	in.Resolution.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true, Message: "no channel x"}
	in.Resolution.Resolution.Decisions[0].Failure = in.Resolution.Resolution.Failure
	require.Empty(t, reconcile(t, in).Actions)

	in.Resolution.Resolution.Observed[0].Generation++
	got := statusOf(t, in, reconcile(t, in), "a")
	require.Equal(t, "constraints not satisfiable: no channel x", got.GetCondition(v1alpha1.SubscriptionResolutionFailed).Message)
}

func TestStaleResolutionWritesNothing(t *testing.T) {
	plan := newPlan("p", "", empty)
	for name, change := range map[string]func(in *subscription.Input){
		"a Subscription was created":       func(in *subscription.Input) { in.Subscriptions.Items = append(in.Subscriptions.Items, newSub("b")) },
		"a Subscription was deleted":       func(in *subscription.Input) { in.Resolution.Resolution.Observed[0].Name = "gone" },
		"it was deleted and created again": func(in *subscription.Input) { in.Resolution.Resolution.Observed[0].UID = "old" },
		"its spec was edited":              func(in *subscription.Input) { in.Resolution.Resolution.Observed[0].Generation = 9 },
		"its CSV was installed":            func(in *subscription.Input) { in.Resolution.Resolution.Observed[0].InstalledCSV = "x" },
		"it follows another version":       func(in *subscription.Input) { in.Resolution.Resolution.Observed[0].CurrentCSV = "x" },
		"the resolution contains a deleted Subscription": func(in *subscription.Input) {
			in.Resolution.Resolution.Observed = append(in.Resolution.Resolution.Observed, olmcore.SubscriptionFingerprint{Name: "b"})
		},
		"it follows another version than the decided one": func(in *subscription.Input) {
			in.Resolution.Resolution.Observed[0].CurrentCSV = "x"
			in.Resolution.Resolution.Decisions[0].CurrentCSV = "y"
		},
		"it follows another version, and the decision is about another Subscription": func(in *subscription.Input) {
			in.Subscriptions.Items = append(in.Subscriptions.Items, newSub("b"))
			in.Resolution = bring(*in, "etcd.v1", "b")
			in.Resolution.Resolution.Observed[0].CurrentCSV = "x"
		},
		// The answer of another worker changed it, with a plan that has no steps.
		"it references another plan without steps": func(in *subscription.Input) {
			follows("q", "etcd.v1")(in.Subscriptions.Items[0])
			pending("InstallPlanNotYetReconciled", 6)(in.Subscriptions.Items[0])
			in.InstallPlans.Items = append(in.InstallPlans.Items, newPlan("q", "", empty))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a"), plan)
			in.Resolution = bring(in, "etcd.v1", "a")
			change(&in)
			out := reconcile(t, in)
			require.Empty(t, out.Actions)
			require.Equal(t, "StaleResolution", reasons(out.Result))
			require.Equal(t, subscription.GateNeeded, gateOf(t, in))
			require.Equal(t, "StaleResolution", out.Resolve.Reason)
			require.Len(t, out.Resolve.Subscriptions, len(in.Subscriptions.Items))
		})
	}
	t.Run("an answer without a plan is not applied by the plan of another answer", func(t *testing.T) {
		in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 6)), plan)
		in.Resolution = bring(inputOf(newSub("a")), "etcd.v1", "a")
		in.Resolution.Plan = olmcore.Ref{}
		out := reconcile(t, in)
		require.Equal(t, subscription.GateNeeded, gateOf(t, in))
		require.Equal(t, "StaleResolution", out.Resolve.Reason)
	})
	t.Run("an answer that was applied is not reported as stale", func(t *testing.T) {
		in := inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete"), newCSV("etcd.v1"))
		in.Resolution = bring(inputOf(newSub("a")), "etcd.v1", "a")
		out := reconcile(t, in)
		require.True(t, out.Empty(), "%+v", out)
		require.Equal(t, subscription.GateNeeded, gateOf(t, in))
	})
}

// OLM's cases: an unsatisfiable namespace, another error, and success after a failure.
func TestFailedResolutionSetsTheCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		failure         olmcore.ResolutionFailure
		attempts        int
		after           time.Duration // since the resolution, negative: not known
		reason, message string
		gate            subscription.Gate
		requeue         time.Duration
	}{
		"contradicting constraints": {olmcore.ResolutionFailure{Unsatisfiable: true, Message: "a needs b"}, 1, time.Hour,
			"ConstraintsNotSatisfiable", "constraints not satisfiable: a needs b", subscription.GateAnswered, 0},
		"contradicting constraints in OLM's words": {olmcore.ResolutionFailure{Unsatisfiable: true, Message: "constraints not satisfiable: a"}, 1, 0,
			"ConstraintsNotSatisfiable", "constraints not satisfiable: a", subscription.GateAnswered, 0},
		"another error": {olmcore.ResolutionFailure{Message: "no catalog"}, 3, 0,
			"ErrorPreventedResolution", "no catalog", subscription.GateAnswered, 40 * time.Millisecond},
		"another error, after the backoff": {olmcore.ResolutionFailure{Message: "no catalog"}, 3, 40 * time.Millisecond,
			"ErrorPreventedResolution", "no catalog", subscription.GateNeeded, 0},
		"another error, after many attempts": {olmcore.ResolutionFailure{Message: "no catalog"}, 1000, 0,
			"ErrorPreventedResolution", "no catalog", subscription.GateAnswered, 5 * time.Minute},
		"another error at an unknown time": {olmcore.ResolutionFailure{Message: "no catalog"}, 1, -1,
			"ErrorPreventedResolution", "no catalog", subscription.GateAnswered, 0},
		"a transient error":                    {olmcore.ResolutionFailure{Transient: true, Message: "cache"}, 1, 0, "", "", subscription.GateAnswered, time.Second},
		"a transient error, after the backoff": {olmcore.ResolutionFailure{Transient: true, Message: "cache"}, 1, time.Second, "", "", subscription.GateNeeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a"), newSub("b", follows("p", "other.v1"), pending("RequiresApproval", 6)),
				newPlan("p", "RequiresApproval", manual(1), func(p *v1alpha1.InstallPlan) {
					p.OwnerReferences[0] = olmcore.OwnerReferenceTo(newSub("b"))
				}))
			in.Resolution = &subscription.Resolved{Resolution: resolutionOf(in), Attempts: tc.attempts}
			in.Resolution.Resolution.Failure = &tc.failure
			if tc.after >= 0 {
				in.Resolution.At = now.Add(-tc.after)
			}
			out := reconcile(t, in)
			var subs []*v1alpha1.Subscription
			for _, s := range in.Subscriptions.Items {
				status := statusOf(t, in, out, s.Name)
				s = s.DeepCopy()
				s.Status = status
				subs = append(subs, s)
				if tc.reason != "" {
					require.Equal(t, condition(v1alpha1.SubscriptionResolutionFailed, tc.reason, tc.message, 60), status.Conditions[len(status.Conditions)-1])
				}
			}
			if tc.reason != "" {
				require.Equal(t, subscription.GateDeferred, gateOf(t, in))
			}
			in.Subscriptions.Items = subs
			out = reconcile(t, in)
			require.Empty(t, out.Actions)
			require.Equal(t, tc.gate, gateOf(t, in))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			if tc.gate == subscription.GateNeeded {
				require.Equal(t, "Retry", out.Resolve.Reason)
			}

			in.Resolution = &subscription.Resolved{Resolution: resolutionOf(in)}
			for _, s := range in.Subscriptions.Items {
				require.NotContains(t, statusOf(t, in, reconcile(t, in), s.Name).Conditions, v1alpha1.SubscriptionResolutionFailed)
				require.Less(t, len(statusOf(t, in, reconcile(t, in), s.Name).Conditions), 2, "success removes it")
			}
		})
	}
}

func TestSubscriptionOutsideTheSolutionReportsItsFailure(t *testing.T) {
	in := inputOf(newSub("a"), newSub("b"), newPlan("p", "", empty))
	in.Resolution = bring(in, "etcd.v1", "a")
	in.Resolution.Resolution.Decisions[1].Failure = &olmcore.ResolutionFailure{Unsatisfiable: true, Message: "no such channel"}
	out := reconcile(t, in)
	require.Equal(t, "p", statusOf(t, in, out, "a").InstallPlanRef.Name)
	require.Equal(t, []v1alpha1.SubscriptionCondition{
		condition(v1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable", "constraints not satisfiable: no such channel", 60),
	}, statusOf(t, in, out, "b").Conditions)
	require.Nil(t, statusOf(t, in, out, "b").InstallPlanRef)
}

func TestNamespaceWithoutOneOperatorGroupIsBlocked(t *testing.T) {
	for count, message := range map[int]string{0: "found 0 operatorGroups, expected 1", 2: "found 2 operatorGroups, expected 1"} {
		in := inputOf(newSub("a"), newSub("b", follows("p", "etcd.v1"), pending("Installing", 6)), newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences[0] = olmcore.OwnerReferenceTo(newSub("b"))
		}))
		in.OperatorGroups.Items = make([]*operatorsv1.OperatorGroup, count)
		for i := range in.OperatorGroups.Items {
			in.OperatorGroups.Items[i] = &operatorsv1.OperatorGroup{ObjectMeta: meta([]string{"g", "h"}[i])}
		}
		out := reconcile(t, in)
		require.Equal(t, subscription.GateBlocked, gateOf(t, in))
		require.Equal(t, "OperatorGroupCount", reasons(out.Result))
		require.Equal(t, 5*time.Minute, out.RequeueAfter)
		for i, s := range in.Subscriptions.Items {
			status := statusOf(t, in, out, s.Name)
			require.Equal(t, condition(v1alpha1.SubscriptionResolutionFailed, "OperatorGroupCount", message, 60), status.Conditions[i])
			s = s.DeepCopy()
			s.Status = status
			in.Subscriptions.Items[i] = s
		}
		require.Empty(t, reconcile(t, in).Actions)

		in.OperatorGroups.Items = inputOf().OperatorGroups.Items
		out = reconcile(t, in)
		require.Empty(t, statusOf(t, in, out, "a").Conditions, "no other write takes it back")
		require.Len(t, statusOf(t, in, out, "b").Conditions, 1)
	}
}

func TestUnobservedPlanIsRequestedAgainAfterTheGracePeriod(t *testing.T) {
	for name, tc := range map[string]struct {
		at      time.Duration // the resolution, before now; negative: not known
		change  func(*subscription.Input)
		gate    subscription.Gate
		requeue time.Duration
	}{
		"is waited for":                                           {at: time.Second, gate: subscription.GateAnswered, requeue: time.Second},
		"is waited for until the grace ends":                      {at: 9500 * time.Millisecond, gate: subscription.GateAnswered, requeue: 500 * time.Millisecond},
		"is requested again after the grace period":               {at: 10 * time.Second, gate: subscription.GateNeeded},
		"is requested again if the time of the answer is unknown": {at: -1, gate: subscription.GateNeeded},
		"is requested again after a live read":                    {at: 0, change: func(in *subscription.Input) { in.Live = true }, gate: subscription.GateNeeded},
		"is requested again after its deletion was observed": {at: 0, gate: subscription.GateNeeded, change: func(in *subscription.Input) {
			in.Observations = []subscription.Observation{{At: now, Plan: newPlan("p", ""), Deleted: true}}
		}},
		"is not replaced by a plan of the same name": {at: time.Second, gate: subscription.GateAnswered, requeue: time.Second, change: func(in *subscription.Input) {
			in.InstallPlans.Items = []*v1alpha1.InstallPlan{newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.UID = "other" })}
		}},
		"is not referenced while it is being deleted": {at: time.Second, gate: subscription.GateAnswered, requeue: time.Second, change: func(in *subscription.Input) {
			in.InstallPlans.Items = []*v1alpha1.InstallPlan{newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(1) })}
		}},
		"does not exist yet": {at: time.Hour, gate: subscription.GateAnswered, change: func(in *subscription.Input) { in.Resolution.Plan = olmcore.Ref{} }},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a"))
			in.Resolution = bring(in, "etcd.v1", "a")
			if tc.at >= 0 {
				in.Resolution.At = now.Add(-tc.at)
			}
			if tc.change != nil {
				tc.change(&in)
			}
			out := reconcile(t, in)
			require.Empty(t, out.Actions)
			require.Equal(t, tc.gate, gateOf(t, in))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			if tc.gate == subscription.GateNeeded {
				require.Equal(t, "InstallPlanGone", out.Resolve.Reason)
			}
		})
	}
}

func TestResolutionWithoutPlanSetsOnlyCurrentCSV(t *testing.T) {
	in := inputOf(newSub("a"))
	in.Resolution = bring(in, "etcd.v1", "a")
	in.Resolution.Plan, in.Resolution.Resolution.Operators = olmcore.Ref{}, nil
	got := statusOf(t, in, reconcile(t, in), "a")
	require.Equal(t, "etcd.v1", got.CurrentCSV)
	require.Nil(t, got.InstallPlanRef)
	require.Zero(t, got.InstallPlanGeneration)
}

func TestWhichSubscriptionsNeedAResolution(t *testing.T) {
	deleting := func(s *v1alpha1.Subscription) { s.DeletionTimestamp = secondp(9) }
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    subscription.Gate
	}{
		"a new Subscription":                                 {[]olmcore.Object{newSub("a")}, subscription.GateNeeded},
		"a new Subscription that is being deleted":           {[]olmcore.Object{newSub("a", deleting)}, subscription.GateNotNeeded},
		"a Subscription without a spec":                      {[]olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Spec = nil })}, subscription.GateNotNeeded},
		"a Subscription that waits for its plan":             {[]olmcore.Object{newSub("a", follows("p", "x"), pending("Installing", 6)), newPlan("p", "Installing")}, subscription.GateNotNeeded},
		"a Subscription that waits for a plan without steps": {[]olmcore.Object{newSub("a", follows("p", "x"), pending("InstallPlanNotYetReconciled", 6)), newPlan("p", "", empty)}, subscription.GateNeeded},
		"a waiting and a new Subscription":                   {[]olmcore.Object{newSub("a", follows("p", "x"), pending("Installing", 6)), newSub("b"), newPlan("p", "Installing")}, subscription.GateNeeded},
		"an installed Subscription":                          {[]olmcore.Object{newSub("a", follows("p", "x"), installed), newPlan("p", "Complete"), newCSV("x")}, subscription.GateNeeded},
		"a failed Subscription that fails forward":           {[]olmcore.Object{newSub("a", follows("p", "x"), withCondition("InstallPlanFailed", "InstallPlanFailed", "", 6), func(s *v1alpha1.Subscription) { s.Status.State = "UpgradeFailed" }), newPlan("p", "Failed")}, subscription.GateNeeded},
		"a Subscription whose status is written first":       {[]olmcore.Object{newSub("a", follows("p", "x")), newSub("b"), newPlan("p", "Installing")}, subscription.GateDeferred},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.objects...)
			if strings.HasSuffix(name, "fails forward") {
				in = failForward(in)
			}
			require.Equal(t, tc.want, gateOf(t, in))
			require.Equal(t, tc.want, assess(t, in).Gate)
		})
	}
}

func TestEqualRequestsHaveEqualFingerprints(t *testing.T) {
	a, b := newSub("a"), newSub("b")
	one := reconcile(t, inputOf(a, b)).Resolve
	two := reconcile(t, inputOf(b, a)).Resolve
	require.Equal(t, one, two)
	three := reconcile(t, inputOf(a, newSub("b", func(s *v1alpha1.Subscription) { s.Generation = 2 }))).Resolve
	require.NotEqual(t, one.Fingerprint, three.Fingerprint)
}

// TestWaitingSubscriptionMovesOnceItsPlanEnded checks which InstallPlan Subscription a references after
// Subscription b was added. The new plan installs the versions of both. Subscription a references it only after its
// old plan ended.
func TestWaitingSubscriptionMovesOnceItsPlanEnded(t *testing.T) {
	at := func(generation int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Generation = generation }
	}
	brings := func(names ...string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = names }
	}
	both := brings("etcd.v1", "vault.v1")
	broken := func(p *v1alpha1.InstallPlan) { failed(9)(p); p.Status.StartTime = secondp(3) }
	for name, tc := range map[string]struct {
		old, made *v1alpha1.InstallPlan
		csv       *v1alpha1.ClusterServiceVersion
		alone     bool // the answer changes no Subscription
		want      string
	}{
		"the old one waits": {
			old: newPlan("old", "RequiresApproval", manual(1)), made: newPlan("p", "", empty, at(2), both), want: "old",
		},
		"both plans wait for approval": {
			old: newPlan("old", "RequiresApproval", manual(1)), made: newPlan("p", "RequiresApproval", manual(1), at(2), both),
			want: "old",
		},
		"the old one has no phase": {
			old: newPlan("old", "", manual(1)), made: newPlan("p", "", empty, at(2), both), want: "old",
		},
		"the old one was superseded": {
			old:  newPlan("old", "Failed", installedIs(corev1.ConditionFalse, "Superseded", "superseded by InstallPlan p", 9)),
			made: newPlan("p", "", empty, at(2), both), want: "p",
		},
		"the old one failed":                     {old: newPlan("old", "Failed", broken), made: newPlan("p", "", empty, at(2), both), want: "p"},
		"the old one is approved":                {old: newPlan("old", "RequiresApproval", manual(2)), made: newPlan("p", "", empty, at(2), both), want: "old"},
		"the old one runs":                       {old: newPlan("old", "Installing", manual(2), started(9)), made: newPlan("p", "", empty, at(2), both), want: "old"},
		"the old plan has the higher generation": {old: newPlan("old", "RequiresApproval", manual(1), at(3)), made: newPlan("p", "", empty, at(2), both), want: "old"},
		"the new one brings another version":     {old: newPlan("old", "RequiresApproval", manual(1)), made: newPlan("p", "", empty, at(2), brings("vault.v1")), want: "old"},
		"the new plan failed":                    {old: newPlan("old", "RequiresApproval", manual(1)), made: newPlan("p", "Failed", broken, at(2), both), want: "old"},
		"the CSV exists":                         {old: newPlan("old", "RequiresApproval", manual(1)), made: newPlan("p", "", empty, at(2), both), csv: newCSV("etcd.v1"), want: "old"},
		"the answer changes no Subscription":     {old: newPlan("old", "Failed", broken), made: newPlan("p", "", empty, at(2), both), alone: true, want: "old"},
		"the answer changes no Subscription, and the old plan has no steps": {old: newPlan("old", "", empty), made: newPlan("p", "", empty, at(2), both), alone: true, want: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSub("a", follows("old", "etcd.v1"), pending("RequiresApproval", 6))
			in := inputOf(a, newSub("b"), tc.old, tc.made)
			if tc.csv != nil {
				in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, tc.csv)
			}
			in.Resolution = bring(in, "vault.v1", "b")
			if tc.alone {
				in.Resolution = bring(in, "vault.v1")
			}
			out := reconcile(t, in)
			got := statusOf(t, in, out, "a")
			require.Equal(t, tc.want, got.InstallPlanRef.Name)
			require.Equal(t, "etcd.v1", got.CurrentCSV)
			if tc.want == "p" {
				require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), got.State)
				require.Equal(t, 2, got.InstallPlanGeneration)
			}
			carryOut(&in, out)
			out = reconcile(t, in)
			require.Equal(t, tc.want, statusOf(t, in, out, "a").InstallPlanRef.Name)
		})
	}
}

// TestSubscriptionLeavesAPlanWithoutSteps checks that a Subscription leaves an InstallPlan without steps for the
// plan of the answer, if that plan installs the version that the Subscription waits for. The answer itself changes
// nothing about the Subscription.
func TestSubscriptionLeavesAPlanWithoutSteps(t *testing.T) {
	other := func(s *v1alpha1.Subscription) {
		s.Name, s.UID, s.Spec.Package, s.Labels = "b", "b-uid", "vault", map[string]string{"operators.coreos.com/vault.ops": ""}
	}
	for name, tc := range map[string]struct {
		change  func(in *subscription.Input)
		changed bool // the answer changes another Subscription
		stays   bool
	}{
		"an answer that changes nothing": {},
		"an answer that changes another": {changed: true},
		"its plan has steps":             {func(in *subscription.Input) { in.InstallPlans.Items[0] = newPlan("old", "Installing") }, false, true},
		"its plan has another UID":       {func(in *subscription.Input) { in.InstallPlans.Items[0].UID = "another" }, false, true},
		"its plan is not observed for a moment": {func(in *subscription.Input) {
			in.InstallPlans.Items, in.Subscriptions.Items[0].Status.LastUpdated = in.InstallPlans.Items[1:], second(58)
		}, false, true},
		"the new plan is not observed": {func(in *subscription.Input) { in.InstallPlans.Items = in.InstallPlans.Items[:1] }, false, true},
		"the new plan installs another version": {func(in *subscription.Input) {
			in.InstallPlans.Items[1].Spec.ClusterServiceVersionNames = []string{"vault.v1"}
		}, false, true},
		"it is being deleted":         {func(in *subscription.Input) { in.Subscriptions.Items[0].DeletionTimestamp = secondp(9) }, false, true},
		"there is no plan to move to": {func(in *subscription.Input) { in.Resolution.Plan = olmcore.Ref{} }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("old", "etcd.v1"), pending("InstallPlanNotYetReconciled", 6)), newSub("b", other),
				newPlan("old", "", empty), newPlan("p", "", empty, func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 4 }))
			in.Resolution = bring(in, "etcd.v1")
			if tc.changed {
				in.Resolution = bring(in, "vault.v1", "b")
				in.InstallPlans.Items[1].Spec.ClusterServiceVersionNames = []string{"etcd.v1", "vault.v1"}
			}
			if tc.change != nil {
				tc.change(&in)
			}
			out := reconcile(t, in)
			got := statusOf(t, in, out, "a")
			if tc.stays {
				require.NotEqual(t, refTo("p"), got.InstallPlanRef)
				return
			}
			require.Equal(t, refTo("p"), got.InstallPlanRef)
			require.Equal(t, "etcd.v1", got.CurrentCSV)
			require.Equal(t, 4, got.InstallPlanGeneration)
			require.Contains(t, out.Actions[0].(olmcore.UpdateStatus).Cause.Message, "instead of old")
		})
	}
}

// TestStaleAnswerIsReportedUntilItIsApplied checks that StaleResolution is reported only while a decision of the
// stale answer is not applied.
func TestStaleAnswerIsReportedUntilItIsApplied(t *testing.T) {
	follow := func(change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription { return newSub("a", change...) }
	noPlan := func(in *subscription.Input) { in.Resolution.Plan = olmcore.Ref{} }
	for name, tc := range map[string]struct {
		sub    *v1alpha1.Subscription
		change func(*subscription.Input)
		said   bool
	}{
		"another version":                           {follow(follows("q", "etcd.v0")), nil, true},
		"another version, and no plan":              {follow(follows("q", "etcd.v0")), noPlan, true},
		"the version without its plan":              {follow(func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "etcd.v1" }), nil, true},
		"the version with another plan":             {follow(follows("q", "etcd.v1")), nil, true},
		"the version with another plan, not needed": {follow(follows("q", "etcd.v1")), noPlan, false},
		"the version with its plan":                 {follow(follows("p", "etcd.v1")), nil, false},
		"the version is installed":                  {follow(follows("q", "etcd.v1"), installed), nil, false},
		"the version was installed, and left": {follow(follows("q", "etcd.v2"), func(s *v1alpha1.Subscription) {
			s.Status.InstalledCSV = "etcd.v1"
		}), nil, false},
		"the Subscription is gone": {newSub("other"), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.sub, newSub("z"), newPlan("p", "Installing"), newPlan("q", "Installing"))
			in.Resolution = bring(inputOf(newSub("a")), "etcd.v1", "a")
			if tc.change != nil {
				tc.change(&in)
			}
			out := reconcile(t, in)
			if tc.said {
				require.Contains(t, reasons(out.Result), "StaleResolution")
			} else {
				require.NotContains(t, reasons(out.Result), "StaleResolution")
			}
		})
	}
}

// TestAppliedAnswerIsNotAppliedAgain checks that a new resolution is requested if the reference to a complete
// InstallPlan was cleared because its CSV is gone. The answer that created the plan would install nothing.
func TestAppliedAnswerIsNotAppliedAgain(t *testing.T) {
	complete := newPlan("p", "Complete", started(3), done(9))
	for name, tc := range map[string]struct {
		change func(in *subscription.Input)
		spent  bool
	}{
		"the CSV was deleted": {func(*subscription.Input) {}, true},
		"at an unknown time":  {func(in *subscription.Input) { in.Resolution.At = time.Time{} }, true},
		"the answer is newer": {func(in *subscription.Input) { in.Resolution.At = second(6).Time }, false},
		"the answer is of the second of the plan's creation": {func(in *subscription.Input) { in.Resolution.At = second(5).Add(time.Second / 2) }, true},
		"the plan runs": {func(in *subscription.Input) { in.InstallPlans.Items[0] = newPlan("p", "Installing") }, false},
		"the CSV is there": {func(in *subscription.Input) {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, newCSV("etcd.v1"))
		}, false},
		"the answer does not change the Subscription": {func(in *subscription.Input) { in.Resolution.Resolution.Decisions[0].Changed = false }, false},
		"the Subscription refers to another plan": {func(in *subscription.Input) {
			follows("q", "")(in.Subscriptions.Items[0])
			in.InstallPlans.Items = append(in.InstallPlans.Items, newPlan("q", "Complete"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a"), complete)
			in.Resolution = bring(in, "etcd.v1", "a")
			in.Resolution.At = second(4).Time
			tc.change(&in)
			out := reconcile(t, in)
			require.Equal(t, tc.spent, out.Resolve != nil && out.Resolve.Reason == "InstallPlanGone", "%+v", out)
			if tc.spent {
				require.Empty(t, out.Actions)
			}
		})
	}
}

// TestSubscriptionsOfOneAnswerMoveTogether checks that a Subscription does not move to a new plan while another
// Subscription, which the same answer changes, has to keep its plan. Otherwise the old plan could still install a
// version that the new plan skips.
func TestSubscriptionsOfOneAnswerMoveTogether(t *testing.T) {
	contains := func(version string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{version} }
	}
	for name, tc := range map[string]struct {
		phase v1alpha1.InstallPlanPhase // of the plan that b references
		want  string                    // the plan that a references afterwards
	}{
		"the other plan is in progress": {"Installing", "done"},
		"the other plan has failed":     {"Failed", "p"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("done", "etcd.v0"), installed), newSub("b", follows("old", "vault.v1")), newCSV("etcd.v0"),
				newPlan("done", "Complete", contains("etcd.v0")), newPlan("old", tc.phase, contains("vault.v1")), newPlan("p", "", empty))
			in.Resolution = bring(in, "etcd.v1", "a", "b")
			out := reconcile(t, in)
			require.Equal(t, tc.want, statusOf(t, in, out, "a").InstallPlanRef.Name)
			require.Equal(t, tc.want == "p", statusOf(t, in, out, "b").InstallPlanRef.Name == "p")
		})
	}
}
