// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription"
)

// TestWhatAWindowShows goes through the steps of pacing, at second 60 with a window of
// 10 seconds.
func TestWhatAWindowShows(t *testing.T) {
	shows := func(stage subscription.Stage, at, pendingSince int) *subscription.History {
		h := known(stage)
		h.PublishedAt = second(at).Time
		if pendingSince > 0 {
			h.PendingSince = second(pendingSince).Time
		}
		return &h
	}
	for name, tc := range map[string]struct {
		sub     *v1alpha1.Subscription
		history *subscription.History // nil: no memory
		plan    *v1alpha1.InstallPlan
		lag     time.Duration
		live    bool
		want    string
		requeue time.Duration
	}{
		"a beginning that nobody saw is left out": {sub: newSub("a", follows("p", "etcd.v1")), history: &subscription.History{}, plan: newPlan("p", "Installing", started(20)), want: "Pending/Installing"},
		"an approval that is assumed is left out": {sub: newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 10)), history: shows("NotYetReconciled", 10, 0),
			plan: newPlan("p", "Installing", manual(0), started(20)), want: "Pending/Installing"},
		"one that is inferred is shown": {sub: newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 10)), history: shows("NotYetReconciled", 10, 0),
			plan: newPlan("p", "Installing", manual(2), started(20)), want: "Pending/RequiresApproval", requeue: 10 * time.Second},
		"a beginning that is the end is shown": {sub: newSub("a", follows("p", "etcd.v1")), history: &subscription.History{}, plan: newPlan("p", "", manual(1)), want: "Pending/InstallPlanNotYetReconciled"},
		"without memory the condition's time counts": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 55)),
			plan: newPlan("p", "Installing", manual(2), started(57)), want: "Pending/RequiresApproval", requeue: 5 * time.Second},
		"and the rest follows": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 50)),
			plan: newPlan("p", "Installing", manual(2), started(57)), want: "Pending/Installing"},
		"the longest lag comes first": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 59)), history: shows("RequiresApproval", 59, 50),
			plan: newPlan("p", "Failed", manual(2), started(20), failed(30)), lag: 12 * time.Second, want: "Pending/RequiresApproval", requeue: 2 * time.Second},
		"after it only the last one is shown": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 59)), history: shows("RequiresApproval", 59, 48),
			plan: newPlan("p", "Failed", manual(2), started(20), failed(30)), lag: 12 * time.Second, want: "Failed/InstallComponentFailed"},
		"a write that a live read does not show was lost": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 10)), history: shows("Installing", 60, 0),
			plan: newPlan("p", "Installing", manual(2), started(20)), live: true, want: "Pending/Installing"},
		"without memory what is complete at first sight shows so": {sub: newSub("a", follows("p", "etcd.v1")), plan: newPlan("p", "Complete", started(20), done(30)), want: "", requeue: 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.sub, tc.plan)
			in.Live, in.Config.ObservationWindow, in.Config.MaxPublishLag = tc.live, 10*time.Second, tc.lag
			if tc.history != nil {
				in.Histories = map[types.UID]subscription.History{"a-uid": *tc.history}
			}
			out := reconcile(t, in)
			require.Equal(t, tc.want, planConditions(statusOf(t, in, out, "a")))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			require.Equal(t, tc.want == planConditions(tc.sub.Status), len(out.Actions) == 0)
		})
	}
}
