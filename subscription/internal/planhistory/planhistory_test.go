// SPDX-License-Identifier: Apache-2.0

package planhistory_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
)

var now = second(100)

func second(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }

// newPlan returns version v of the InstallPlan p in a phase.
func newPlan(phase v1alpha1.InstallPlanPhase, v int) *v1alpha1.InstallPlan {
	return &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "p", UID: "p-uid", ResourceVersion: strconv.Itoa(v), Generation: 1,
			CreationTimestamp: metav1.NewTime(second(1)),
		},
		Spec:   v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true},
		Status: v1alpha1.InstallPlanStatus{Phase: phase},
	}
}

// ended adds the Installed condition that a controller writes with Complete and Failed.
func ended(p *v1alpha1.InstallPlan, at int) *v1alpha1.InstallPlan {
	c := v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionTrue}
	if p.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed
	}
	c.LastUpdateTime = new(metav1.NewTime(second(at)))
	p.Status.StartTime = new(metav1.NewTime(second(2)))
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{c}
	return p
}

func withUID(p *v1alpha1.InstallPlan, uid types.UID) *v1alpha1.InstallPlan {
	p.UID = uid
	return p
}

func deleting(p *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	p.DeletionTimestamp = new(metav1.NewTime(second(50)))
	return p
}

// newSub returns a Subscription that references p and was last written 60 seconds ago.
func newSub(conditions ...v1alpha1.SubscriptionCondition) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "etcd-uid"},
		Status: v1alpha1.SubscriptionStatus{
			InstallPlanRef: &corev1.ObjectReference{Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: "p", UID: "p-uid"},
			CurrentCSV:     "etcd.v1", State: v1alpha1.SubscriptionStateUpgradePending,
			LastUpdated: metav1.NewTime(second(40)), Conditions: conditions,
		},
	}
}

func shows(t v1alpha1.SubscriptionConditionType, reason string, at int) v1alpha1.SubscriptionCondition {
	return v1alpha1.SubscriptionCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: new(metav1.NewTime(second(at))),
	}
}

// world is the arguments of Recall and Observe.
type world struct {
	sub     *v1alpha1.Subscription
	plan    *v1alpha1.InstallPlan // in the list; nil if it is not visible
	window  []planhistory.Observation
	history *planhistory.History // nil: the caller keeps none
	live    bool
}

func (w *world) snapshot() *planhistory.Snapshot {
	s := &planhistory.Snapshot{
		Now: now, Namespace: "ops", Plans: map[string]*v1alpha1.InstallPlan{}, Window: planhistory.NewWindow("ops", w.window),
		Grace: 10 * time.Second, Live: w.live, KeepsHistories: w.history != nil,
	}
	if w.plan != nil {
		s.Plans[w.plan.Name] = w.plan
	}
	return s
}

func (w *world) recall(s *planhistory.Snapshot) (planhistory.Past, olmcore.Result) {
	if w.history == nil {
		return s.Recall(w.sub, planhistory.History{})
	}
	return s.Recall(w.sub, *w.history)
}

// describe returns the stage and what else is true, the time until the next call, and the reasons of the Diagnostics.
func describe(seen *planhistory.Seen) string {
	words := []string{string(seen.Stage)}
	for word, is := range map[string]bool{"Invalid": seen.Invalid, "Replaced": seen.Replaced} {
		if is {
			words = append(words, word)
		}
	}
	switch {
	case seen.Proven:
		words = append(words, "Proven")
	case seen.Lasting:
		words = append(words, "Lasting")
	}
	if seen.Result.RequeueAfter > 0 {
		words = append(words, seen.Result.RequeueAfter.String())
	}
	for _, d := range seen.Result.Diagnostics {
		words = append(words, d.Reason)
	}
	return strings.Join(words, " ")
}

