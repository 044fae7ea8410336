// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// ofTheNamespace returns the diagnostics that concern all Subscriptions of the namespace. They are about its first
// Subscription, so that their Events are visible to the users of the namespace.
func ofTheNamespace(t *testing.T, r olmcore.Result) (all []olmcore.Diagnostic) {
	reasons := []string{subscription.ReasonResolutionFailed, subscription.ReasonOperatorGroupCount, subscription.ReasonErrorPreventedUnpacking,
		subscription.ReasonObservationIgnored}
	for _, d := range r.Diagnostics {
		if slices.Contains(reasons, d.Reason) {
			require.Equal(t, "Subscription "+ns+"/a", d.Target.String())
			all = append(all, d)
		}
	}
	return all
}

// OLM's cases: pending and failed lookups, a plan that cannot be created, an error that passes, and neither
// condition after unpacking.
func TestUnpackingSetsTheConditions(t *testing.T) {
	pending := lookup(v1alpha1.BundleLookupPending, "JobIncomplete", "")
	stuck := lookup(v1alpha1.BundleLookupPending, "JobIncomplete", "unpack job not completed: ImagePullBackOff on x")
	broken := lookup(v1alpha1.BundleLookupFailed, "DeadlineExceeded", "Job was active longer than specified deadline")
	explained := lookup(v1alpha1.BundleLookupFailed, "DeadlineExceeded", "Common causes: none")
	fresh := lookup(v1alpha1.BundleLookupPending, "", "")
	fresh.Conditions[0].Status = corev1.ConditionFalse
	both := newSub("a", withCondition("BundleUnpacking", "UnpackingInProgress", "", 3), withCondition("BundleUnpackFailed", "BundleUnpackFailed", "x", 3),
		withCondition("ResolutionFailed", "ErrorPreventedResolution", "x", 3))
	for name, tc := range map[string]struct {
		sub     *v1alpha1.Subscription
		change  func(*subscription.Resolved)
		want    []string // type/reason: the start of the message, a star, its end
		requeue time.Duration
	}{
		"pending": {newSub("a"), func(r *subscription.Resolved) { r.Unpacking.Lookups = []v1alpha1.BundleLookup{fresh, pending} },
			[]string{"BundleUnpacking/UnpackingInProgress: "}, 5 * time.Second},
		"pending after a failure": {both, func(r *subscription.Resolved) { r.Unpacking.Lookups = []v1alpha1.BundleLookup{pending} },
			[]string{"BundleUnpacking/UnpackingInProgress: "}, 5 * time.Second},
		"an image that cannot be pulled": {newSub("a"), func(r *subscription.Resolved) { r.Unpacking.Lookups = []v1alpha1.BundleLookup{pending, stuck} },
			[]string{"BundleUnpacking/UnpackingInProgress: *ImagePullBackOff on x"}, 5 * time.Second},
		"an image that cannot be pulled, in other words": {newSub("a"), func(r *subscription.Resolved) {
			r.Unpacking.Lookups = []v1alpha1.BundleLookup{lookup(v1alpha1.BundleLookupPending, "Other", "ErrImagePull"), lookup(v1alpha1.BundleLookupPending, "JobIncomplete", "ErrImagePull on y")}
		}, []string{"BundleUnpacking/UnpackingInProgress: an image cannot be pulled: ErrImagePull on y"}, 5 * time.Second},
		"failed with a message about the retry": {newSub("a"), func(r *subscription.Resolved) {
			r.Unpacking.Lookups = []v1alpha1.BundleLookup{lookup(v1alpha1.BundleLookupFailed, "DeadlineExceeded", "Auto-retry soon")}
		}, []string{"BundleUnpackFailed/BundleUnpackFailed: Bundle unpacking failed - DeadlineExceeded: Auto-retry soon"}, 5 * time.Minute},
		"failed": {both, func(r *subscription.Resolved) {
			r.Unpacking.Lookups = []v1alpha1.BundleLookup{pending, broken, explained}
		},
			[]string{"BundleUnpackFailed/BundleUnpackFailed: Bundle unpacking failed - DeadlineExceeded: Job was active longer than specified deadline. *namespace of the catalog"}, 5 * time.Minute},
		"failed with an explanation": {newSub("a"), func(r *subscription.Resolved) { r.Unpacking.Lookups = []v1alpha1.BundleLookup{explained} },
			[]string{"BundleUnpackFailed/BundleUnpackFailed: Bundle unpacking failed - DeadlineExceeded: Common causes: none"}, 5 * time.Minute},
		"a fatal error": {newSub("a"), func(r *subscription.Resolved) {
			r.Unpacking.Failure = &olmcore.ResolutionFailure{Message: "no OperatorGroup"}
		},
			[]string{"BundleUnpackFailed/ErrorPreventedUnpacking: no OperatorGroup"}, 0},
		"a transient error": {both, func(r *subscription.Resolved) {
			r.Unpacking.Failure, r.Attempts = &olmcore.ResolutionFailure{Transient: true, Message: "no"}, 3
		},
			[]string{"BundleUnpacking/UnpackingInProgress: ", "BundleUnpackFailed/BundleUnpackFailed: x"}, 40 * time.Millisecond},
		"the plan cannot be written": {newSub("a"), func(r *subscription.Resolved) { r.PlanError, r.Attempts = "denied", 16 },
			[]string{"BundleUnpackFailed/EnsureInstallPlanFailed: error ensuring InstallPlan: denied"}, 5 * time.Minute},
		"pending, and a failure that passes": {newSub("a"), func(r *subscription.Resolved) {
			r.Unpacking.Lookups = []v1alpha1.BundleLookup{pending}
			r.Resolution.Decisions[0].Failure = &olmcore.ResolutionFailure{Transient: true, Message: "no"}
		}, []string{"BundleUnpacking/UnpackingInProgress: "}, time.Second},
		"all done": {both, func(*subscription.Resolved) {}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.sub)
			in.Resolution = &subscription.Resolved{Resolution: resolutionOf(in), At: now}
			in.Resolution.Unpacking = &subscription.Unpacking{}
			in.Resolution.Resolution.Operators = []olmcore.Operator{{Name: "etcd.v1"}}
			in.Resolution.Resolution.Decisions[0].Changed, in.Resolution.Resolution.Decisions[0].CurrentCSV = true, "etcd.v1"
			tc.change(in.Resolution)
			out := reconcile(t, in)
			require.Nil(t, out.Resolve)
			carryOut(&in, out)
			out = reconcile(t, in)
			require.Empty(t, out.Actions, "written again")
			require.Equal(t, tc.requeue, out.RequeueAfter)
			conditions := in.Subscriptions.Items[0].Status.Conditions
			require.Len(t, conditions, len(tc.want))
			for i, c := range conditions {
				start, end, _ := strings.Cut(tc.want[i], "*")
				got := string(c.Type) + "/" + c.Reason + ": " + c.Message
				require.True(t, strings.HasPrefix(got, start) && strings.HasSuffix(got, end), got)
				require.NotNil(t, c.LastTransitionTime)
			}
			reported := ofTheNamespace(t, out.Result)
			if u := in.Resolution.Unpacking; u.Failure != nil && u.Failure.Transient {
				require.Len(t, reported, 1)
				require.Equal(t, "bundle unpacking failed with an error: no", reported[0].Message)
			} else {
				require.Empty(t, reported)
			}
			if strings.Contains(name, "failed") {
				_, guidance, _ := strings.Cut(conditions[0].Message, "deadline. ")
				require.Equal(t, name == "failed", guidance != "")
				for _, token := range []string{"Auto-retry", "Common causes", "5 minutes", "delete", "operatorframework.io/bundle-unpack-ref", "namespace of the catalog"} {
					require.True(t, guidance == "" || strings.Contains(guidance, token), guidance)
				}
				require.Regexp(t, "^Bundle unpacking failed - DeadlineExceeded: .*(Auto-retry|Common causes)", conditions[0].Message)
			}
			if tc.requeue > 0 && tc.requeue != 5*time.Second {
				for range 2 { // every time, not only once
					in.Now = in.Resolution.At.Add(tc.requeue)
					out = reconcile(t, in)
					require.Equal(t, subscription.ResolveRetry, out.Resolve.Reason)
					in.Resolution.At = in.Now
				}
			}
		})
	}
}

