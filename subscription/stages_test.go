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

// TestEditedPlanIsReportedThroughEveryStage checks the transitions and conditions while the status of an
// InstallPlan is edited out of band.
func TestEditedPlanIsReportedThroughEveryStage(t *testing.T) {
	for name, histories := range map[string]map[types.UID]subscription.History{"with memory": {}, "without memory": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			w.in.Live, w.in.Histories, w.in.ClusterServiceVersions.Items = true, histories, []*v1alpha1.ClusterServiceVersion{newCSV("etcd.v1")}
			for _, step := range []struct {
				at   int
				plan *v1alpha1.InstallPlan
				want string
			}{
				{100, newPlan("p", "Complete", started(3), done(9)), "->N:Proven N>I:Proven I>C||"},
				{200, newPlan("p", "", manual(1)), "C>N!|OutOfBandEdit|Pending/InstallPlanNotYetReconciled"},
				{300, newPlan("p", "RequiresApproval", manual(1)), "N>A||Pending/RequiresApproval"},
				{420, newPlan("p", "Complete", manual(2), started(305), done(410)), "A>I:Proven I>C||"},
				{500, newPlan("p", "Failed"), "C>F!|OutOfBandEdit|Failed/InstallPlanFailed"},
				{600, newPlan("p", "Failed", failed(590)), "||Failed/InstallComponentFailed"},
				{700, nil, "F>M||Missing/ReferencedInstallPlanNotFound"},
			} {
				require.Equal(t, step.want, w.report(t, step.at, step.plan), "at second %d", step.at)
				require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), w.status().State)
			}
		})
	}
}

func TestEveryObservedStageIsReported(t *testing.T) {
	versions := []*v1alpha1.InstallPlan{
		newPlan("p", "RequiresApproval", manual(1)),
		newPlan("p", "Installing", manual(2), started(20)),
		newPlan("p", "Failed", manual(2), started(20), failed(30)),
		newPlan("p", "Installing", manual(2), started(20), failed(30)),
		newPlan("p", "Complete", manual(2), started(20), done(40)),
	}
	for name, histories := range map[string]map[types.UID]subscription.History{"with memory": {}, "without memory": nil} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1")), versions[4], newCSV("etcd.v1"))
			in.Histories = histories
			for i, p := range versions {
				in.Observations = append(in.Observations, subscription.Observation{At: second(11 + 7*i).Time, Plan: p})
			}
			out := reconcile(t, in)
			require.Equal(t, "->N:Proven N>A A>I I>F F>I I>C", stages(out.Result))
			require.Empty(t, gaps(out.Result))

			carryOut(&in, out)
			require.Empty(t, stages(reconcile(t, in).Result), "the window may hold what was told already")
		})
	}
}

// TestObservationsWithinOneSecondAreReportedOnce checks Observations that are less than a second apart, although
// times in a status have whole seconds. The history records the time of the last Observation that was used.
func TestObservationsWithinOneSecondAreReportedOnce(t *testing.T) {
	at := func(ms int, p *v1alpha1.InstallPlan) subscription.Observation {
		return subscription.Observation{At: second(11).Add(time.Duration(ms) * time.Millisecond), Plan: p}
	}
	installing := newPlan("p", "Installing", started(11), failed(11))
	in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 11)), installing)
	in.Histories = historyOf(subscription.StageInstalling)
	in.Observations = []subscription.Observation{
		at(100, newPlan("p", "Failed", started(11), failed(11))), at(200, installing),
		at(250, newPlan("other", "Failed", started(11), failed(11))),
		at(300, newPlan("p", "Failed", started(11), failed(11))), at(400, installing),
		at(800, newPlan("other", "", started(11))),
		at(900, newPlan("p", "", started(11), func(p *v1alpha1.InstallPlan) { p.UID = "former" })),
	}
	out := reconcile(t, in)
	require.Equal(t, "I>F F>I I>F F>I", stages(out.Result))
	carryOut(&in, out)

	in.Observations = append(in.Observations, at(500, newPlan("p", "Failed", started(11), failed(11))))
	in.InstallPlans.Items = []*v1alpha1.InstallPlan{newPlan("p", "Failed", started(11), failed(11))}
	out = reconcile(t, in)
	require.Equal(t, "I>F", stages(out.Result))
	carryOut(&in, out)
	require.Empty(t, stages(reconcile(t, in).Result))
}

// TestObservationsBeforeThePublishedStageAreSkipped checks Observations of the whole life of an InstallPlan if the
// condition of the Subscription has no time. The first reported transition leaves the stage that the condition
// shows.
func TestObservationsBeforeThePublishedStageAreSkipped(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
	sub.Status.Conditions[0].LastTransitionTime = nil
	end := newPlan("p", "Complete", started(4), done(9))
	in := inputOf(sub, end, newCSV("etcd.v1"))
	for i, p := range []*v1alpha1.InstallPlan{newPlan("p", ""), newPlan("p", "RequiresApproval"), newPlan("p", "Installing", started(4)), end} {
		in.Observations = append(in.Observations, subscription.Observation{At: second(2 + i).Time, Plan: p})
	}
	out := reconcile(t, in)
	require.Equal(t, "I>C", stages(out.Result))
	require.Empty(t, gaps(out.Result))

	in.Observations = in.Observations[:2] // none of them shows the stage
	require.Equal(t, "I>N! N>A A>I:Proven I>C", stages(reconcile(t, in).Result))
}

// TestObservationOlderThanTheHistoryIsIgnored checks that an Observation older than the history is ignored, also if
// the history records no Observation yet.
func TestObservationOlderThanTheHistoryIsIgnored(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 30)), newPlan("p", "Installing", started(3)))
	h := known("Installing")
	h.LastAt = second(30).Time
	in.Histories = map[types.UID]subscription.History{"a-uid": h}
	in.Observations = []subscription.Observation{sawAt(20, newPlan("p", "RequiresApproval"))}
	require.Empty(t, stages(reconcile(t, in).Result))
}
