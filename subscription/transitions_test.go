// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription"
)

// known returns the history of a caller that observed the plan "p" in a stage at second 10.
func known(stage subscription.Stage) subscription.History {
	h := subscription.History{LastStage: stage, LastAt: second(10).Time, PlanUID: "p-uid", PlanName: "p", Published: stage, PublishedAt: second(10).Time}
	if stage == subscription.StageNoPlan {
		h.PlanUID, h.PlanName = "", ""
	}
	return h
}

// publishing makes a Subscription show the stage of the plan "p" since second 10.
func publishing(stage subscription.Stage) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		follows("p", "etcd.v1")(s)
		switch stage {
		case "NoPlan":
		case "Complete":
			installed(s)
		case "Failed":
			withCondition("InstallPlanFailed", "InstallComponentFailed", "step broke", 10)(s)
		case "Missing":
			withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 10)(s)
		case "NotYetReconciled":
			pending("InstallPlanNotYetReconciled", 10)(s)
		default:
			pending(string(stage), 10)(s)
		}
	}
}

// TestTransitionsBetweenTwoObservations checks the transitions between every known stage and every observed
// InstallPlan.
func TestTransitionsBetweenTwoObservations(t *testing.T) {
	plans := map[string]*v1alpha1.InstallPlan{
		"gone": nil, "new": newPlan("p", ""), "planning": newPlan("p", "Planning"), "asking": newPlan("p", "RequiresApproval", manual(1)),
		"installing":              newPlan("p", "Installing", started(20)),
		"installing-after-asking": newPlan("p", "Installing", manual(2), started(20)),
		"complete":                newPlan("p", "Complete", started(20), done(30)),
		"complete-after-asking":   newPlan("p", "Complete", manual(2), started(20), done(30)),
		"complete-before":         newPlan("p", "Complete", started(3)),
		"failed":                  newPlan("p", "Failed", started(20), failed(30)),
		"failed-after-asking":     newPlan("p", "Failed", manual(2), started(20), failed(30)),
		"failed-before":           newPlan("p", "Failed", started(3), failed(9)),
		"unknown":                 newPlan("p", "Melting"),
	}
	table, err := os.ReadFile("testdata/stages.table")
	require.NoError(t, err)
	cells := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		var cell [4]string
		for i, text := range strings.Split(line, "|") {
			cell[i] = strings.TrimSpace(text)
		}
		from, plan, want, wantGaps := subscription.Stage(cell[0]), plans[cell[1]], cell[2], cell[3]
		require.Contains(t, plans, cell[1])
		t.Run(cell[0]+" "+cell[1], func(t *testing.T) {
			sub := newSub("a", follows("p", "etcd.v1"))
			in := inputOf(sub)
			if plan != nil {
				in.InstallPlans.Items = []*v1alpha1.InstallPlan{plan}
			}
			h := known(from)
			if from == "Failed" {
				h.LastInstalledUpdate = second(9).Time
			}
			observed := "Missing"
			if len(in.InstallPlans.Items) > 0 {
				observed = string(in.InstallPlans.Items[0].Status.Phase)
			}
			cells[string(from)+" to "+observed] = true
			in.Live, in.Histories = true, map[types.UID]subscription.History{"a-uid": h}
			out := reconcile(t, in)
			require.Equal(t, want, stages(out.Result))
			require.Equal(t, wantGaps, gaps(out.Result))

			for uid, h := range out.Histories {
				in.Histories[uid] = h
			}
			in.Now = in.Now.Add(time.Hour)
			require.Empty(t, stages(reconcile(t, in).Result), "reported twice")

			in = inputOf(newSub("a", publishing(from)), newCSV("etcd.v1")) // without memory
			if plan != nil {
				in.InstallPlans.Items = []*v1alpha1.InstallPlan{plan}
			}
			out = reconcile(t, in)
			if from == "Failed" && cell[1] == "failed" { // which only memory can tell
				require.Empty(t, stages(out.Result))
				return
			}
			if plan == nil { // nor is this witnessed
				require.Equal(t, strings.Replace(want, ">M", ">M:Inferred", 1), stages(out.Result))
			} else {
				require.Equal(t, want, stages(out.Result))
			}
			require.Equal(t, wantGaps, gaps(out.Result))
			carryOut(&in, out)
			require.Empty(t, stages(reconcile(t, in).Result), "reported twice")
		})
	}
	for _, from := range strings.Fields("NoPlan NotYetReconciled Planning RequiresApproval Installing Failed Complete Missing") {
		for _, to := range []string{"", "Planning", "RequiresApproval", "Installing", "Complete", "Failed", "Missing"} {
			require.True(t, cells[from+" to "+to], "no case from %s to %q", from, to)
		}
	}
}