// TestObservedStages checks which stage is observed, and when a stale cache is suspected.
func TestObservedStages(t *testing.T) {
	const installing, complete, failed = "Installing", "Complete", "Failed"
	other := newSub()
	other.Status.InstallPlanRef.Kind = "Job"
	unreferenced := newSub()
	unreferenced.Status.InstallPlanRef = nil
	recent := newSub()
	recent.Status.LastUpdated = metav1.NewTime(second(95))
	known := planhistory.History{
		PlanUID: "p-uid", PlanName: "p", LastStage: planhistory.StageComplete, LastVersion: "9", LastAt: second(30),
		LastInstalledUpdate: second(30),
	}
	suspect := known
	suspect.SuspectStage, suspect.SuspectSince = planhistory.StageInstalling, second(80)
	missing := func(plan types.UID, since int) *planhistory.History {
		return &planhistory.History{MissingPlan: string(plan), MissingSince: second(since)}
	}
	const missingForNow = "Unverified 1s InstallPlanUnverified"
	for name, c := range map[string]struct {
		in   world
		want string
	}{
		"no reference":               {world{sub: unreferenced, plan: newPlan(installing, 1)}, "NoPlan"},
		"a reference to a Job":       {world{sub: other, plan: newPlan(installing, 1)}, "NoPlan Invalid RefInvalid"},
		"a visible plan":             {world{sub: newSub(), plan: newPlan(installing, 1)}, "Installing"},
		"a plan without a phase":     {world{sub: newSub(), plan: newPlan("", 1)}, "NotYetReconciled"},
		"an unknown phase":           {world{sub: newSub(), plan: newPlan("Melting", 1)}, "Unknown 5m0s UnknownPhase"},
		"another plan of the name":   {world{sub: newSub(), plan: withUID(newPlan(installing, 1), "x")}, "Installing Replaced RefUIDMismatch"},
		"another one, being deleted": {world{sub: newSub(), plan: deleting(withUID(newPlan(installing, 1), "x"))}, "Missing Lasting"},
		"missing for a long time":    {world{sub: newSub()}, "Missing Lasting"},
		"missing for a short time":   {world{sub: recent}, "Unverified 1s InstallPlanUnverified"},
		"missing in a direct read":   {world{sub: recent, live: true}, "Missing Proven"},
		"missing, deletion observed": {
			world{sub: recent, window: []planhistory.Observation{{At: second(99), Plan: newPlan(installing, 1), Deleted: true}}},
			"Missing Proven",
		},
		"missing, first noticed now": {world{sub: newSub(), history: &planhistory.History{}}, missingForNow},
		"missing since before grace": {world{sub: newSub(), history: missing("p-uid", 90)}, "Missing Lasting"},
		"another plan was missing":   {world{sub: newSub(), history: missing("x", 90)}, missingForNow},
		"missing since the future":   {world{sub: newSub(), history: missing("p-uid", 200)}, missingForNow},
		"a later version in the watch": {
			world{sub: newSub(), plan: newPlan(installing, 1), window: observations(newPlan(installing, 1), newPlan(complete, 2))},
			"Complete",
		},
		"a list behind the watch": {
			world{sub: newSub(), plan: newPlan(installing, 1), window: observations(newPlan(complete, 2))}, "Complete 10s",
		},
		"a list ahead of the watch": {
			world{sub: newSub(), plan: newPlan(complete, 3), window: observations(newPlan(installing, 2))}, "Complete",
		},
		"an older version than known": {world{sub: newSub(), plan: newPlan(installing, 8), history: &known}, "Unverified 1s SuspectObservation"},
		"a newer version than known":  {world{sub: newSub(), plan: newPlan(failed, 10), history: &known}, "Failed"},
		"the known version":           {world{sub: newSub(), plan: ended(newPlan(complete, 9), 30), history: &known}, "Complete"},
		"suspect for a long time":     {world{sub: newSub(), plan: newPlan(installing, 8), history: &suspect}, "Installing"},
		"suspect in a direct read":    {world{sub: newSub(), plan: newPlan(installing, 8), history: &known, live: true}, "Installing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.in.snapshot()
			past, _ := c.in.recall(s)
			seen := s.Observe(&past, c.in.sub.Status.InstallPlanRef)
			require.Equal(t, c.want, describe(&seen))
		})
	}
}

// observations returns versions that were observed now, in this order.
func observations(versions ...*v1alpha1.InstallPlan) []planhistory.Observation {
	var list []planhistory.Observation
	for _, p := range versions {
		list = append(list, planhistory.Observation{At: now, Plan: p})
	}
	return list
}

// lines returns a line for each transition and each gap.
func lines(r olmcore.Result) string {
	var list []string
	for _, t := range r.Transitions {
		line := fmt.Sprintf("%s > %s %s", t.From, t.To, t.Certainty)
		if t.OutOfBand {
			line += " out of band"
		}
		list = append(list, line)
	}
	for _, d := range r.Diagnostics {
		kind, _, _ := strings.Cut(d.Message, ":")
		list = append(list, kind)
	}
	return strings.Join(list, "; ")
}

