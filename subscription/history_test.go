// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestHistoryAfterEachObservation compares whole histories: the first entry of a Subscription, and the changes of
// an existing entry. A want of nil means that no entry changed.
func TestHistoryAfterEachObservation(t *testing.T) {
	const (
		none     = subscription.StageNoPlan
		n        = subscription.StageNotYetReconciled
		i        = subscription.StageInstalling
		complete = subscription.StageComplete
		missing  = subscription.StageMissing
	)
	waiting := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
	latest := newSub("a", follows("p", "etcd.v1"), installed)
	running := newPlan("p", "Installing", started(20))
	ended := newPlan("p", "Complete", started(20), done(30))
	saying := newPlan("p", "Installing", started(20), func(p *v1alpha1.InstallPlan) { p.Status.Message = "retry" })
	etcd := newCSV("etcd.v1")
	seen := func(change ...func(*subscription.History)) *subscription.History {
		h := subscription.History{PlanUID: "p-uid", PlanName: "p"}
		for _, f := range change {
			f(&h)
		}
		return &h
	}
	at := func(stage subscription.Stage, second int, seq int64) func(*subscription.History) {
		return func(h *subscription.History) { h.LastStage, h.LastAt, h.Seq = stage, epochPlus(second), seq }
	}
	shows := func(stage subscription.Stage, second int) func(*subscription.History) {
		return func(h *subscription.History) { h.Published, h.PublishedAt = stage, epochPlus(second) }
	}
	version := func(h *subscription.History) { h.LastVersion = "7" }
	finished := func(h *subscription.History) { h.LastInstalledUpdate = epochPlus(30) }
	for name, tc := range map[string]struct {
		before  *subscription.History
		objects []olmcore.Object
		want    *subscription.History
	}{
		"no plan, first observation": {nil, []olmcore.Object{newSub("a")},
			&subscription.History{LastStage: none, LastAt: now, Published: none, PublishedAt: now}},
		"no plan, next observation": {&subscription.History{LastStage: none, LastAt: epochPlus(9), Published: none, PublishedAt: epochPlus(9)}, []olmcore.Object{newSub("a")}, nil},
		"a plan, first observation": {nil, []olmcore.Object{waiting, running}, seen(version, at(i, 60, 0), shows(i, 60))},
		"a finished plan, first observation": {
			nil, []olmcore.Object{latest, ended, etcd}, seen(version, at(complete, 60, 0), shows(complete, 60), finished),
		},
		"a plan enters another stage": {
			seen(at(n, 10, 4), shows(n, 10)), []olmcore.Object{waiting, running}, seen(version, at(i, 60, 5), shows(i, 60)),
		},
		"a plan ends":               {seen(at(i, 20, 5), shows(i, 20)), []olmcore.Object{waiting, ended, etcd}, seen(version, at(complete, 30, 6), shows(complete, 60), finished)},
		"a plan stays in its stage": {seen(at(i, 20, 5), shows(i, 20)), []olmcore.Object{waiting, running}, nil},
		"a plan has a new message": {seen(at(i, 20, 5), shows(i, 20)), []olmcore.Object{waiting, saying},
			seen(at(i, 20, 5), shows(i, 20), func(h *subscription.History) { h.LastMessage = 0xda79aab9 /* FNV-1a */ })},
		"a plan is not observed": {seen(at(complete, 30, 6), shows(complete, 30), finished), []olmcore.Object{latest, etcd},
			seen(at(complete, 30, 6), shows(complete, 30), finished, missingSince(now))},
		"the grace period of a missing plan ends": {
			seen(at(complete, 30, 6), shows(complete, 30), finished, missingSince(epochPlus(40))), []olmcore.Object{latest, etcd},
			seen(at(missing, 60, 7), shows(missing, 60), finished, missingSince(epochPlus(40)))},
		"a missing plan is observed again": {seen(at(complete, 30, 6), shows(complete, 30), finished, missingSince(epochPlus(59))),
			[]olmcore.Object{latest, etcd, ended},
			seen(at(complete, 30, 6), shows(complete, 30), finished)},
		"a plan seems to return to an earlier stage": {seen(at(complete, 30, 6), shows(complete, 30)), []olmcore.Object{latest, etcd, running},
			seen(at(complete, 30, 6), shows(complete, 30), func(h *subscription.History) { h.SuspectStage, h.SuspectSince = i, now })},
		"the suspicion was wrong": {seen(at(complete, 30, 6), shows(complete, 30), finished, func(h *subscription.History) { h.SuspectStage, h.SuspectSince = i, now }), []olmcore.Object{latest, etcd, ended},
			seen(at(complete, 30, 6), shows(complete, 30), finished)},
		"a live read confirms the suspicion": {seen(at(complete, 30, 6), shows(complete, 30), func(h *subscription.History) { h.SuspectStage, h.SuspectSince = i, now }), []olmcore.Object{latest, etcd, running},
			seen(version, at(i, 60, 7), shows(i, 60))},
		"another plan": {&subscription.History{Seq: 3, PlanUID: "q-uid", PlanName: "q", LastStage: complete, LastAt: epochPlus(1), LastInstalledUpdate: epochPlus(1), LastVersion: "99", LastObserved: epochPlus(2), LastMessage: 7, Published: complete, PublishedAt: epochPlus(1)},
			[]olmcore.Object{waiting, running}, seen(version, at(i, 60, 6), shows(i, 60))},
		"the reference was cleared": {seen(at(complete, 30, 6), shows(complete, 30), finished, func(h *subscription.History) { h.LastVersion, h.LastMessage, h.LastObserved = "9", 7, epochPlus(31) }), []olmcore.Object{newSub("a")},
			&subscription.History{Seq: 7, LastStage: none, LastAt: now, Published: none, PublishedAt: now}},
	} {
		t.Run(name, func(t *testing.T) {
			in := answered(inputOf(tc.objects...))
			in.Live = strings.Contains(name, "live")
			in.Histories = map[types.UID]subscription.History{}
			if tc.before != nil {
				in.Histories["a-uid"] = *tc.before
			}
			out := reconcile(t, in)
			if tc.want == nil {
				require.Nil(t, out.Histories)
				return
			}
			require.Equal(t, map[types.UID]subscription.History{"a-uid": *tc.want}, out.Histories)
		})
	}
}

