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
	"github.com/olmcore/olm/subscription/audit"
	"github.com/olmcore/olm/subscription/health"
)

// TestAPlanOutOfSightIsMissingOnlyAfterAGrace is the table of transient inconsistencies, for a Subscription last
// updated at second 5 and a look at second 60 or the one given.
//
// OLM's cases: an absent plan that the conditions show already, from either state.
func TestAPlanOutOfSightIsMissingOnlyAfterAGrace(t *testing.T) {
	latest := newSub("a", follows("p", "etcd.v1"), installed)
	fresh := newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(55) })
	future := newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(600) })
	said := newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(58) },
		withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 58))
	tombstone := []subscription.Observation{{At: second(59).Time, Plan: newPlan("p", ""), Deleted: true}}
	oldTombstone := []subscription.Observation{{At: second(59).Time, Plan: newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.UID = "old" }), Deleted: true}}
	missingSince := func(n int) map[types.UID]subscription.History {
		h := known(subscription.StageComplete)
		if n > 0 {
			h.MissingSince = second(n).Time
		}
		return map[types.UID]subscription.History{"a-uid": h}
	}
	const missing = "Missing/ReferencedInstallPlanNotFound"

	for name, tc := range map[string]struct {
		sub          *v1alpha1.Subscription
		live         bool
		observations []subscription.Observation
		histories    map[types.UID]subscription.History
		config       subscription.Config
		want         string
		requeue      time.Duration
	}{
		"long after the last update, it is missing":          {sub: latest, want: missing},
		"shortly after the last update, it is looked for":    {sub: fresh, requeue: time.Second},
		"near the end of the grace, the rest is waited for":  {sub: fresh, config: subscription.Config{MissingGrace: 5500 * time.Millisecond}, requeue: 500 * time.Millisecond},
		"a clock that went back is waited out":               {sub: future, requeue: time.Second},
		"a live read proves it":                              {sub: fresh, live: true, want: missing},
		"a witnessed deletion proves it":                     {sub: fresh, observations: tombstone, want: missing},
		"the deletion of an earlier one of that name is not": {sub: fresh, observations: oldTombstone, requeue: time.Second},
		"what was said stays said":                           {sub: said, want: missing},
		"with memory, the first miss starts the grace":       {sub: latest, histories: missingSince(0), requeue: time.Second},
		"with memory, within the grace":                      {sub: latest, histories: missingSince(51), requeue: time.Second},
		"with memory, after the grace":                       {sub: latest, histories: missingSince(50), want: missing},
		"with memory, the time of the status does not count": {sub: future, histories: missingSince(50), want: missing},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.sub, newCSV("etcd.v1"))
			in.Live, in.Observations, in.Histories, in.Config = tc.live, tc.observations, tc.histories, tc.config
			out := reconcile(t, in)
			require.Equal(t, tc.want, planConditions(statusOf(t, in, out, "a")))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), statusOf(t, in, out, "a").State)
			if tc.requeue > 0 {
				require.Empty(t, out.Actions)
				require.Equal(t, []olmcore.Ref{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: ns, Name: "p", UID: "p-uid"}}, out.Verify)
				require.Equal(t, subscription.GateNotNeeded, gateOf(t, in), "nothing is resolved for it meanwhile")
			}
		})
	}
}

// TestADeletedPlanIsForgottenWhateverTheConditionsWere: a reference never dangles because the conditions happened not
// to change.
func TestADeletedPlanIsForgottenWhateverTheConditionsWere(t *testing.T) {
	for name, conditions := range map[string]func(*v1alpha1.Subscription){
		"none":    func(*v1alpha1.Subscription) {},
		"pending": pending("RequiresApproval", 6),
		"failed":  withCondition(v1alpha1.SubscriptionInstallPlanFailed, "InstallComponentFailed", "x", 6),
		"missing": withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 6),
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1"), conditions, func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" }))
			got := statusOf(t, in, reconcile(t, in), "a")
			require.Nil(t, got.InstallPlanRef)
			require.Nil(t, got.Install)
			require.Empty(t, got.CurrentCSV)
			require.Empty(t, got.State)
			require.Empty(t, got.Conditions)
			require.Equal(t, "etcd.v0", got.InstalledCSV)
			require.Equal(t, 1, got.InstallPlanGeneration)
		})
	}
}

