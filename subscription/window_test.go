// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription"
)

func sawAt(at int, p *v1alpha1.InstallPlan) subscription.Observation {
	return subscription.Observation{At: second(at).Time, Plan: p}
}

func deletedAt(at int, p *v1alpha1.InstallPlan) subscription.Observation {
	return subscription.Observation{At: second(at).Time, Plan: p, Deleted: true}
}

// as gives a plan another name, UID and resourceVersion.
func as(name, resourceVersion string, p *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	p = p.DeepCopy()
	p.Name, p.UID, p.ResourceVersion = name, types.UID(name+"-uid"), resourceVersion
	return p
}

// TestStaleListsAndObservationsAreCombined checks a list of InstallPlans and Observations that were read one after
// the other. Either may be older, and neither sets a plan back. The time is second 60.
func TestStaleListsAndObservationsAreCombined(t *testing.T) {
	type plan = *v1alpha1.InstallPlan
	type window = []subscription.Observation
	n := as("p", "1", newPlan("p", "", manual(1)))
	a := as("p", "2", newPlan("p", "RequiresApproval", manual(1)))
	i := as("p", "3", newPlan("p", "Installing", manual(2), started(20)))
	f := as("p", "4", newPlan("p", "Failed", manual(2), started(20), failed(25)))
	again := as("p", "5", newPlan("p", "Installing", manual(2), started(20), failed(25)))
	c := as("p", "6", newPlan("p", "Complete", manual(2), started(20), done(30)))
	edited := as("p", "7", newPlan("p", "", manual(2)))
	old := func(p plan) plan { return as("old", p.ResourceVersion, p) }
	oldWaits := known("RequiresApproval")
	oldWaits.PlanUID, oldWaits.PlanName = "old-uid", "old"
	for name, tc := range map[string]struct {
		from     subscription.Stage
		observed int // the second of the newest Observation that is remembered, 0 for none
		listed   plan
		window   window
		live     bool
		want     string
		gaps     string
		shown    string // conditions afterwards; the status starts with those of from
		requeue  time.Duration
	}{
		"the list is an older version of the window": {
			"RequiresApproval", 0, i, window{sawAt(20, i), sawAt(30, c)}, false, "A>I I>C", "", "", 90 * time.Second,
		},
		"the list is older than the window": {
			"NotYetReconciled", 0, n, window{sawAt(50, i), sawAt(55, c)}, false, "N>A:Inferred A>I I>C", "", "", 5 * time.Second,
		},
		"the list lacks a failure": {
			"Installing", 0, i, window{sawAt(55, f)}, false, "I>F", "", "Failed/InstallComponentFailed", 5 * time.Second,
		},
		"the list is ahead by a retry": {"Failed", 25, again, window{sawAt(25, f)}, false, "F>I", "", "Pending/Installing", 0},
		"the list lacks an approval":   {"RequiresApproval", 0, a, window{sawAt(51, as("p", "3", newPlan("p", "RequiresApproval", manual(2)))), sawAt(52, i)}, false, "A>I", "", "Pending/Installing", 2 * time.Second},
		"the window is older than the list": {
			"RequiresApproval", 0, c, window{sawAt(20, i)}, false, "A>I I>C", "", "", 90 * time.Second,
		},
		"the window is old, the list was edited": {
			"Complete", 30, edited, window{sawAt(30, c)}, false, "C>N!", "OutOfBandEdit", "Pending/InstallPlanNotYetReconciled", 0,
		},
		"a live read is newer than the window":          {"Complete", 0, edited, window{sawAt(59, c)}, true, "C>N!", "OutOfBandEdit", "Pending/InstallPlanNotYetReconciled", 0},
		"reported stages stay reported":                 {"Complete", 30, a, window{sawAt(11, a), sawAt(20, i), sawAt(30, c)}, false, "", "", "", 90 * time.Second},
		"an old observation proves nothing":             {"Complete", 0, i, window{sawAt(9, as("p", "9", i))}, false, "", "", "", time.Second},
		"a used observation proves nothing":             {"Complete", 30, i, window{sawAt(20, as("p", "9", i))}, false, "", "", "", time.Second},
		"the window is a little older":                  {"RequiresApproval", 0, c, window{sawAt(55, i)}, false, "A>I I>C", "", "", 90 * time.Second},
		"the list lacks an edit of a failed plan":       {"Failed", 0, as("p", "4", newPlan("p", "Failed", manual(2), started(20))), window{sawAt(55, as("p", "5", newPlan("p", "Installing", manual(3), started(20))))}, false, "F>I", "", "Pending/Installing", 5 * time.Second},
		"another stage proves nothing":                  {"Complete", 0, as("p", "10", newPlan("p", "Failed", manual(2), started(20), failed(35))), window{sawAt(59, as("p", "9", i))}, false, "", "", "", time.Second},
		"the same stage in a later version is reported": {"Complete", 0, i, window{sawAt(59, as("p", "9", i))}, false, "C>I!", "OutOfBandEdit", "Pending/Installing", 9 * time.Second},
		"not listed, a direct read found it":            {"Installing", 0, nil, window{sawAt(59, c)}, false, "I>C", "", "", 9 * time.Second},
		"not listed, observed long ago":                 {"Installing", 0, nil, window{sawAt(50, i)}, false, "", "", "Pending/Installing", time.Second},
		"not listed by a live read":                     {"Installing", 0, nil, window{sawAt(59, i)}, true, "I>M", "DeletedBeforeObserved", "", 0},
		"not listed, observed and deleted":              {"Installing", 0, nil, window{sawAt(55, c), deletedAt(59, c)}, false, "I>C C>M", "", "", 0},
		"generations that decrease":                     {"RequiresApproval", 0, c, window{sawAt(20, i), sawAt(21, as("p", "4", newPlan("p", "Installing", manual(1))))}, false, "A>I I>C", "ClockSkew", "", 90 * time.Second},
		"an unknown generation is ignored":              {"RequiresApproval", 0, c, window{sawAt(20, i), sawAt(21, as("p", "4", newPlan("p", "Installing", manual(0)))), sawAt(22, i)}, false, "A>I I>C", "", "", 90 * time.Second},
		"another plan, the window has the old end":      {"old", 0, n, window{sawAt(20, old(i)), sawAt(30, old(c)), deletedAt(40, old(c)), sawAt(50, n)}, false, "A>I I>C C>- ->N", "", "Pending/InstallPlanNotYetReconciled", 0},
		"another plan, and part of the old one":         {"old", 0, n, window{sawAt(20, old(i))}, false, "A>I I>- ->N", "ReplacedPlan", "Pending/InstallPlanNotYetReconciled", 0},
	} {
		t.Run(name, func(t *testing.T) {
			sub := newSub("a", follows("p", "etcd.v1"))
			h := oldWaits
			if tc.from != "old" {
				h = known(tc.from)
				if reason := map[subscription.Stage]string{"NotYetReconciled": "InstallPlanNotYetReconciled"}[tc.from]; reason != "" {
					pending(reason, 10)(sub)
				} else if tc.from == "Failed" {
					withCondition("InstallPlanFailed", "InstallComponentFailed", "step broke", 10)(sub)
				} else if tc.from != "Complete" {
					pending(string(tc.from), 10)(sub)
				}
			}
			if tc.observed > 0 {
				h.LastObserved, h.LastInstalledUpdate = second(tc.observed).Time, second(tc.observed).Time
			}
			in := inputOf(sub)
			if tc.listed != nil {
				in.InstallPlans.Items = append(in.InstallPlans.Items, tc.listed)
			}
			in.Live, in.Observations, in.Histories = tc.live, tc.window, map[types.UID]subscription.History{"a-uid": h}
			out := reconcile(t, in)
			told, requeue := stages(out.Result), out.RequeueAfter
			if name == "the window is old, the list was edited" { // suspect at first
				require.Empty(t, told)
				carryOut(&in, out)
				in.Now = in.Now.Add(out.RequeueAfter)
				out = reconcile(t, in)
				told, requeue = stages(out.Result), out.RequeueAfter
			}
			require.Equal(t, tc.want, told)
			require.Equal(t, tc.gaps, gaps(out.Result))
			require.Equal(t, tc.shown, planConditions(statusOf(t, in, out, "a")))
			require.Equal(t, tc.requeue, requeue)
			carryOut(&in, out)
			if tc.shown != "" { // a reference that is cleared is told too
				require.Empty(t, stages(reconcile(t, in).Result), "reported twice")
			}

			if tc.from == "RequiresApproval" { // which the status says too
				in = inputOf(sub, tc.listed)
				in.Observations = tc.window
				require.Equal(t, tc.want, stages(reconcile(t, in).Result), "without memory")
			}
		})
	}
}