// TestCertaintyOfUnobservedStages checks the certainty of RequiresApproval and Installing if they were not
// observed, and of retries that follow only from a changed time.
func TestCertaintyOfUnobservedStages(t *testing.T) {
	approved := func(generation int64) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Spec.Approval, p.Spec.Approved, p.Generation = v1alpha1.ApprovalManual, true, generation
		}
	}
	for name, tc := range map[string]struct {
		from       subscription.Stage
		lastDone   int // second of the last known Installed condition, 0 for none
		plan       *v1alpha1.InstallPlan
		want, gaps string
	}{
		"a Manual plan of unknown generation probably waited for approval": {
			from: "NotYetReconciled", plan: newPlan("p", "Installing", approved(0)), want: "N>A:Assumed A>I"},
		"a Manual plan that was created approved did not wait for approval": {
			from: "NotYetReconciled", plan: newPlan("p", "Installing", approved(1)), want: "N>I"},
		"a Manual plan that is not approved should not run": {
			from: "NotYetReconciled", plan: newPlan("p", "Installing", manual(1)), want: "N>A:Assumed A>I", gaps: "OutOfBandEdit"},
		"an Automatic plan that was edited may have been Manual": {
			from: "NotYetReconciled", plan: newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.Generation = 2 }), want: "N>I", gaps: "ApprovalUnknown"},
		"a start after the last observation proves the installation": {
			from: "RequiresApproval", plan: newPlan("p", "Complete", manual(2), started(10)), want: "A>I:Proven I>C"},
		"an old start with a new end proves it too": {
			from: "RequiresApproval", plan: newPlan("p", "Complete", manual(2), started(3), done(10)), want: "A>I:Proven I>C"},
		"an old start alone suggests it": {
			from: "RequiresApproval", plan: newPlan("p", "Complete", manual(2), started(3)), want: "A>I:Inferred I>C"},
		"an end alone suggests it": {
			from: "RequiresApproval", plan: newPlan("p", "Complete", manual(2), done(30)), want: "A>I:Inferred I>C"},
		"an end of another kind suggests nothing": {
			from: "RequiresApproval", plan: newPlan("p", "Complete", manual(2), failed(30)), want: "A>C!", gaps: "NoExecutionEvidence"},
		"without any trace nothing is invented": {
			from: "NotYetReconciled", plan: newPlan("p", "Failed"), want: "N>F!", gaps: "NoExecutionEvidence"},
		"an installing plan that carries a failure was tried again": {
			from: "Installing", plan: newPlan("p", "Installing", started(3), failed(20)), want: "I>F:Proven F>I", gaps: "AtLeastOnce"},
		"a known failure proves nothing": {
			from: "Installing", lastDone: 20, plan: newPlan("p", "Installing", started(3), failed(20)), want: ""},
		"a new plan found installing with a failure failed before": {
			from: "NotYetReconciled", plan: newPlan("p", "Installing", started(11), failed(20)), want: "N>I:Proven I>F:Proven F>I", gaps: "AtLeastOnce"},
		"a failed plan found installing with a newer failure was tried twice": {
			from: "Failed", lastDone: 8, plan: newPlan("p", "Installing", started(3), failed(20)), want: "F>I:Proven I>F:Proven F>I", gaps: "AtLeastOnce"},
		"a failed plan found installing with its failure was tried once": {
			from: "Failed", lastDone: 20, plan: newPlan("p", "Installing", started(3), failed(20)), want: "F>I"},
		"a failure without a time may be the known one": {
			from: "Failed", plan: newPlan("p", "Installing", started(3), failed(20)), want: "F>I"},
		"a failed check is no failure of the plan": {
			from: "Installing", plan: newPlan("p", "Installing", installedIs("False", "InstallCheckFailed", "no group", 20)), want: ""},
		"a newer failure proves another try": {
			from: "Failed", lastDone: 8, plan: newPlan("p", "Failed", started(3), failed(20)), want: "F>I:Proven I>F", gaps: "AtLeastOnce"},
		"a failure that gets its condition late is no other try": {
			from: "Failed", plan: newPlan("p", "Failed", failed(20)), want: ""},
		"a newer completion proves that it ran again": {
			from: "Complete", lastDone: 8, plan: newPlan("p", "Complete", started(3), done(20)), want: "C>I:Proven! I>C", gaps: "OutOfBandEdit AtLeastOnce"},
		"times that contradict each other are dropped": {
			from: "NoPlan", plan: newPlan("p", "Complete", started(1), done(30)), want: "->N:Proven N>I:Proven I>C", gaps: "ClockSkew"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1")), tc.plan)
			h := known(tc.from)
			if tc.lastDone > 0 {
				h.LastInstalledUpdate = second(tc.lastDone).Time
			}
			in.Live, in.Histories = true, map[types.UID]subscription.History{"a-uid": h}
			out := reconcile(t, in)
			require.Equal(t, tc.want, stages(out.Result))
			require.Equal(t, tc.gaps, gaps(out.Result))
		})
	}
}

