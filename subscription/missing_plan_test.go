// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"slices"
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

// TestUnobservedPlanIsMissingAfterTheGracePeriod checks when an InstallPlan that is not observed is reported as
// missing. The Subscription was last updated at second 5 unless stated, and the time is second 60.
//
// OLM's cases: an absent plan that the conditions show already, from either state.
func TestUnobservedPlanIsMissingAfterTheGracePeriod(t *testing.T) {
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
			h.MissingSince, h.MissingPlan = second(n).Time, "p-uid"
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
		"long after the last update, it is missing":                      {sub: latest, want: missing},
		"shortly after the last update, it is verified":                  {sub: fresh, requeue: time.Second},
		"near the end of the grace period, only the rest is waited for":  {sub: fresh, config: subscription.Config{MissingGrace: 5500 * time.Millisecond}, requeue: 500 * time.Millisecond},
		"a clock that went back is waited out":                           {sub: future, requeue: time.Second},
		"a live read proves it":                                          {sub: fresh, live: true, want: missing},
		"a witnessed deletion proves it":                                 {sub: fresh, observations: tombstone, want: missing},
		"the deletion of an earlier plan of that name does not prove it": {sub: fresh, observations: oldTombstone, requeue: time.Second},
		"a reported plan stays reported":                                 {sub: said, want: missing},
		"with memory, the first miss starts the grace":                   {sub: latest, histories: missingSince(0), requeue: time.Second},
		"with memory, within the grace":                                  {sub: latest, histories: missingSince(51), requeue: time.Second},
		"with memory, after the grace":                                   {sub: latest, histories: missingSince(50), want: missing},
		"with memory, the time of the status does not count":             {sub: future, histories: missingSince(50), want: missing},
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

// TestGracePeriodStartsAgainForAnotherPlan checks that the time for which a deleted InstallPlan was missing does
// not count for the next plan, which a cache may not contain yet.
func TestGracePeriodStartsAgainForAnotherPlan(t *testing.T) {
	missing := known(subscription.StageMissing)
	missing.MissingSince, missing.MissingPlan = second(20).Time, "p-uid"
	cleared := known(subscription.StageNoPlan)
	cleared.MissingSince, cleared.MissingPlan, cleared.PlanUID, cleared.PlanName = second(20).Time, "p-uid", "", ""
	for name, history := range map[string]subscription.History{"the reference moved": missing, "there was no reference between": cleared} {
		t.Run(name, func(t *testing.T) {
			sub := newSub("a", follows("q", "etcd.v1"), pending("InstallPlanNotYetReconciled", 59),
				func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(59) })
			in := inputOf(sub)
			in.Histories = map[types.UID]subscription.History{"a-uid": history}
			out := reconcile(t, in)
			require.Empty(t, out.Actions)
			require.Empty(t, out.Transitions)
			require.Equal(t, time.Second, out.RequeueAfter)

			in.Histories, in.Now = out.Histories, in.Now.Add(subscription.DefaultMissingGrace)
			require.Equal(t, second(60).Time, in.Histories["a-uid"].MissingSince)
			out = reconcile(t, in)
			require.True(t, slices.ContainsFunc(out.Transitions, func(tr olmcore.Transition) bool {
				return tr.To == string(subscription.StageMissing)
			}), "the grace period of this plan is over")
		})
	}
}

// TestReferenceToADeletedPlanIsCleared checks that the reference to a deleted InstallPlan is cleared, whatever the
// conditions are.
func TestReferenceToADeletedPlanIsCleared(t *testing.T) {
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

// TestReferenceToAPlanReportedAsMissingIsCleared checks that the reference is cleared at the end of the grace
// period if the status already reports the InstallPlan as missing.
func TestReferenceToAPlanReportedAsMissingIsCleared(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 58), func(s *v1alpha1.Subscription) {
		s.Status.LastUpdated = second(58)
	}))
	out := reconcile(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, time.Second, out.RequeueAfter)
	in.Now = second(68).Time
	require.Nil(t, statusOf(t, in, reconcile(t, in), "a").InstallPlanRef)
}

func TestDeletedPlanDoesNotClearAnExistingCSV(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newCSV("etcd.v1"))
	got := statusOf(t, in, reconcile(t, in), "a")
	require.Equal(t, "etcd.v1", got.CurrentCSV)
	require.Equal(t, "etcd.v1", got.InstalledCSV)
	require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), got.State)
	require.Equal(t, "Missing/ReferencedInstallPlanNotFound", planConditions(got))
}

// TestStateIsKeptWhileTheFailedPlanIsUnobserved checks status.state while the InstallPlan is not observed. With
// fail forward, the state depends on the plan and is kept.
func TestStateIsKeptWhileTheFailedPlanIsUnobserved(t *testing.T) {
	for _, state := range []v1alpha1.SubscriptionState{"UpgradeFailed", "UpgradePending", "AtLatestKnown", ""} {
		in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 55), func(s *v1alpha1.Subscription) {
			s.Status.State, s.Status.LastUpdated = state, second(55)
		}))
		require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), statusOf(t, in, reconcile(t, in), "a").State, "without a plan's failure")
		require.Empty(t, reconcile(t, failForward(in)).Actions, "it may have failed")
	}
}

