// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// version is a version of a plan, and the second since which it exists.
type version struct {
	at    int
	stage string
	plan  *v1alpha1.InstallPlan
}

// walk draws the versions of a plan that a controller writes, from its creation on.
func walk(t *rapid.T, retries bool) []version {
	at := 2
	later := func() int { at += rapid.IntRange(0, 5).Draw(t, "seconds"); return at }
	p := newPlan("p", "")
	isManual := rapid.Bool().Draw(t, "manual")
	if isManual {
		manual(1)(p)
	}
	all := []version{{at, "NotYetReconciled", p}}
	add := func(stage string, change ...func(*v1alpha1.InstallPlan)) {
		p = p.DeepCopy()
		for _, f := range change {
			f(p)
		}
		all = append(all, version{at, stage, p})
	}
	phase := func(phase v1alpha1.InstallPlanPhase) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Status.Phase = phase }
	}
	later()
	if isManual {
		add("RequiresApproval", phase("RequiresApproval"))
		later()
		add("RequiresApproval", func(p *v1alpha1.InstallPlan) { p.Spec.Approved, p.Generation = true, 2 })
		later()
	}
	add("Installing", phase("Installing"))
	later()
	add("Installing", started(at))
	loops := 0
	if retries {
		loops = rapid.IntRange(0, 3).Draw(t, "retries")
	}
	for range loops {
		at++ // a retry takes more than nothing, else its times are those of the last
		later()
		add("Failed", phase("Failed"), failed(at))
		later()
		add("Installing", phase("Installing"))
	}
	at++
	switch rapid.IntRange(0, 2).Draw(t, "end") {
	case 0:
		add("Complete", phase("Complete"), done(at))
	case 1:
		add("Failed", phase("Failed"), failed(at))
	}
	return all
}

// stagesOf returns the stages of a walk, without repetitions.
func stagesOf(all []version) []string {
	var list []string
	for _, v := range all {
		list = append(list, v.stage)
	}
	return slices.Compact(list)
}

// watcher reconciles a Subscription several times, with a history, and collects the reports about its plan.
type watcher struct {
	in       subscription.Input
	reported []string
	gaps     string
}

// newWatcher returns a watcher of a namespace. Without objects, it contains a Subscription that waits for its plan.
func newWatcher(objects ...olmcore.Object) *watcher {
	if len(objects) == 0 {
		objects = append(objects, newSub("a", follows("p", "etcd.v1")))
	}
	w := &watcher{in: inputOf(objects...)}
	w.in.Histories = map[types.UID]subscription.History{}
	return w
}

// report reconciles at a second, and returns the transitions, the gaps, and the conditions about the plan.
func (w *watcher) report(t require.TestingT, at int, plan *v1alpha1.InstallPlan) string {
	out := w.reconcile(t, at, plan)
	return stages(out.Result) + "|" + gaps(out.Result) + "|" + planConditions(w.status())
}

func (w *watcher) status() v1alpha1.SubscriptionStatus { return w.in.Subscriptions.Items[0].Status }

func (w *watcher) reconcile(t require.TestingT, at int, plan *v1alpha1.InstallPlan) subscription.Outcome {
	w.in.Now, w.in.InstallPlans.Items = second(at).Time, nil
	if plan != nil {
		w.in.InstallPlans.Items = []*v1alpha1.InstallPlan{plan}
	}
	out := reconcile(t, w.in)
	checkSafety(t, w.in)
	carryOut(&w.in, out)
	for _, tr := range out.Transitions {
		if tr.Type == subscription.TransitionInstallPlan {
			w.reported = append(w.reported, tr.To)
		}
	}
	w.gaps += gaps(out.Result)
	return out
}

// TestEveryStageOfAPlanIsReported checks that all stages of an InstallPlan are reported, however seldom it is
// observed, if it was not retried after a failure.
func TestEveryStageOfAPlanIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := walk(t, false)
		w := newWatcher()
		for i, v := range all {
			if i == len(all)-1 || rapid.Bool().Draw(t, "look") {
				w.reconcile(t, v.at+rapid.IntRange(0, 1).Draw(t, "delay"), v.plan)
			}
		}
		require.Equal(t, stagesOf(all), w.reported)
		require.Empty(t, w.gaps)
	})
}

// TestOnlyStagesThatHappenedAreReported checks that reported stages happened in that order, and that every observed
// stage is reported. Retries between two observations may stay unknown.
func TestOnlyStagesThatHappenedAreReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := walk(t, true)
		w := newWatcher()
		var seen []string
		for i, v := range all {
			if i == len(all)-1 || rapid.Bool().Draw(t, "look") {
				w.reconcile(t, v.at, v.plan)
				seen = append(seen, v.stage)
			}
		}
		require.True(t, isSubsequence(w.reported, stagesOf(all)), "reported %v, happened %v", w.reported, stagesOf(all))
		require.True(t, isSubsequence(slices.Compact(seen), w.reported), "observed %v, reported %v", seen, w.reported)
		require.Equal(t, stagesOf(all)[len(stagesOf(all))-1], w.reported[len(w.reported)-1])
	})
}

// TestWatchEventsReportEveryRetry checks that retries are reported, too, if every version of the InstallPlan is
// passed as an Observation.
func TestWatchEventsReportEveryRetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := walk(t, true)
		w := newWatcher()
		if rapid.Bool().Draw(t, "forgetful") {
			w.in.Histories = nil
		}
		for i, v := range all {
			w.in.Observations = append(w.in.Observations, subscription.Observation{
				At: second(v.at).Time.Add(time.Duration(i) * time.Millisecond), Plan: v.plan,
			})
			if i == len(all)-1 || w.in.Histories != nil && rapid.Bool().Draw(t, "look") {
				w.reconcile(t, v.at+1, v.plan)
			}
		}
		if w.in.Histories == nil && stagesOf(all)[len(stagesOf(all))-1] == "Complete" {
			return // without memory a completion whose CSV is not there yet is told with the state that follows
		}
		require.Equal(t, stagesOf(all), w.reported)
		require.Empty(t, w.gaps)
	})
}

func isSubsequence(part, whole []string) bool {
	for _, s := range whole {
		if len(part) > 0 && part[0] == s {
			part = part[1:]
		}
	}
	return len(part) == 0
}