// TestAMissingPlanThatWasSaidIsForgottenInTime, also when the grace has not ended by this clock.
func TestAMissingPlanThatWasSaidIsForgottenInTime(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 58), func(s *v1alpha1.Subscription) {
		s.Status.LastUpdated = second(58)
	}))
	out := reconcile(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, time.Second, out.RequeueAfter)
	in.Now = second(68).Time
	require.Nil(t, statusOf(t, in, reconcile(t, in), "a").InstallPlanRef)
}

func TestACSVThatExistsIsNotForgottenWithItsPlan(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newCSV("etcd.v1"))
	got := statusOf(t, in, reconcile(t, in), "a")
	require.Equal(t, "etcd.v1", got.CurrentCSV)
	require.Equal(t, "etcd.v1", got.InstalledCSV)
	require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), got.State)
	require.Equal(t, "Missing/ReferencedInstallPlanNotFound", planConditions(got))
}

// TestAPlanOutOfSightDecidesNothingAboutAState while failing forward: which one it is depends on the plan.
func TestAPlanOutOfSightDecidesNothingAboutAState(t *testing.T) {
	for _, state := range []v1alpha1.SubscriptionState{"UpgradeFailed", "UpgradePending", "AtLatestKnown", ""} {
		in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 55), func(s *v1alpha1.Subscription) {
			s.Status.State, s.Status.LastUpdated = state, second(55)
		}))
		require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), statusOf(t, in, reconcile(t, in), "a").State, "without a plan's failure")
		require.Empty(t, reconcile(t, failForward(in)).Actions, "it may have failed")
	}
}

// TestPlanAndCSVGoneTogether is what an administrator leaves who removes both: the operator is installed again on
// request only, after a grace, so that a cache that is behind loses nothing.
func TestPlanAndCSVGoneTogether(t *testing.T) {
	s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1"), installed), in: inputOf()}
	s.look(60)
	require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), s.sub.Status.State)
	for _, at := range []int{70, 180, 100000} {
		s.look(at)
		require.NotNil(t, s.sub.Status.InstallPlanRef)
	}
	s.in.Config.ReinstallMissingCSV = true
	s.look(100001)
	require.Nil(t, s.sub.Status.InstallPlanRef)
	require.Empty(t, s.sub.Status.CurrentCSV)
}

func TestAPlanThatComesBack(t *testing.T) {
	s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1"), installed), csv: newCSV("etcd.v1"), in: inputOf()}
	s.in.Histories = map[types.UID]subscription.History{}
	s.plan = newPlan("p", "Complete", started(3), done(9))
	s.look(60)
	s.plan = nil
	s.in.Live = true
	tr, _, shown := s.look(100)
	require.Equal(t, "C>M", tr)
	require.Equal(t, "Missing/ReferencedInstallPlanNotFound", shown)
	s.in.Live, s.plan = false, newPlan("p", "Complete", started(3), done(9)) // a cache is believed too
	tr, gap, shown := s.look(200)
	require.Equal(t, "M>C", tr)
	require.Empty(t, gap)
	require.Empty(t, shown)
}

