// SPDX-License-Identifier: Apache-2.0

package stage_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/stage"
)

func TestReachableFollowsTheGraph(t *testing.T) {
	for _, e := range stage.Graph {
		require.True(t, stage.Reachable(e.From, e.To), "%s to %s", e.From, e.To)
		require.True(t, stage.Reachable(e.From, stage.Missing) && stage.Reachable(e.From, stage.NoPlan))
	}
	require.True(t, stage.Reachable(stage.NoPlan, stage.Complete), "over several edges")
	require.True(t, stage.Reachable(stage.Failed, stage.Complete), "by a retry")
	for _, to := range []stage.Stage{stage.NotYetReconciled, stage.Installing, stage.Failed} {
		require.False(t, stage.Reachable(stage.Complete, to), "%s", to)
	}
}

func TestAStageIsShownByItsCondition(t *testing.T) {
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "Planning", "RequiresApproval", "Installing", "Failed"} {
		plan := &v1alpha1.InstallPlan{}
		plan.Status.Phase = phase
		c := stage.ConditionOf(stage.Of(plan), plan)
		shown, _, ok := stage.Shown([]v1alpha1.SubscriptionCondition{{Type: c.Type, Status: "True", Reason: c.Reason}})
		require.True(t, ok)
		require.Equal(t, stage.Of(plan), shown)
	}
	for _, none := range []stage.Stage{stage.NoPlan, stage.Complete, stage.Unknown, stage.Unverified} {
		require.Zero(t, stage.ConditionOf(none, &v1alpha1.InstallPlan{}))
	}
	require.Equal(t, stage.Unknown, stage.Of(&v1alpha1.InstallPlan{Status: v1alpha1.InstallPlanStatus{Phase: "Odd"}}))
}

func TestHistoryIsOneString(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 1, 0, 0, time.UTC)
	h := stage.History{
		Seq: 4, PlanUID: "p-uid", PlanName: "p", LastStage: stage.Installing, LastAt: now,
		MissingSince: now, SuspectStage: stage.Failed, SuspectSince: now.Add(time.Nanosecond),
	}
	back, err := stage.DecodeHistory(h.Encode())
	require.NoError(t, err)
	require.Equal(t, h, back)
	require.Equal(t, "{}", stage.History{}.Encode())
	for _, text := range []string{"", "x", `{"lastStage":"Dancing"}`, `[1]`} {
		_, err := stage.DecodeHistory(text)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, text)
	}
}