// TestDeletedPlanAndCSVAreReinstalledOnlyOnRequest checks a namespace in which an administrator deleted the
// InstallPlan and the CSV. The operator is installed again only on request, and after a grace period because the
// cache may be stale.
func TestDeletedPlanAndCSVAreReinstalledOnlyOnRequest(t *testing.T) {
	w := newWatcher(newSub("a", follows("p", "etcd.v1"), installed))
	w.in.Histories = nil
	for _, at := range []int{60, 70, 180, 100000} {
		w.reconcile(t, at, nil)
		require.Equal(t, v1alpha1.SubscriptionState("UpgradePending"), w.status().State)
		require.NotNil(t, w.status().InstallPlanRef)
	}
	w.in.Config.ReinstallMissingCSV = true
	w.reconcile(t, 100001, nil)
	require.Nil(t, w.status().InstallPlanRef)
	require.Empty(t, w.status().CurrentCSV)
}

func TestRestoredPlanIsFollowedAgain(t *testing.T) {
	w, complete := newWatcher(newSub("a", follows("p", "etcd.v1"), installed), newCSV("etcd.v1")), newPlan("p", "Complete", started(3), done(9))
	w.reconcile(t, 60, complete)
	w.in.Live = true
	require.Equal(t, "C>M||Missing/ReferencedInstallPlanNotFound", w.report(t, 100, nil))
	w.in.Live = false // a cache is believed too
	require.Equal(t, "M>C||", w.report(t, 200, complete))
}

// TestImpossibleChangeIsObservedTwiceBeforeItIsReported checks that a change of an InstallPlan that no controller
// makes is reported only after a second observation, if it comes from a cache and the caller keeps histories.
func TestImpossibleChangeIsObservedTwiceBeforeItIsReported(t *testing.T) {
	type step struct {
		at   int
		plan *v1alpha1.InstallPlan
		want string
	}
	fresh, waiting, complete := newPlan("p", ""), newPlan("p", "RequiresApproval", manual(1)), newPlan("p", "Complete", started(3), done(9))
	older := newPlan("p", "Failed", started(3), failed(8))
	for name, tc := range map[string]struct {
		steps   []step // after the plan was seen complete at second 60
		watched bool   // the last version is in a window
		sub     *v1alpha1.Subscription
		suspect subscription.Stage
	}{
		"an older version is ignored":                   {steps: []step{{61, older, "||"}, {62, older, "||"}, {65, older, "||"}, {69, older, "||"}}, suspect: "Failed"},
		"an edit is reported when it is observed again": {steps: []step{{61, fresh, "||"}, {62, fresh, "C>N!|OutOfBandEdit|Pending/InstallPlanNotYetReconciled"}}},
		"a cache that catches up leaves no trace":       {steps: []step{{61, waiting, "||"}, {62, complete, "||"}}},
		"an unknown phase is not suspicious": {steps: []step{
			{61, newPlan("p", "Melting", started(3), done(9)), "C>U||"}, {63, newPlan("p", "Failed", started(3), failed(62)), "U>F|UnknownPhase|Failed/InstallComponentFailed"},
		}},
		"a version from a watch is reported at once": {steps: []step{{61, fresh, "C>N!|OutOfBandEdit|Pending/InstallPlanNotYetReconciled"}}, watched: true},
		"a failure from before the retry": {sub: newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), steps: []step{
			{60, newPlan("p", "Installing", started(3), failed(9)), "||Pending/Installing"}, {61, newPlan("p", "Failed", started(3), failed(9)), "||Pending/Installing"},
		}, suspect: "Failed"},
		"a failure without a condition is reported at once": {sub: newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), steps: []step{
			{60, newPlan("p", "Installing", started(3)), "||Pending/Installing"}, {61, newPlan("p", "Failed", started(3)), "I>F||Failed/InstallPlanFailed"},
		}},
		"a status of another writer counts like the history": {sub: newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), steps: []step{
			{60, waiting, "||Pending/Installing"}, {61, newPlan("p", "Installing", manual(2), started(5)), "||Pending/Installing"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher(newSub("a", follows("p", "etcd.v1"), installed), newCSV("etcd.v1"))
			if tc.sub != nil {
				w = newWatcher(tc.sub)
			} else {
				w.reconcile(t, 60, complete)
			}
			for _, s := range tc.steps {
				if tc.watched {
					w.in.Observations = []subscription.Observation{{At: second(s.at).Time, Plan: s.plan}}
				}
				require.Equal(t, s.want, w.report(t, s.at, s.plan), "at second %d", s.at)
			}
			require.Equal(t, tc.suspect, w.in.Histories["a-uid"].SuspectStage)
		})
	}
}