// TestPlanIsReportedToItsEndAfterTheReferenceIsCleared checks that the Observations of an InstallPlan are reported
// although its reference was cleared meanwhile.
func TestPlanIsReportedToItsEndAfterTheReferenceIsCleared(t *testing.T) {
	in := inputOf(newSub("a"))
	in.Histories = historyOf("RequiresApproval")
	in.Observations = []subscription.Observation{sawAt(20, newPlan("p", "Installing", manual(2), started(20))), sawAt(30, newPlan("p", "Complete", manual(2), started(20), done(30)))}
	require.Equal(t, "A>I I>C C>-", stages(reconcile(t, in).Result))
}

// TestDeletionInAnotherNamespaceIsIgnored checks that the deletion of an InstallPlan in another namespace is
// ignored, also if the reference has no UID.
func TestDeletionInAnotherNamespaceIsIgnored(t *testing.T) {
	plan := newPlan("p", "Installing")
	plan.Namespace, plan.UID = "elsewhere", "other"
	for namespace, want := range map[string]string{"elsewhere": "InstallPlanUnverified ObservationIgnored", ns: "", "": ""} {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 55), func(s *v1alpha1.Subscription) {
			s.Status.InstallPlanRef.UID, s.Status.Install.UID, s.Status.LastUpdated = "", "", second(55)
		})
		in := inputOf(sub)
		gone := plan.DeepCopy()
		gone.Namespace = namespace
		in.Observations = []subscription.Observation{deletedAt(59, gone)}
		out := reconcile(t, in)
		require.Equal(t, want, reasons(out.Result), namespace)
		require.Equal(t, want == "", statusOf(t, in, out, "a").InstallPlanRef == nil, namespace)
	}
}