// TestReportedTransitions checks which transitions are reported, and which stage the conditions should show.
func TestReportedTransitions(t *testing.T) {
	const installing, complete, failed = "Installing", "Complete", "Failed"
	nothing := &planhistory.History{}
	knownAs := func(stage planhistory.Stage) *planhistory.History {
		return &planhistory.History{PlanUID: "p-uid", PlanName: "p", LastStage: stage, LastVersion: "5", LastAt: second(3), Seq: 7}
	}
	ownWrite := knownAs(planhistory.StageInstalling)
	ownWrite.Published, ownWrite.PublishedAt = planhistory.StageInstalling, now
	pending := shows(v1alpha1.SubscriptionInstallPlanPending, "Installing", 5)
	waiting := shows(v1alpha1.SubscriptionInstallPlanPending, "RequiresApproval", 5)
	unapproved := newPlan("RequiresApproval", 6)
	unapproved.Spec.Approval, unapproved.Spec.Approved = v1alpha1.ApprovalManual, false
	for name, c := range map[string]struct {
		in    world
		shown planhistory.Stage
		want  string
	}{
		"a new plan": {
			world{sub: newSub(), plan: newPlan("", 6)}, planhistory.StageNotYetReconciled, "NoPlan > NotYetReconciled Observed",
		},
		"a new plan that runs": {
			world{sub: newSub(), plan: newPlan(installing, 6)}, planhistory.StageInstalling,
			"NoPlan > NotYetReconciled Proven; NotYetReconciled > Installing Observed",
		},
		"a new plan that waits": {
			world{sub: newSub(), plan: unapproved}, planhistory.StageRequiresApproval,
			"NoPlan > NotYetReconciled Proven; NotYetReconciled > RequiresApproval Observed",
		},
		"a new plan that is complete": {
			world{sub: newSub(), plan: ended(newPlan(complete, 6), 9)}, planhistory.StageComplete,
			"NoPlan > NotYetReconciled Proven; NotYetReconciled > Installing Proven; Installing > Complete Observed",
		},
		"a complete plan without a trace": {
			world{sub: newSub(), plan: newPlan(complete, 6)}, planhistory.StageComplete,
			"NoPlan > NotYetReconciled Proven; NotYetReconciled > Complete Observed out of band; NoExecutionEvidence",
		},
		"what the status shows": {world{sub: newSub(pending), plan: newPlan(installing, 6)}, planhistory.StageInstalling, ""},
		"it failed since the status": {
			world{sub: newSub(pending), plan: ended(newPlan(failed, 6), 9)}, planhistory.StageFailed, "Installing > Failed Observed",
		},
		"what is remembered": {
			world{sub: newSub(pending), plan: newPlan(installing, 5), history: knownAs(planhistory.StageInstalling)},
			planhistory.StageInstalling, "",
		},
		"it was complete before": {
			world{sub: newSub(pending), plan: newPlan(installing, 6), history: knownAs(planhistory.StageComplete), live: true},
			planhistory.StageInstalling, "Complete > Installing Observed out of band; OutOfBandEdit",
		},
		"it failed and is retried": {
			world{sub: newSub(pending), plan: ended(newPlan(installing, 6), 9), history: knownAs(planhistory.StageInstalling)},
			planhistory.StageInstalling, "Installing > Failed Proven; Failed > Installing Observed; AtLeastOnce",
		},
		"each observed version": {
			world{
				sub: newSub(pending), plan: ended(newPlan(complete, 8), 12), history: knownAs(planhistory.StageInstalling),
				window: observations(ended(newPlan(failed, 6), 9), ended(newPlan(installing, 7), 9), ended(newPlan(complete, 8), 12)),
			},
			planhistory.StageComplete, "Installing > Failed Observed; Failed > Installing Observed; Installing > Complete Observed",
		},
		"it was deleted": {
			world{sub: newSub(pending), history: knownAs(planhistory.StageInstalling), live: true}, planhistory.StageMissing,
			"Installing > Missing Observed; DeletedBeforeObserved",
		},
		"it was deleted after its end": {
			world{sub: newSub(), history: knownAs(planhistory.StageComplete), live: true}, planhistory.StageMissing,
			"Complete > Missing Observed",
		},
		"the write is not visible yet": {
			world{sub: newSub(waiting), plan: newPlan(installing, 5), history: ownWrite}, planhistory.StageUnverified, "",
		},
		"an invalid history": {
			world{sub: newSub(), plan: newPlan("", 6), history: &planhistory.History{LastStage: "Melting"}},
			planhistory.StageNotYetReconciled, "NoPlan > NotYetReconciled Observed",
		},
		"a first history": {
			world{sub: newSub(), plan: newPlan("", 6), history: nothing}, planhistory.StageNotYetReconciled, "NoPlan > NotYetReconciled Observed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.in.snapshot()
			past, _ := c.in.recall(s)
			seen := s.Observe(&past, c.in.sub.Status.InstallPlanRef)
			r := s.Report(&past, &seen, planhistory.Decision{Reference: c.in.sub.Status.InstallPlanRef})
			require.Equal(t, c.want, lines(r.Result))
			require.Equal(t, c.shown, r.Shown)
		})
	}
}