// TestFailureFromTheFutureIsRetried checks the retry of a failure if the clock was set back after the answer. The
// backoff must not start again with each call.
func TestFailureFromTheFutureIsRetried(t *testing.T) {
	const pause = 5 * time.Millisecond
	for ahead, want := range map[time.Duration]time.Duration{
		-pause: 0, 1 - pause: 1, 0: pause, pause: 2 * pause, pause + 1: 0, 5 * time.Minute: 0,
	} {
		in := inputOf(newSub("a", withCondition("ResolutionFailed", "ErrorPreventedResolution", "its content was not read", 3)))
		in.Resolution = &subscription.Resolved{Resolution: resolutionOf(in), At: now.Add(ahead)}
		in.Resolution.Resolution.Failure = &olmcore.ResolutionFailure{Message: "its content was not read"}
		out := reconcile(t, in)
		require.Equal(t, want, out.RequeueAfter, ahead)
		require.Equal(t, want == 0, out.Resolve != nil, ahead)
		if want == 0 {
			require.Equal(t, subscription.ResolveRetry, out.Resolve.Reason)
		}
	}
}

// TestUnpackingConditionIsKeptUntilThePlanExists checks that BundleUnpacking is kept while the InstallPlan of the
// answer does not exist.
func TestUnpackingConditionIsKeptUntilThePlanExists(t *testing.T) {
	in := inputOf(newSub("a", withCondition("BundleUnpacking", "UnpackingInProgress", "", 3), withCondition("ResolutionFailed", "ErrorPreventedResolution", "x", 3)))
	in.Resolution = bring(in, "etcd.v1", "a")
	in.Resolution.Plan = olmcore.Ref{}
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition("BundleUnpacking", "UnpackingInProgress", "", 3)}, statusOf(t, in, reconcile(t, in), "a").Conditions)
}

