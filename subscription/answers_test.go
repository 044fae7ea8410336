// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestASubscriptionIsMovedFromAPlanWithoutSteps: a plan that was never given its
// steps is left for the plan of the answer, if that brings what the Subscription
// waits for; the answer decides nothing new about it.
func TestASubscriptionIsMovedFromAPlanWithoutSteps(t *testing.T) {
	other := func(s *v1alpha1.Subscription) {
		s.Name, s.UID, s.Spec.Package, s.Labels = "b", "b-uid", "vault", map[string]string{"operators.coreos.com/vault.ops": ""}
	}
	for name, tc := range map[string]struct {
		change  func(in *subscription.Input)
		changed bool // the answer changes another Subscription
		stays   bool
	}{
		"an answer that changes nothing":   {},
		"an answer that changes another":   {changed: true},
		"its plan has steps":               {func(in *subscription.Input) { in.InstallPlans.Items[0] = newPlan("old", "Installing") }, false, true},
		"its plan is another by that name": {func(in *subscription.Input) { in.InstallPlans.Items[0].UID = "another" }, false, true},
		"its plan is out of sight for a moment": {func(in *subscription.Input) {
			in.InstallPlans.Items, in.Subscriptions.Items[0].Status.LastUpdated = in.InstallPlans.Items[1:], second(58)
		}, false, true},
		"the new one is out of sight": {func(in *subscription.Input) { in.InstallPlans.Items = in.InstallPlans.Items[:1] }, false, true},
		"the new one brings something else": {func(in *subscription.Input) {
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

// TestAStaleAnswerIsMentionedUntilItIsCarriedOut: of an answer from other
// Subscriptions only what is left to do of it is worth a word.
func TestAStaleAnswerIsMentionedUntilItIsCarriedOut(t *testing.T) {
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

// TestAnAnswerThatWasCarriedOutIsSpent: a Subscription was made to forget a complete
// plan because its CSV is gone. The answer that made the plan would bring nothing again.
func TestAnAnswerThatWasCarriedOutIsSpent(t *testing.T) {
	complete := newPlan("p", "Complete", started(3), done(9))
	for name, tc := range map[string]struct {
		change func(in *subscription.Input)
		spent  bool
	}{
		"as it is":                     {func(*subscription.Input) {}, true},
		"at an unknown time":           {func(in *subscription.Input) { in.Resolution.At = time.Time{} }, true},
		"the answer is newer":          {func(in *subscription.Input) { in.Resolution.At = second(6).Time }, false},
		"the answer is of that second": {func(in *subscription.Input) { in.Resolution.At = second(5).Add(time.Second / 2) }, true},
		"the plan runs":                {func(in *subscription.Input) { in.InstallPlans.Items[0] = newPlan("p", "Installing") }, false},
		"the CSV is there": {func(in *subscription.Input) {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, newCSV("etcd.v1"))
		}, false},
		"it is nothing that was decided": {func(in *subscription.Input) { in.Resolution.Resolution.Decisions[0].Changed = false }, false},
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