// TestEvidenceIsComparedWithTheCreationOfThePlan checks that evidence is compared with the creation time of the
// InstallPlan if the time of the known stage is unknown.
func TestEvidenceIsComparedWithTheCreationOfThePlan(t *testing.T) {
	for at, want := range map[int]string{1: "A>I:Inferred I>C", 2: "A>I:Proven I>C"} {
		sub := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6))
		sub.Status.Conditions[0].LastTransitionTime = nil
		out := reconcile(t, inputOf(sub, newPlan("p", "Complete", manual(2), started(at)), newCSV("etcd.v1")))
		require.Equal(t, want, stages(out.Result))
	}
}

// TestNewPlanEndsTheTransitionsOfTheOldPlan checks the transitions when a Subscription references another
// InstallPlan, with a history of the old plan and with the status only.
func TestNewPlanEndsTheTransitionsOfTheOldPlan(t *testing.T) {
	fresh := map[string]struct {
		plan *v1alpha1.InstallPlan
		want string
	}{
		"new":                     {newPlan("p", ""), "->N"},
		"planning":                {newPlan("p", "Planning"), "->N:Proven N>P"},
		"waiting for approval":    {newPlan("p", "RequiresApproval", manual(1)), "->N:Proven N>A"},
		"installing":              {newPlan("p", "Installing", started(20)), "->N:Proven N>I"},
		"installing after asking": {newPlan("p", "Installing", manual(2), started(20)), "->N:Proven N>A:Inferred A>I"},
		"complete":                {newPlan("p", "Complete", started(20), done(30)), "->N:Proven N>I:Proven I>C"},
		"complete, long ago":      {newPlan("p", "Complete", started(3), done(4)), "->N:Proven N>I:Proven I>C"},
		"complete after asking":   {newPlan("p", "Complete", manual(2), started(20), done(30)), "->N:Proven N>A:Inferred A>I:Proven I>C"},
		"failed":                  {newPlan("p", "Failed", manual(0), started(20), failed(30)), "->N:Proven N>A:Assumed A>I:Proven I>F"},
		"missing":                 {nil, "->M"},
	}
	for from, want := range map[subscription.Stage][2]string{
		"NotYetReconciled": {"N>- ", "ReplacedPlan"},
		"Planning":         {"P>- ", "ReplacedPlan"},
		"RequiresApproval": {"A>- ", "ReplacedPlan"},
		"Installing":       {"I>- ", "ReplacedPlan"},
		"Failed":           {"F>- ", "ReplacedPlan"},
		"Unknown":          {"U>- ", "ReplacedPlan"},
		"Complete":         {"C>- ", ""},
		"Missing":          {"M>- ", ""},
		"NoPlan":           {"", ""},
	} {
		for to, tc := range fresh {
			wantGaps := want[1]
			if tc.plan == nil {
				wantGaps = strings.TrimSpace(wantGaps + " DeletedBeforeObserved")
			}
			h := known(from)
			if from != "NoPlan" {
				h.PlanUID, h.PlanName, h.LastInstalledUpdate = "old-uid", "old", second(50).Time
			}
			in := inputOf(newSub("a", follows("p", "etcd.v1")))
			if tc.plan != nil {
				in.InstallPlans.Items = append(in.InstallPlans.Items, tc.plan)
			}
			in.Live, in.Histories = true, map[types.UID]subscription.History{"a-uid": h}
			out := reconcile(t, in)
			require.Equal(t, want[0]+tc.want, stages(out.Result), "%s, %s", from, to)
			require.Equal(t, wantGaps, gaps(out.Result), "%s, %s", from, to)
			if tc.plan == nil {
				continue
			}
			require.Equal(t, types.UID("p-uid"), out.Histories["a-uid"].PlanUID)
			if from == "NoPlan" {
				continue
			}
			sub := newSub("a", publishing(from))
			sub.Status.InstallPlanRef.UID, sub.Status.Install.UID = "old-uid", "old-uid"
			in = inputOf(sub, tc.plan, newCSV("etcd.v1"))
			out = reconcile(t, in)
			require.Equal(t, want[0]+tc.want, stages(out.Result), "%s, %s, without memory", from, to)
			require.Equal(t, wantGaps, gaps(out.Result), "%s, %s, without memory", from, to)
			require.Equal(t, types.UID("p-uid"), statusOf(t, in, out, "a").InstallPlanRef.UID)
			require.Equal(t, types.UID("p-uid"), statusOf(t, in, out, "a").Install.UID)
		}
	}
}