// TestOlderTimestampIsAcceptedAfterTheGracePeriod checks that a version with an older time than a known one is
// considered stale until it is read directly, or is still observed after the grace period. Another leader with a
// slower clock may have written it.
func TestOlderTimestampIsAcceptedAfterTheGracePeriod(t *testing.T) {
	const still = "||Failed/InstallComponentFailed"
	plan := newPlan("p", "Complete", started(3), done(38))
	start := func() *watcher {
		w, h := newWatcher(newSub("a", follows("p", "etcd.v1"), withCondition("InstallPlanFailed", "InstallComponentFailed", "step broke", 41))), known("Failed")
		h.LastInstalledUpdate = second(40).Time
		w.in.Histories["a-uid"] = h
		return w
	}
	w := start()
	for at := 60; at < 70; at++ {
		require.Equal(t, still, w.report(t, at, plan))
	}
	require.Equal(t, "F>I:Proven I>C||", w.report(t, 70, plan))

	w = start()
	w.in.Observations = []subscription.Observation{sawAt(60, plan)}
	require.Equal(t, "F>I:Proven I>C||", w.report(t, 60, plan), "a direct read ends the doubt")
}

// TestHistoryFromTheFutureDelaysNothing checks that times of the history that lie in the future are ignored, and
// that the grace period starts anew.
func TestHistoryFromTheFutureDelaysNothing(t *testing.T) {
	future := now.Add(time.Hour)
	for name, tc := range map[string]struct {
		shown  string
		change func(*subscription.History)
		plan   *v1alpha1.InstallPlan
		want   map[int]string // by second
	}{
		"a missing plan": {shown: "Installing", change: missingSince(future),
			want: map[int]string{60: "||Pending/Installing", 69: "||Pending/Installing", 70: "I>M:Inferred|DeletedBeforeObserved|"}},
		"a suspicion": {shown: "Installing", change: func(h *subscription.History) { h.SuspectStage, h.SuspectSince = "RequiresApproval", future },
			plan: newPlan("p", "RequiresApproval", manual(1)), want: map[int]string{60: "||Pending/Installing", 61: "I>A!|OutOfBandEdit|Pending/RequiresApproval"}},
		"the last write": {shown: "RequiresApproval", change: func(h *subscription.History) { h.PublishedAt = future },
			plan: newPlan("p", "Installing", manual(2), started(20)), want: map[int]string{60: "||Pending/Installing"}},
	} {
		w, h := newWatcher(newSub("a", follows("p", "etcd.v1"), pending(tc.shown, 6))), known("Installing")
		tc.change(&h)
		w.in.Histories["a-uid"] = h
		for _, at := range slices.Sorted(maps.Keys(tc.want)) {
			require.Equal(t, tc.want[at], w.report(t, at, tc.plan), "%s, at second %d", name, at)
		}
	}
}