// TestSubscriptionWithoutSpecHasNoHistory checks that a Subscription without a spec gets no entry, and not the one
// of the Subscription before it.
func TestSubscriptionWithoutSpecHasNoHistory(t *testing.T) {
	in := answered(inputOf(newSub("a"), newSub("b", func(s *v1alpha1.Subscription) { s.Spec = nil })))
	in.Histories = map[types.UID]subscription.History{}
	require.Equal(t, map[types.UID]subscription.History{
		"a-uid": {LastStage: subscription.StageNoPlan, LastAt: now, Published: subscription.StageNoPlan, PublishedAt: now},
	}, reconcile(t, in).Histories)
}

func TestSeqCountsReportedTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatcher()
		for _, v := range walk(t, true) {
			if rapid.Bool().Draw(t, "look") {
				w.reconcile(t, v.at, v.plan)
				require.EqualValues(t, len(w.reported), w.in.Histories["a-uid"].Seq)
			}
		}
	})
}

func TestHistoryWithUnknownStageIsIgnored(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), newPlan("p", "Installing"))
	in.Histories = map[types.UID]subscription.History{"a-uid": {LastStage: "Dancing", PlanUID: "p-uid"}}
	out := reconcile(t, in)
	require.Equal(t, "HistoryInvalid", reasons(out.Result))
	require.Equal(t, subscription.StageInstalling, out.Histories["a-uid"].LastStage)
}

// missingSince returns a change of a History: its plan has not been observed since then.
func missingSince(since time.Time) func(*subscription.History) {
	return func(h *subscription.History) { h.MissingSince, h.MissingPlan = since, "p-uid" }
}