func TestCacheOlderThanTheLastWriteChangesNothing(t *testing.T) {
	w := newWatcher(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)))
	w.reconcile(t, 60, newPlan("p", "RequiresApproval", manual(1)))
	before := w.in.Subscriptions.Items[0]
	require.Contains(t, w.report(t, 61, newPlan("p", "Installing", manual(2), started(61))), "|Pending/Installing")
	w.in.Subscriptions.Items[0] = before
	complete := newPlan("p", "Complete", manual(2), started(61), done(61))
	require.Contains(t, w.report(t, 61, complete), "|Pending/RequiresApproval", "no write")
	w.reconcile(t, 62, complete)
	require.Empty(t, planConditions(w.status()), "the write was lost after all")
}

func TestDeletedCSVIsReportedAndReinstalledOnRequest(t *testing.T) {
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
		"within the grace period nothing is reported":                  {at: 60, requeue: 100 * time.Second},
		"after the grace period it is reported":                        {at: 160, reasons: "WedgedUpgradePending"},
		"on request the grace period applies, too":                     {at: 60, reinstall: true, requeue: 100 * time.Second},
		"on request the CSV is installed again after the grace period": {at: 160, reinstall: true, cleared: true},
		"the CSV existed until now":                                    {at: 999, reinstall: true, noticed: true, requeue: 2 * time.Minute},
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

// TestDeletedOperatorIsReinstalledOnlyOnRequest checks that an operator whose CSV was deleted after its InstallPlan
// is installed again only on request. Deleting the plan of a version that was already removed is such a request.
func TestDeletedOperatorIsReinstalledOnlyOnRequest(t *testing.T) {
	collected := newSub("a", follows("p", "etcd.v1"), installed, withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 30))
	for name, tc := range map[string]struct {
		sub       *v1alpha1.Subscription
		reinstall bool
		live      bool
		want      string // after the grace
		reasons   string
	}{
		"by default it stays removed":                   {sub: collected, want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"it stays removed with a live read":             {sub: collected, live: true, want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"plan and CSV may be deleted together":          {sub: newSub("a", follows("p", "etcd.v1"), installed), want: "UpgradePending p", reasons: "WedgedUpgradePending"},
		"on request it is installed again":              {sub: collected, reinstall: true, want: " "},
		"deleting the plan afterwards requests it, too": {sub: newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.State = "UpgradePending" }), want: " "},
		"an upgrade whose plan was deleted is planned again": {sub: newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" },
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
			require.Equal(t, "Delete Subscription ops/a and create it again to install the version again.", whole.Advice)
			require.Len(t, findings, 1)
			require.Equal(t, subscription.ReasonWedgedUpgradePending, findings[0].Reason)
			require.False(t, findings[0].Safe)
		})
	}
}

func historyOf(stage subscription.Stage) map[types.UID]subscription.History {
	return map[types.UID]subscription.History{"a-uid": known(stage)}
}

// TestSubscriptionFollowsALaterPlanWithTheSameVersion checks that a Subscription whose InstallPlan is missing
// references a later plan with the same version. Otherwise that plan would install a version that no Subscription
// follows.
func TestSubscriptionFollowsALaterPlanWithTheSameVersion(t *testing.T) {
	generation := func(g int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Generation = g }
	}
	for name, tc := range map[string]struct {
		plans   []olmcore.Object
		at      int
		follows string
	}{
		"no other plan exists":                      {at: 60},
		"one without steps":                         {[]olmcore.Object{newPlan("q", "", empty, generation(2))}, 60, "q"},
		"one that runs":                             {[]olmcore.Object{newPlan("q", "Installing", generation(2))}, 60, "q"},
		"it has just completed":                     {[]olmcore.Object{newPlan("q", "Complete", done(50), generation(2))}, 60, "q"},
		"the newest of them":                        {[]olmcore.Object{newPlan("q", "Installing", generation(2)), newPlan("r", "", empty, generation(3)), newPlan("s", "", empty, generation(2))}, 60, "r"},
		"the plan may only be missing in the cache": {[]olmcore.Object{newPlan("q", "Installing", generation(2))}, 8, "p"},
		"an older one":                              {[]olmcore.Object{newPlan("q", "Installing", generation(0))}, 60, ""},
		"one that failed":                           {[]olmcore.Object{newPlan("q", "Failed", failed(30), generation(2))}, 60, ""},
		"one that is being deleted":                 {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(9) })}, 60, ""},
		"one of another version":                    {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"etcd.v2"} })}, 60, ""},
		"one of another Subscription":               {[]olmcore.Object{newPlan("q", "Installing", generation(2), func(p *v1alpha1.InstallPlan) { p.OwnerReferences = nil })}, 60, ""},
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