// TestOldPlanIsReportedToItsEnd checks that the last stage of the old InstallPlan is reported if it is observed and
// newer than the known stage.
func TestOldPlanIsReportedToItsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		from subscription.Stage
		done int
		old  *v1alpha1.InstallPlan
		want string
		gaps string
	}{
		"it completed":                  {"Installing", 0, newPlan("old", "Complete", started(8), done(30)), "I>C C>-", ""},
		"it was approved and completed": {"RequiresApproval", 0, newPlan("old", "Complete", manual(2), started(12), done(30)), "A>I:Proven I>C C>-", ""},
		"it was tried again":            {"Failed", 9, newPlan("old", "Installing", started(3), failed(9)), "F>I I>-", "ReplacedPlan"},
		"no change":                     {"Installing", 0, newPlan("old", "Installing", started(8)), "I>-", "ReplacedPlan"},
		"an older version of the plan":  {"Complete", 30, newPlan("old", "Installing", started(8)), "C>-", ""},
		"an older failure":              {"Installing", 9, newPlan("old", "Failed", started(3), failed(9)), "I>-", "ReplacedPlan"},
		"another plan of the same name": {"Installing", 0, newPlan("old", "Complete", started(8), done(30), func(p *v1alpha1.InstallPlan) { p.UID = "again" }), "I>-", "ReplacedPlan"},
	} {
		t.Run(name, func(t *testing.T) {
			h := known(tc.from)
			h.PlanUID, h.PlanName = "old-uid", "old"
			if tc.done > 0 {
				h.LastInstalledUpdate = second(tc.done).Time
			}
			in := inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", ""), tc.old)
			in.Histories = map[types.UID]subscription.History{"a-uid": h}
			out := reconcile(t, in)
			require.Equal(t, tc.want+" ->N", stages(out.Result))
			require.Equal(t, tc.gaps, gaps(out.Result))
		})
	}
}

