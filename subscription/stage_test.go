// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription"
)

func TestReachableFollowsTheStageGraph(t *testing.T) {
	for _, e := range subscription.Graph {
		require.True(t, subscription.Reachable(e.From, e.To), "%s to %s", e.From, e.To)
		require.True(t, subscription.Reachable(e.From, subscription.StageMissing) && subscription.Reachable(e.From, subscription.StageNoPlan))
	}
	require.True(t, subscription.Reachable(subscription.StageNoPlan, subscription.StageComplete), "over several edges")
	require.True(t, subscription.Reachable(subscription.StageFailed, subscription.StageComplete), "by a retry")
	for _, to := range []subscription.Stage{subscription.StageNotYetReconciled, subscription.StageInstalling, subscription.StageFailed} {
		require.False(t, subscription.Reachable(subscription.StageComplete, to), "%s", to)
	}
}

func TestConditionOfAStageNamesThatStage(t *testing.T) {
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "Planning", "RequiresApproval", "Installing", "Failed"} {
		plan := &v1alpha1.InstallPlan{}
		plan.Status.Phase = phase
		c := subscription.ConditionOf(subscription.StageOf(plan), plan)
		shown, _ := subscription.ShownStage([]v1alpha1.SubscriptionCondition{{Type: c.Type, Status: "True", Reason: c.Reason}})
		require.Equal(t, subscription.StageOf(plan), shown)
	}
	for _, none := range []subscription.Stage{subscription.StageNoPlan, subscription.StageComplete, subscription.StageUnknown, subscription.StageUnverified} {
		require.Zero(t, subscription.ConditionOf(none, &v1alpha1.InstallPlan{}))
	}
	require.Equal(t, subscription.StageUnknown, subscription.StageOf(&v1alpha1.InstallPlan{Status: v1alpha1.InstallPlanStatus{Phase: "Odd"}}))
}