// TestACacheThatGoesBackIsNotBelievedAtOnce: with memory and a cache, what no controller can have done is looked at
// twice.
func TestACacheThatGoesBackIsNotBelievedAtOnce(t *testing.T) {
	start := func() *story {
		s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1"), installed), csv: newCSV("etcd.v1"), in: inputOf()}
		s.in.Histories = map[types.UID]subscription.History{}
		s.plan = newPlan("p", "Complete", started(3), done(9))
		s.look(60)
		return s
	}
	t.Run("an older version is ignored", func(t *testing.T) {
		s := start()
		s.plan = newPlan("p", "Failed", started(3), failed(8))
		for at := 61; at < 70; at++ {
			tr, _, shown := s.look(at)
			require.Empty(t, tr+shown)
		}
	})
	t.Run("an edit is believed when it stays", func(t *testing.T) {
		s := start()
		s.plan = newPlan("p", "")
		tr, _, shown := s.look(61)
		require.Empty(t, tr+shown)
		tr, gap, shown := s.look(62)
		require.Equal(t, "C>N!", tr)
		require.Equal(t, "OutOfBandEdit", gap)
		require.Equal(t, "Pending/InstallPlanNotYetReconciled", shown)
	})
	t.Run("a cache that catches up leaves no trace", func(t *testing.T) {
		s := start()
		s.plan = newPlan("p", "RequiresApproval", manual(1))
		tr, _, shown := s.look(61)
		require.Empty(t, tr+shown)
		s.plan = newPlan("p", "Complete", started(3), done(9))
		tr, _, shown = s.look(62)
		require.Empty(t, tr+shown)
		require.Empty(t, s.in.Histories["a-uid"].SuspectStage)
	})
	t.Run("what another writer made the status say counts like memory", func(t *testing.T) {
		s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), in: inputOf()}
		s.in.Histories = map[types.UID]subscription.History{}
		s.plan = newPlan("p", "RequiresApproval", manual(1))
		tr, _, shown := s.look(60)
		require.Empty(t, tr)
		require.Equal(t, "Pending/Installing", shown)
		s.plan = newPlan("p", "Installing", manual(2), started(5))
		tr, _, _ = s.look(61)
		require.Empty(t, tr, "the other one told it")
		require.Empty(t, s.in.Histories["a-uid"].SuspectStage)
	})
	t.Run("an unknown phase is no step back", func(t *testing.T) {
		s := start()
		s.plan = newPlan("p", "Melting", started(3), done(9))
		tr, _, _ := s.look(61)
		require.Equal(t, "C>U", tr)
		s.plan = newPlan("p", "Failed", started(3), failed(62))
		tr, gap, _ := s.look(63)
		require.Equal(t, "U>F", tr)
		require.Equal(t, "UnknownPhase", gap)
	})
	t.Run("a watch is believed", func(t *testing.T) {
		s := start()
		s.plan = newPlan("p", "")
		s.in.Observations = []subscription.Observation{{At: second(61).Time, Plan: s.plan}}
		tr, _, shown := s.look(61)
		require.Equal(t, "C>N!", tr)
		require.Equal(t, "Pending/InstallPlanNotYetReconciled", shown)
	})
}

func TestACacheBehindOurOwnWriteIsLeftAlone(t *testing.T) {
	s := &story{t: t, sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), in: inputOf()}
	s.in.Histories = map[types.UID]subscription.History{}
	s.plan = newPlan("p", "RequiresApproval", manual(1))
	s.look(60)
	before := s.sub
	s.plan = newPlan("p", "Installing", manual(2), started(61))
	_, _, shown := s.look(61)
	require.Equal(t, "Pending/Installing", shown)
	s.sub = before
	s.plan = newPlan("p", "Complete", manual(2), started(61), done(61))
	_, _, shown = s.look(61)
	require.Equal(t, "Pending/RequiresApproval", shown, "no write")
	_, _, shown = s.look(62)
	require.Empty(t, shown, "the write was lost after all")
}

func TestADeletedCSVIsReportedAndOnRequestReinstalled(t *testing.T) {
	wedged := newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" })
	noticed := newSub("a", follows("p", "etcd.v1"), installed)
	plan := newPlan("p", "Complete", started(3), done(40))
	for name, tc := range map[string]struct {
		at        int
		reinstall bool
		noticed   bool // just now
		reasons   string
		requeue   time.Duration
		cleared   bool
	}{
		"for a while it is normal":        {at: 60, requeue: 100 * time.Second},
		"then it is reported":             {at: 160, reasons: "WedgedUpgradePending"},
		"on request it waits as long":     {at: 60, reinstall: true, requeue: 100 * time.Second},
		"and then installs the CSV again": {at: 160, reinstall: true, cleared: true},
		"it was there until now":          {at: 999, reinstall: true, noticed: true, requeue: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(wedged, plan)
			if tc.noticed {
				in.Subscriptions.Items[0] = noticed
			}
			in.Now, in.Config.ReinstallMissingCSV = second(tc.at).Time, tc.reinstall
			out := reconcile(t, in)
			require.Equal(t, tc.reasons, reasons(out.Result))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			require.Equal(t, tc.cleared, statusOf(t, in, out, "a").InstallPlanRef == nil)
		})
	}
}

