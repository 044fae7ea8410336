// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// story is a Subscription whose plan changes under the eyes of a caller.
type story struct {
	t    *testing.T
	sub  *v1alpha1.Subscription
	plan *v1alpha1.InstallPlan
	csv  *v1alpha1.ClusterServiceVersion
	in   subscription.Input
}

// look reconciles at a second, keeps the status and the history, and returns what was said and what the conditions
// show.
func (s *story) look(at int) (transitions, gap, shown string) {
	s.t.Helper()
	s.in.Now = second(at).Time
	s.in.Subscriptions.Items, s.in.InstallPlans.Items = []*v1alpha1.Subscription{s.sub}, nil
	if s.plan != nil {
		s.in.InstallPlans.Items = []*v1alpha1.InstallPlan{s.plan}
	}
	if s.csv != nil {
		s.in.ClusterServiceVersions.Items = []*v1alpha1.ClusterServiceVersion{s.csv}
	}
	out := reconcile(s.t, s.in)
	for uid, h := range out.Histories {
		s.in.Histories[uid] = h
	}
	if after, ok := olmcore.StatusOf[*v1alpha1.Subscription](out.Actions); ok {
		s.sub = after
	}
	return stages(out.Result), gaps(out.Result), planConditions(s.sub.Status)
}

// TestASubscriptionFollowsItsPlanThroughEveryState edits the status of a plan out of band.
func TestASubscriptionFollowsItsPlanThroughEveryState(t *testing.T) {
	for name, histories := range map[string]map[types.UID]subscription.History{"with memory": {}, "without memory": nil} {
		t.Run(name, func(t *testing.T) {
			s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1")), csv: newCSV("etcd.v1")}
			s.in = inputOf()
			s.in.Live = true
			if histories != nil {
				s.in.Histories = map[types.UID]subscription.History{}
			}
			s.plan = newPlan("p", "Complete", started(3), done(9))
			tr, gap, shown := s.look(100)
			require.Equal(t, "->N:Proven N>I:Proven I>C", tr)
			require.Empty(t, gap)
			require.Empty(t, shown)
			require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), s.sub.Status.State)

			s.plan = newPlan("p", "", manual(1))
			tr, gap, shown = s.look(200)
			require.Equal(t, "C>N!", tr)
			require.Equal(t, "OutOfBandEdit", gap)
			require.Equal(t, "Pending/InstallPlanNotYetReconciled", shown)

			s.plan = newPlan("p", "RequiresApproval", manual(1))
			tr, gap, shown = s.look(300)
			require.Equal(t, "N>A", tr)
			require.Empty(t, gap)
			require.Equal(t, "Pending/RequiresApproval", shown)

			s.plan = newPlan("p", "Complete", manual(2), started(305), done(410))
			tr, gap, shown = s.look(420)
			require.Equal(t, "A>I:Proven I>C", tr)
			require.Empty(t, gap)
			require.Empty(t, shown)

			s.plan = newPlan("p", "Failed")
			tr, gap, shown = s.look(500)
			require.Equal(t, "C>F!", tr)
			require.Equal(t, "OutOfBandEdit", gap)
			require.Equal(t, "Failed/InstallPlanFailed", shown)

			s.plan = newPlan("p", "Failed", failed(590))
			tr, gap, shown = s.look(600)
			require.Empty(t, tr)
			require.Empty(t, gap)
			require.Equal(t, "Failed/InstallComponentFailed", shown)

			s.plan = nil
			tr, gap, shown = s.look(700)
			require.Equal(t, "F>M", tr)
			require.Empty(t, gap)
			require.Equal(t, "Missing/ReferencedInstallPlanNotFound", shown)
			require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), s.sub.Status.State)
		})
	}
}

func TestAWindowOfObservationsLosesNothing(t *testing.T) {
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

			in.Subscriptions.Items[0], _ = olmcore.StatusOf[*v1alpha1.Subscription](out.Actions)
			for uid, h := range out.Histories {
				in.Histories[uid] = h
			}
			require.Empty(t, stages(reconcile(t, in).Result), "the window may hold what was told already")
		})
	}
}

// TestAWindowOfOneSecondIsReportedOnce: times in a status have whole seconds, a window has not; what of it was told is
// remembered by the time of its last observation.
func TestAWindowOfOneSecondIsReportedOnce(t *testing.T) {
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

// TestAWindowIsEnteredWhereTheStatusStands: a condition without a time says nothing of when its stage began, so a
// window from the plan's first day on is entered where it shows that stage; what came before was told.
func TestAWindowIsEnteredWhereTheStatusStands(t *testing.T) {
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