func TestConditionWithoutTimeIsTheOldest(t *testing.T) {
	timeless := func(c v1alpha1.SubscriptionCondition) v1alpha1.SubscriptionCondition {
		c.LastTransitionTime = nil
		return c
	}
	missing, failing, installing := timeless(condition("InstallPlanMissing", "X", "", 1)), condition("InstallPlanFailed", "X", "", 30), condition("InstallPlanPending", "Installing", "", 50)
	for _, conditions := range [][]v1alpha1.SubscriptionCondition{
		{missing, failing, installing}, {installing, failing, missing}, {failing, missing, installing}, {missing, installing, failing}, {timeless(failing), installing},
	} {
		sub := newSub("a", follows("p", "etcd.v1"))
		sub.Status.Conditions = conditions
		out := reconcile(t, inputOf(sub, newPlan("p", "Failed", failed(55))))
		require.Equal(t, "I>F", stages(out.Result))
	}
	sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6), withCondition("InstallPlanFailed", "X", "", 9))
	sub.Status.Conditions[1].Status = "False"
	require.Equal(t, "I>C", stages(reconcile(t, inputOf(sub, newPlan("p", "Complete", done(20)), newCSV("etcd.v1"))).Result), "what is not True says nothing")

	sub = newSub("a")
	sub.Status.Conditions = []v1alpha1.SubscriptionCondition{timeless(condition("ResolutionFailed", "Old", "", 1)), condition("ResolutionFailed", "New", "", 8)}
	in := inputOf(sub)
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition("ResolutionFailed", "New", "", 8)}, statusOf(t, in, reconcile(t, in), "a").Conditions)
}

// TestStaleListsReportNoFalseStage checks that no stage is reported that did not happen, and that no InstallPlan
// returns to an earlier stage. Lists may be stale by up to the grace period and arrive in any order, with
// Observations of any length.
func TestStaleListsReportNoFalseStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := walk(t, true)
		for i := range all {
			all[i].plan = as("p", fmt.Sprint(100+i), all[i].plan)
		}
		w := newWatcher()
		end := all[len(all)-1].at
		var told []string
		for at := 2; at <= end+12; at += rapid.IntRange(1, 4).Draw(t, "pause") {
			current := 0
			for i, v := range all {
				if v.at <= at {
					current = i
				}
			}
			listed := current
			for listed > 0 && all[listed].at > at-8 && rapid.Bool().Draw(t, "older") {
				listed--
			}
			from := rapid.IntRange(0, current).Draw(t, "from")
			to := rapid.IntRange(from, current+1).Draw(t, "to")
			w.in.Observations = nil
			for i := from; i < to; i++ {
				w.in.Observations = append(w.in.Observations, subscription.Observation{At: second(all[i].at - 1).Time.Add(time.Duration(i) * time.Millisecond), Plan: all[i].plan})
			}
			out := w.reconcile(t, at, all[listed].plan)
			for _, tr := range out.Transitions {
				require.False(t, tr.OutOfBand, "at %d: list %d, window %d to %d: %v", at, listed, from, to, stages(out.Result))
			}
			told = w.reported
			require.True(t, isSubsequence(told, stagesOf(all)), "reported %v, happened %v; at %d: list %d, window %d to %d", told, stagesOf(all), at, listed, from, to)
		}
		w.in.Observations = nil
		w.reconcile(t, end+30, all[len(all)-1].plan)
		w.reconcile(t, end+45, all[len(all)-1].plan)
		require.Equal(t, all[len(all)-1].stage, w.reported[len(w.reported)-1])
	})
}