func TestClearedReferenceEndsTheTransitions(t *testing.T) {
	in := inputOf(newSub("a"))
	in.Histories = map[types.UID]subscription.History{"a-uid": known(subscription.StageMissing)}
	out := reconcile(t, in)
	require.Equal(t, "M>-", stages(out.Result))
	require.Equal(t, subscription.StageNoPlan, out.Histories["a-uid"].LastStage)
}

// TestTransitionTimes checks the time and the bound of each reported stage.
func TestTransitionTimes(t *testing.T) {
	failedBefore := known("Failed")
	failedBefore.LastInstalledUpdate = second(9).Time
	for name, tc := range map[string]struct {
		history subscription.History
		window  []subscription.Observation
		plan    *v1alpha1.InstallPlan
		want    []string
	}{
		"a whole life": {plan: newPlan("p", "Complete", manual(2), started(20), done(30)), want: []string{
			"NotYetReconciled 2s Exact True InstallPlanNotYetReconciled",
			"RequiresApproval 2s NotBefore True RequiresApproval",
			"Installing 20s NotAfter True Installing",
			"Complete 30s Exact False InstallPlanComplete",
		}},
		"installing": {plan: newPlan("p", "Installing", started(20)), want: []string{
			"NotYetReconciled 2s Exact True InstallPlanNotYetReconciled",
			"Installing 20s NotAfter True Installing",
		}},
		"restored": {history: known("Missing"), plan: newPlan("p", "Installing", started(20)), want: []string{
			"Installing 1m0s NotAfter True PlanRestored",
		}},
		"an end without a time": {plan: newPlan("p", "Complete", started(20)), want: []string{
			"NotYetReconciled 2s Exact True InstallPlanNotYetReconciled",
			"Installing 20s NotAfter True Installing",
			"Complete 1m0s NotAfter False InstallPlanComplete",
		}},
		"a retry ended before its end": {history: failedBefore, plan: newPlan("p", "Complete", started(3), done(40)), want: []string{
			"Installing 40s NotAfter True Installing",
			"Complete 40s Exact False InstallPlanComplete",
		}},
		"a retry that was observed late": {history: failedBefore, plan: newPlan("p", "Complete", started(3), done(40)),
			window: []subscription.Observation{sawAt(50, newPlan("p", "Installing", started(3), failed(9)))}, want: []string{
				"Installing 40s NotAfter True Installing",
				"Complete 40s Exact False InstallPlanComplete",
			}},
		"another failure": {history: failedBefore, plan: newPlan("p", "Failed", started(3), failed(40)), want: []string{
			"Installing 40s NotAfter True Installing",
			"Failed 40s Exact True InstallComponentFailed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1")), tc.plan, newCSV("etcd.v1"))
			in.Observations, in.Histories = tc.window, map[types.UID]subscription.History{"a-uid": tc.history}
			var got []string
			for _, tr := range reconcile(t, in).Transitions {
				if tr.Type == subscription.TransitionInstallPlan {
					got = append(got, string(tr.To)+" "+tr.At.Sub(epoch).String()+" "+string(tr.Bound)+" "+string(tr.Status)+" "+tr.Reason)
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// TestStartOfARetryIsUnknown checks that the start of a retry has the time of its end as the bound, because
// status.startTime is that of the first attempt.
func TestStartOfARetryIsUnknown(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Complete", started(10), done(30)))
	in.Histories = historyOf(subscription.StageFailed)
	out := reconcile(t, in)
	require.Equal(t, "F>I:Proven I>C", stages(out.Result))
	require.Equal(t, second(30), out.Transitions[0].At)
	require.EqualValues(t, "NotAfter", out.Transitions[0].Bound)
}

// TestConditionOlderThanThePlanIsIgnored checks that a condition that is older than the InstallPlan does not set
// the first stage of that plan.
func TestConditionOlderThanThePlanIsIgnored(t *testing.T) {
	out := reconcile(t, inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 1)), newPlan("p", "Installing", started(4))))
	require.Equal(t, "->N:Proven N>I", stages(out.Result))
}