// TestWaitingSubscriptionLeavesAPlanWithoutSteps checks that a Subscription that waits for an InstallPlan without
// steps references the plan that installs the same CSV instead.
func TestWaitingSubscriptionLeavesAPlanWithoutSteps(t *testing.T) {
	empty := func(p *v1alpha1.InstallPlan) { p.Status.Plan = nil }
	brings := func(csvs ...string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Spec.ClusterServiceVersionNames, p.Spec.Generation = csvs, 2
			p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(newSub("b")))
		}
	}
	for name, tc := range map[string]struct {
		old, next *v1alpha1.InstallPlan
		moves     bool
	}{
		"the new plan installs its CSV, too": {newPlan("p", "", empty), newPlan("q", "", empty, brings("etcd.v1", "vault.v1")), true},
		"the new plan installs another CSV":  {newPlan("p", "", empty), newPlan("q", "", empty, brings("vault.v1")), false},
		"the old plan has its steps":         {newPlan("p", "RequiresApproval"), newPlan("q", "", empty, brings("etcd.v1", "vault.v1")), false},
		"the old plan was deleted":           {newPlan("o", ""), newPlan("q", "", empty, brings("etcd.v1", "vault.v1")), true},
		"the new plan has its steps":         {newPlan("p", "", empty), newPlan("q", "Installing", brings("etcd.v1", "vault.v1")), true},
		"the new plan is complete":           {newPlan("p", "", empty), newPlan("q", "Complete", done(9), brings("etcd.v1", "vault.v1")), true},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1")), newSub("b"), tc.old, tc.next)
			in.Resolution = bring(in, "vault.v1", "b")
			in.Resolution.Plan = olmcore.RefOf(tc.next)
			in.Now, in.Config.ReinstallMissingCSV = second(999).Time, true // a plan is followed before it is given up
			in.ClusterServiceVersions.Items = []*v1alpha1.ClusterServiceVersion{newCSV("vault.v1")}
			out := reconcile(t, in)
			a, b := statusOf(t, in, out, "a"), statusOf(t, in, out, "b")
			require.Equal(t, "q", b.InstallPlanRef.Name)
			if !tc.moves {
				require.False(t, a.InstallPlanRef != nil && a.InstallPlanRef.Name == "q")
				return
			}
			require.Equal(t, "q", a.InstallPlanRef.Name)
			require.Equal(t, "q", a.Install.Name)
			require.Equal(t, 2, a.InstallPlanGeneration)
			require.Equal(t, "etcd.v1", a.CurrentCSV)
			carryOut(&in, out)
			require.Empty(t, reconcile(t, in).Actions)
		})
	}
}