// TestObservationsAreOrderedByResourceVersion checks that the versions of an InstallPlan are ordered by
// resourceVersion, or by arrival if those cannot be compared, and never by time.
func TestObservationsAreOrderedByResourceVersion(t *testing.T) {
	installing := newPlan("p", "Installing", started(20))
	complete := newPlan("p", "Complete", started(20), done(30))
	sub := newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 3))
	saw := func(at int, version string, p *v1alpha1.InstallPlan) subscription.Observation {
		return sawAt(at, as("p", version, p))
	}
	for name, tc := range map[string]struct {
		listed string
		window []subscription.Observation
	}{
		"in order of arrival":             {"9", []subscription.Observation{saw(50, "8", installing), saw(40, "9", complete)}},
		"out of order":                    {"9", []subscription.Observation{saw(40, "9", complete), saw(50, "8", installing)}},
		"one digit more":                  {"10", []subscription.Observation{saw(40, "10", complete), saw(50, "9", installing)}},
		"versions that are no numbers":    {"b", []subscription.Observation{saw(50, "z", installing), saw(40, "b", complete)}},
		"another plan's versions between": {"9", []subscription.Observation{saw(40, "9", complete), sawAt(45, as("q", "1", installing)), saw(50, "8", installing)}},
	} {
		in := inputOf(sub, as("p", tc.listed, complete))
		in.Observations = tc.window
		require.Equal(t, "N>I I>C", stages(reconcile(t, in).Result), name+", without memory")
		in.Histories = historyOf("NotYetReconciled")
		require.Equal(t, "N>I I>C", stages(reconcile(t, in).Result), name)

		in.InstallPlans.Items[0] = as("p", "1", newPlan("p", "")) // a cache that is behind
		in.Now = second(45).Time
		require.Equal(t, "N>I I>C", stages(reconcile(t, in).Result), name+", with a stale list")
	}
}

// TestClockSetBackBetweenCallsLosesNoStage checks that the resourceVersions decide which Observations are new, and
// that a list older than the history is stale.
func TestClockSetBackBetweenCallsLosesNoStage(t *testing.T) {
	failedPlan := as("p", "10", newPlan("p", "Failed", started(20), failed(25)))
	again := as("p", "11", newPlan("p", "Installing", started(20), failed(25)))
	in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 3)), as("p", "9", newPlan("p", "Installing", started(20))))
	in.Histories = historyOf("NotYetReconciled")
	in.Observations = []subscription.Observation{sawAt(60, in.InstallPlans.Items[0])}
	out := reconcile(t, in)
	require.Equal(t, "N>I", stages(out.Result))
	carryOut(&in, out)

	in.Now = second(30).Time
	in.InstallPlans.Items[0] = again
	in.Observations = append(in.Observations, sawAt(29, failedPlan), sawAt(30, again))
	out = reconcile(t, in)
	require.Equal(t, "I>F F>I", stages(out.Result))
	carryOut(&in, out)
	require.Empty(t, stages(reconcile(t, in).Result), "once")

	in.InstallPlans.Items[0], in.Observations = failedPlan, nil
	out = reconcile(t, in)
	require.Empty(t, stages(out.Result))
	require.Equal(t, "SuspectObservation", reasons(out.Result))
}

// TestSupersededPlanIsNotReportedAsOutOfBand checks that the failure of an InstallPlan that was superseded before it
// started is not reported as out of band.
func TestSupersededPlanIsNotReportedAsOutOfBand(t *testing.T) {
	superseded := newPlan("p", "Failed", manual(1), installedIs("False", "Superseded", "superseded by InstallPlan q", 50))
	in := inputOf(newSub("a", follows("q", "etcd.v1"), pending("InstallPlanNotYetReconciled", 55)), superseded, newPlan("q", "", manual(1), func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = second(49) }))
	in.Histories = historyOf("RequiresApproval")
	out := reconcile(t, in)
	require.Equal(t, "A>F F>- ->N", stages(out.Result))
	require.Empty(t, gaps(out.Result))
}
