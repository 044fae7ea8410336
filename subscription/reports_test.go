// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// conditionSteps prints the transitions of conditions: target, type, from, to, reason and message.
func conditionSteps(r olmcore.Result) string {
	var all []string
	for _, t := range r.Transitions {
		if t.Type == subscription.TransitionInstallPlan || t.Type == subscription.TransitionState {
			continue
		}
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s %s>%s %s: %s", t.Target.Name, t.Type, t.From, t.To, t.Reason, t.Message), " : "))
	}
	return strings.Join(all, " | ")
}

// TestChangedConditionsAreReportedOnce checks that each condition that a status write changes is reported as one
// Transition. A failed resolution also has one Diagnostic for the namespace.
func TestChangedConditionsAreReportedOnce(t *testing.T) {
	unsolvable := &olmcore.ResolutionFailure{Unsatisfiable: true, Message: "no"}
	failing := func(in *subscription.Input) {
		*in = answered(*in)
		in.Resolution.Resolution.Failure = unsolvable
	}
	for name, tc := range map[string]struct {
		subs   []*v1alpha1.Subscription
		change func(*subscription.Input)
		want   string
		said   string // reasons of diagnostics that concern the namespace
	}{
		"a resolution fails": {[]*v1alpha1.Subscription{newSub("a"), newSub("b")}, failing,
			"a ResolutionFailed >True ConstraintsNotSatisfiable: constraints not satisfiable: no | b ResolutionFailed >True ConstraintsNotSatisfiable: constraints not satisfiable: no", "ResolutionFailed"},
		"a resolution fails for another reason": {[]*v1alpha1.Subscription{newSub("a", withCondition("ResolutionFailed", "ErrorPreventedResolution", "x", 6))}, failing,
			"a ResolutionFailed True>True ConstraintsNotSatisfiable: constraints not satisfiable: no", "ResolutionFailed"},
		"a resolution succeeds": {[]*v1alpha1.Subscription{newSub("a", withCondition("ResolutionFailed", "ErrorPreventedResolution", "x", 6))},
			func(in *subscription.Input) { *in = answered(*in) }, "a ResolutionFailed True>", ""},
		"too many OperatorGroups": {[]*v1alpha1.Subscription{newSub("a")}, func(in *subscription.Input) { in.OperatorGroups.Items = nil },
			"a ResolutionFailed >True OperatorGroupCount: found 0 operatorGroups, expected 1", "OperatorGroupCount"},
		"a bundle cannot be unpacked": {[]*v1alpha1.Subscription{newSub("a", withCondition("BundleUnpacking", "UnpackingInProgress", "", 6))}, func(in *subscription.Input) {
			*in = answered(*in)
			in.Resolution.PlanError = "denied"
		}, "a BundleUnpacking True> | a BundleUnpackFailed >True EnsureInstallPlanFailed: error ensuring InstallPlan: denied", ""},
		"a catalog is found healthy": {[]*v1alpha1.Subscription{newSub("a")}, func(in *subscription.Input) { in.Catalogs = sources(newCatalog("olm", "cool", true)) },
			"a CatalogSourcesUnhealthy >False AllCatalogSourcesHealthy: " + allHealthy, ""},
		"a bundle is deprecated": {[]*v1alpha1.Subscription{newSub("a", func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" },
			records(newCatalog("olm", "cool", true)), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy))}, func(in *subscription.Input) {
			in.Catalogs = sources(newCatalog("olm", "cool", true))
			in.Catalogs.Entries = []subscription.Entry{entryOf("etcd.v1", nil, nil, new("old"))}
		}, "a BundleDeprecated >True : olm.bundle/etcd.v1: old | a Deprecated >True : olm.bundle/etcd.v1: old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf()
			in.Subscriptions.Items = tc.subs
			tc.change(&in)
			out := reconcile(t, in)
			require.Equal(t, tc.want, conditionSteps(out.Result))
			var said []string
			for _, d := range ofTheNamespace(t, out.Result) {
				said = append(said, d.Reason)
			}
			require.Equal(t, tc.said, strings.Join(said, " "))
			for _, tr := range out.Transitions {
				require.Equal(t, metav1.NewTime(now), tr.At)
				require.Equal(t, tr.To, string(tr.Status))
			}
			carryOut(&in, out)
			out = reconcile(t, in)
			require.Empty(t, out.Transitions, "reported again")
		})
	}
}