// TestAnAdminsDeletionIsNotUndone: the plan was collected, later the CSV is removed. The operator is installed again
// only on request. Who deletes the plan of a removed version asks for it, too.
func TestAnAdminsDeletionIsNotUndone(t *testing.T) {
	collected := newSub("a", follows("p", "etcd.v1"), installed, withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 30))
	for name, tc := range map[string]struct {
		sub       *v1alpha1.Subscription
		reinstall bool
		live      bool
		want      string // after the grace
		reasons   string
	}{
		"by default it stays removed":                 {sub: collected, want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"also by a live read":                         {sub: collected, live: true, want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"plan and version may go at once":             {sub: newSub("a", follows("p", "etcd.v1"), installed), want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"on request it is installed again":            {sub: collected, reinstall: true, want: " "},
		"a plan that is deleted afterwards asks, too": {sub: newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.State = "UpgradePending" }), want: " "},
		"an upgrade whose plan is gone is made anew": {sub: newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" },
			withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 30)), want: " "},
		"so is a second installation that was never approved": {sub: newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 30), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" }), want: " "},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.sub)
			in.Config.ReinstallMissingCSV, in.Live = tc.reinstall, tc.live
			var out subscription.Outcome
			for range 4 {
				out = reconcile(t, in)
				carryOut(&in, out)
				in.Now = in.Now.Add(max(out.RequeueAfter, time.Second))
			}
			got := in.Subscriptions.Items[0].Status
			ref := ""
			if got.InstallPlanRef != nil {
				ref = got.InstallPlanRef.Name
			}
			require.Equal(t, tc.want, string(got.State)+" "+ref)
			require.Equal(t, tc.reasons, reasons(out.Result))
			whole := healthOf(t, in)
			findings, err := audit.Find(in)
			require.NoError(t, err)
			if ref == "" {
				require.Equal(t, subscription.GateNeeded, gateOf(t, in))
				require.Equal(t, health.Resolving, whole.Phase)
				return
			}
			require.Equal(t, health.Stuck, whole.Phase)
			require.Equal(t, "Delete the Subscription and create it again to install the version again.", whole.Advice)
			require.Len(t, findings, 1)
			require.Equal(t, subscription.ReasonWedgedUpgradePending, findings[0].Reason)
			require.False(t, findings[0].Safe)
		})
	}
}

func historyOf(stage subscription.Stage) map[types.UID]subscription.History {
	return map[types.UID]subscription.History{"a-uid": known(stage)}
}

// TestTheVersionOfAMissingPlanIsFollowedToALaterOne: a plan that brings the version is not left to install it for a
// Subscription that has forgotten it.
func TestTheVersionOfAMissingPlanIsFollowedToALaterOne(t *testing.T) {
	generation := func(g int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Generation = g }
	}
	for name, tc := range map[string]struct {
		plans   []olmcore.Object
		at      int
		follows string
	}{
		"none is there":                     {at: 60},
		"one without steps":                 {[]olmcore.Object{newPlan("q", "", empty, generation(2))}, 60, "q"},
		"one that runs":                     {[]olmcore.Object{newPlan("q", "Installing", generation(2))}, 60, "q"},
		"it has just completed":             {[]olmcore.Object{newPlan("q", "Complete", done(50), generation(2))}, 60, "q"},
		"the newest of them":                {[]olmcore.Object{newPlan("q", "Installing", generation(2)), newPlan("r", "", empty, generation(3)), newPlan("s", "", empty, generation(2))}, 60, "r"},
		"the plan may only be out of sight": {[]olmcore.Object{newPlan("q", "Installing", generation(2))}, 8, "p"},
		"an older one":                      {[]olmcore.Object{newPlan("q", "Installing", generation(0))}, 60, ""},
		"one that failed":                   {[]olmcore.Object{newPlan("q", "Failed", failed(30), generation(2))}, 60, ""},
		"one that is being deleted":         {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(9) })}, 60, ""},
		"one of another version":            {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"etcd.v2"} })}, 60, ""},
		"one of another Subscription":       {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.OwnerReferences = nil })}, 60, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(append(tc.plans, newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 3),
				func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(3) }))...)
			in.Now = second(tc.at).Time
			got := statusOf(t, in, reconcile(t, in), "a")
			if tc.follows == "" {
				require.Nil(t, got.InstallPlanRef)
				require.Empty(t, got.CurrentCSV)
				return
			}
			require.Equal(t, refTo(tc.follows), got.InstallPlanRef)
			require.Equal(t, "etcd.v1", got.CurrentCSV)
			require.Equal(t, v1alpha1.SubscriptionStateUpgradePending, string(got.State))
			for _, c := range got.Conditions {
				require.NotEqual(t, v1alpha1.SubscriptionInstallPlanMissing, c.Type)
			}
		})
	}
}