// drawVersions draws versions of one InstallPlan, oldest first. Most of them follow the graph.
func drawVersions(t *rapid.T) []*v1alpha1.InstallPlan {
	phases := []v1alpha1.InstallPlanPhase{"", "Planning", "RequiresApproval", "Installing", "Complete", "Failed", "Melting"}
	phase, at := v1alpha1.InstallPlanPhase(""), 2
	isUnordered := rapid.IntRange(0, 5).Draw(t, "unordered") == 0 // the resourceVersions are not known
	var list []*v1alpha1.InstallPlan
	for v := range rapid.IntRange(1, 6).Draw(t, "versions") {
		if v > 0 {
			phase = rapid.SampledFrom(phases).Draw(t, "phase")
		}
		at += rapid.IntRange(0, 9).Draw(t, "seconds")
		p := newPlan(phase, v+1)
		if rapid.Bool().Draw(t, "recorded") {
			p = ended(p, at)
		}
		if rapid.Bool().Draw(t, "manual") {
			p.Spec.Approval = v1alpha1.ApprovalManual
		}
		if isUnordered {
			p.ResourceVersion = ""
		}
		list = append(list, p)
	}
	return list
}

// TestReportedTransitionsAreContinuous checks for any versions of an InstallPlan that the transitions lead from the
// known stage to the observed stage without a gap, that the next call reports nothing new, and that the arguments
// are not modified.
func TestReportedTransitionsAreContinuous(t *testing.T) {
	chains := 0
	rapid.Check(t, func(t *rapid.T) {
		versions := drawVersions(t)
		w := world{sub: newSub(), history: &planhistory.History{}}
		if rapid.IntRange(0, 4).Draw(t, "visible") > 0 {
			w.plan = versions[len(versions)-1]
		}
		from := planhistory.StageNoPlan
		if rapid.Bool().Draw(t, "known") {
			from = planhistory.StageOf(versions[0])
			*w.history = planhistory.History{
				PlanUID: "p-uid", PlanName: "p", LastStage: from, LastAt: second(1), LastVersion: versions[0].ResourceVersion,
			}
		}
		for _, p := range versions {
			if rapid.Bool().Draw(t, "observed") {
				w.window = append(w.window, observations(p)...)
			}
		}
		w.live = rapid.Bool().Draw(t, "live")

		s := w.snapshot()
		past, _ := w.recall(s)
		before := toJSON(t, w, past)
		seen := s.Observe(&past, w.sub.Status.InstallPlanRef)
		r := s.Report(&past, &seen, planhistory.Decision{Reference: w.sub.Status.InstallPlanRef})
		require.Empty(t, cmp.Diff(before, toJSON(t, w, past)))

		end := from
		for _, transition := range r.Result.Transitions {
			require.Equal(t, string(end), transition.From)
			end = planhistory.Stage(transition.To)
			chains++
		}
		if seen.Stage == planhistory.StageUnverified {
			require.Empty(t, r.Result.Transitions)
			return
		}
		require.Equal(t, seen.Stage, end)
		require.Equal(t, seen.Stage, r.History.LastStage)

		w.history = new(stored(t, r.History))
		require.Equal(t, r.History, *w.history)
		past, _ = w.recall(s)
		seen = s.Observe(&past, w.sub.Status.InstallPlanRef)
		r = s.Report(&past, &seen, planhistory.Decision{Reference: w.sub.Status.InstallPlanRef})
		require.Empty(t, r.Result.Transitions)
	})
	require.NotZero(t, chains)
}

// stored writes a History as JSON and reads it again.
func stored(t require.TestingT, h planhistory.History) planhistory.History {
	var read planhistory.History
	require.NoError(t, json.Unmarshal([]byte(toJSON(t, h)), &read))
	return read
}

func toJSON(t require.TestingT, values ...any) string {
	var b strings.Builder
	for _, v := range values {
		if w, ok := v.(world); ok {
			v = []any{w.sub, w.plan, w.window, w.history}
		}
		text, err := json.Marshal(v)
		require.NoError(t, err)
		b.Write(text)
	}
	return b.String()
}