// TestSubscriptionReportsItsOwnFailure checks which failure a Subscription reports if the resolution of the
// namespace failed, and that of the Subscription itself.
func TestSubscriptionReportsItsOwnFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		whole, own olmcore.ResolutionFailure
		want       string // what a and b say
		requeue    time.Duration
	}{
		"both contradict": {olmcore.ResolutionFailure{Unsatisfiable: true, Message: "all"}, olmcore.ResolutionFailure{Unsatisfiable: true, Message: "own"},
			"constraints not satisfiable: own, constraints not satisfiable: all", 0},
		"its own failure is transient": {olmcore.ResolutionFailure{Unsatisfiable: true, Message: "all"}, olmcore.ResolutionFailure{Transient: true, Message: "own"},
			", constraints not satisfiable: all", time.Second},
		"each has its own": {olmcore.ResolutionFailure{Unsatisfiable: true, Message: "all"}, olmcore.ResolutionFailure{Unsatisfiable: true, Message: "own"},
			"constraints not satisfiable: own, constraints not satisfiable: own", 0},
		"the failure of the namespace is transient": {olmcore.ResolutionFailure{Transient: true, Message: "all"}, olmcore.ResolutionFailure{Unsatisfiable: true, Message: "own"},
			"constraints not satisfiable: own, ", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := answered(inputOf(newSub("a"), newSub("b")))
			in.Resolution.At = now
			in.Resolution.Resolution.Failure, in.Resolution.Resolution.Decisions[0].Failure = &tc.whole, &tc.own
			if name == "each has its own" {
				in.Resolution.Resolution.Decisions[1].Failure = &tc.own
			}
			out := reconcile(t, in)
			var got []string
			for _, s := range in.Subscriptions.Items {
				status := statusOf(t, in, out, s.Name)
				got = append(got, status.GetCondition(v1alpha1.SubscriptionResolutionFailed).Message)
			}
			require.Equal(t, tc.want, strings.Join(got, ", "))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			require.Equal(t, strings.Contains(tc.want, "all"), strings.Contains(reasons(out.Result), "ResolutionFailed"), "what is written to none is not announced")
		})
	}
}

// TestCatalogChangeReportsNoPlanStage checks that a status write about catalogs reports no stage of the InstallPlan
// if the caller keeps no histories. It is unknown then whether a retry of the plan was reported.
func TestCatalogChangeReportsNoPlanStage(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), withCondition(v1alpha1.SubscriptionInstallPlanPending, "Installing", "step broke", 6))
	in := inputOf(sub, newPlan("p", "Installing", started(3), failed(9)))
	in.Catalogs = sources(newCatalog("olm", "cool", true))
	out := reconcile(t, in)
	require.Len(t, out.Actions, 1)
	require.Empty(t, stages(out.Result))
	require.Equal(t, "CatalogsChanged", strings.Fields(reasons(out.Result))[0])
}

// TestMessagesOfAPlanAreReportedOnce checks that status.message of an InstallPlan is reported once. It contains for
// example the error of a step that is retried, and is in no condition.
func TestMessagesOfAPlanAreReportedOnce(t *testing.T) {
	saying := func(text string) *v1alpha1.InstallPlan {
		return newPlan("p", "Installing", started(3), func(p *v1alpha1.InstallPlan) { p.Status.Message = text })
	}
	in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), saying(""))
	in.Histories = historyOf(subscription.StageInstalling)
	for i, step := range []struct{ text, want string }{
		{"", ""}, {"retry: no such kind", "InstallPlan p: retry: no such kind"}, {"retry: no such kind", ""}, {"retry: denied", "InstallPlan p: retry: denied"}, {"", ""}, {"retry: denied", "InstallPlan p: retry: denied"},
	} {
		in.InstallPlans.Items = []*v1alpha1.InstallPlan{saying(step.text)}
		out := reconcile(t, in)
		require.Empty(t, out.Actions, "no condition shows it")
		got := ""
		for _, d := range out.Diagnostics {
			require.Equal(t, subscription.ReasonPlanMessage, d.Reason)
			got += d.Message
		}
		require.Equal(t, step.want, got, i)
		carryOut(&in, out)
	}
	whole := healthOf(t, in)
	require.Equal(t, "retry: denied", whole.Message)

	fresh := inputOf(newSub("a", follows("p", "etcd.v1")), saying("retry: denied"))
	fresh.Histories = map[types.UID]subscription.History{}
	out := reconcile(t, fresh)
	require.Equal(t, "retry: denied", out.Transitions[len(out.Transitions)-1].Message)
	require.Empty(t, reasons(out.Result), "the transition says so")
	carryOut(&fresh, out)
	require.Empty(t, reasons(reconcile(t, fresh).Result), "and it is not told again")
}
