// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// stored returns an object as it comes back from where it was stored.
func stored[T any](t require.TestingT, o *T) *T {
	data, err := json.Marshal(o)
	require.NoError(t, err)
	back := new(T)
	require.NoError(t, json.Unmarshal(data, back))
	return back
}

// TestStoredObjectsGiveTheSameResult: what JSON does to objects and histories
// changes no decision.
func TestStoredObjectsGiveTheSameResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		again := in
		again.Subscriptions.Items, again.InstallPlans.Items, again.ClusterServiceVersions.Items = nil, nil, nil
		for _, s := range in.Subscriptions.Items {
			again.Subscriptions.Items = append(again.Subscriptions.Items, stored(t, s))
		}
		for _, p := range in.InstallPlans.Items {
			again.InstallPlans.Items = append(again.InstallPlans.Items, stored(t, p))
		}
		for _, c := range in.ClusterServiceVersions.Items {
			again.ClusterServiceVersions.Items = append(again.ClusterServiceVersions.Items, stored(t, c))
		}
		one, err := subscription.Reconcile(in)
		require.NoError(t, err)
		two, err := subscription.Reconcile(again)
		require.NoError(t, err)
		require.Equal(t, toJSON(t, one), toJSON(t, two))
		for _, h := range one.Histories {
			back, err := subscription.DecodeHistory(h.Encode())
			require.NoError(t, err)
			require.Equal(t, h, back)
		}
	})
}

// toJSON prints an Outcome, its actions as records.
func toJSON(t require.TestingT, out subscription.Outcome) string {
	var records []olmcore.Record
	for _, a := range out.Actions {
		r, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		records = append(records, r)
	}
	data, err := json.Marshal([]any{records, out.Transitions, out.Diagnostics, out.RequeueAfter, out.Resolve, out.Histories})
	require.NoError(t, err)
	return string(data)
}

// TestWhatIsSaidOfCatalogs compares the conditions about catalogs and deprecation
// of any namespace with what they are for.
func TestWhatIsSaidOfCatalogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		if in.Catalogs == nil {
			in.Catalogs = sources()
		}
		for _, s := range in.Subscriptions.Items {
			if rapid.Bool().Draw(t, "any channel") {
				s.Spec.Channel = ""
			}
		}
		var bad []string
		target := false
		for _, c := range in.Catalogs.Sources.Items {
			if c.Status.GRPCConnectionState.LastObservedState != "READY" {
				bad = append(bad, c.Name)
			}
			target = target || c.Name == "cool"
		}
		out, err := subscription.Reconcile(in)
		require.NoError(t, err)
		for _, s := range in.Subscriptions.Items {
			status := statusOf(t, in, out, s.Name)
			c := status.GetCondition(v1alpha1.SubscriptionCatalogSourcesUnhealthy)
			healthy := len(in.Catalogs.Sources.Items) > 0 && target && len(bad) == 0
			require.Equal(t, healthy, c.Status == corev1.ConditionFalse, c)
			require.Equal(t, !healthy, c.Status == corev1.ConditionTrue, c)
			if !healthy && len(in.Catalogs.Sources.Items) > 0 {
				require.True(t, !target && strings.Contains(c.Message, "cool") || slices.ContainsFunc(bad, func(name string) bool { return strings.Contains(c.Message, name) }), c.Message)
			}
			require.Len(t, status.CatalogHealth, len(in.Catalogs.Sources.Items))
			for i, h := range status.CatalogHealth {
				require.Equal(t, in.Catalogs.Sources.Items[i].UID, h.CatalogSourceRef.UID)
				require.Equal(t, !slices.Contains(bad, h.CatalogSourceRef.Name), h.Healthy)
			}
			if s.Status.InstalledCSV == "etcd.v1" && len(in.Catalogs.Entries) > 0 {
				checkRollUp(t, s, status)
			}
		}
		carryOut(t, &in, out)
		for _, a := range reconcileAll(t, in).Actions {
			if u, ok := a.(olmcore.UpdateStatus); ok {
				require.Equal(t, u.Before.(*v1alpha1.Subscription).Status.CatalogHealth, u.After.(*v1alpha1.Subscription).Status.CatalogHealth, "written twice")
			}
		}
	})
}

// checkRollUp: the condition Deprecated joins the three levels, in their order.
func checkRollUp(t require.TestingT, s *v1alpha1.Subscription, status v1alpha1.SubscriptionStatus) {
	var present []string
	for _, level := range []v1alpha1.SubscriptionConditionType{"PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"} {
		if c := status.GetCondition(level); c.Status == "True" {
			present = append(present, c.Message)
		}
	}
	all := status.GetCondition("Deprecated")
	require.Equal(t, len(present) > 0, all.Status == "True")
	require.Equal(t, strings.Join(present, "; "), all.Message)
	if s.Spec.Channel == "" {
		require.NotEqual(t, "True", string(status.GetCondition("ChannelDeprecated").Status))
	}
}

func reconcileAll(t require.TestingT, in subscription.Input) subscription.Outcome {
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	return out
}

// TestAStrangerChangesNothing: another Subscription changes nothing of what the
// others say, unless the namespace is resolved with it.
func TestAStrangerChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		in.Resolution = nil
		with := in
		stranger := vault(rapid.SampledFrom([]string{"0", "bb", "z"}).Draw(t, "name"))
		if rapid.Bool().Draw(t, "refers") {
			follows("q", "vault.v1")(stranger)
		}
		with.Subscriptions.Items = append(slices.Clone(in.Subscriptions.Items), stranger)
		alone, both := reconcileAll(t, in), reconcileAll(t, with)
		for _, s := range in.Subscriptions.Items {
			require.Equal(t, statusOf(t, in, alone, s.Name), statusOf(t, with, both, s.Name))
		}
	})
}

// TestOLMsOwnCases are cases of OLM's own tests that no other table has.
func TestOLMsOwnCases(t *testing.T) {
	const missing = "Missing/ReferencedInstallPlanNotFound"
	unhealthy := withCondition(v1alpha1.SubscriptionCatalogSourcesUnhealthy, "X", "", 1)
	latest := func(change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return newSub("a", append([]func(*v1alpha1.Subscription){follows("p", "etcd.v1"), installed}, change...)...)
	}
	for name, tc := range map[string]struct {
		in     subscription.Input
		want   string // plan conditions
		others int    // conditions besides
		writes bool
	}{
		"an absent plan":               {inputOf(latest(), newCSV("etcd.v1")), missing, 0, true},
		"an absent plan, and no state": {inputOf(newSub("a", func(s *v1alpha1.Subscription) { follows("p", "")(s); s.Status.State = "" })), missing, 0, true},
		"an absent plan, all three conditions there": {inputOf(latest(withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 6), withCondition("InstallPlanFailed", "X", "", 6),
			pending("Installing", 6)), newCSV("etcd.v1")), missing, 0, true},
		"an absent plan that is known to be":       {inputOf(latest(withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 6)), newCSV("etcd.v1")), missing, 0, false},
		"an absent plan beside other conditions":   {inputOf(latest(unhealthy), newCSV("etcd.v1")), missing, 1, true},
		"no reference, no conditions":              {inputOf(newSub("a")), "", 0, false},
		"no reference, conditions of others":       {inputOf(newSub("a", unhealthy)), "", 1, false},
		"no reference, conditions of a plan":       {inputOf(newSub("a", unhealthy, pending("Installing", 6), withCondition("InstallPlanFailed", "X", "", 6))), "", 1, true},
		"a Subscription with nothing but its name": {inputOf(newSub("a", func(s *v1alpha1.Subscription) { s.Spec, s.Labels = &v1alpha1.SubscriptionSpec{}, nil })), "", 0, false},
		"a complete plan after a pending one":      {inputOf(latest(pending("Installing", 6)), newPlan("p", "Complete"), newCSV("etcd.v1")), "", 0, true},
		"a complete plan, nothing said":            {inputOf(latest(), newPlan("p", "Complete"), newCSV("etcd.v1")), "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, tc.in)
			status := statusOf(t, tc.in, out, "a")
			require.Equal(t, tc.want, planConditions(status))
			wants := 0
			if tc.want != "" {
				wants = 1
			}
			require.Len(t, status.Conditions, wants+tc.others)
			require.Equal(t, tc.writes, len(out.Actions) > 0)
			require.Equal(t, tc.writes, status.LastUpdated.Time.Equal(now))
		})
	}
}

// TestBadInput is what no sane writer makes, and what becomes of it.
func TestBadInput(t *testing.T) {
	latest := func(change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return newSub("a", append([]func(*v1alpha1.Subscription){follows("p", "etcd.v1"), installed}, change...)...)
	}
	complete, csv := newPlan("p", "Complete"), newCSV("etcd.v1")
	strange := newPlan("p", "Complete")
	strange.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		in      subscription.Input
		change  func(*subscription.Input)
		reasons string
		writes  bool
	}{
		"an unknown approval is Automatic": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = "Perhaps" }), complete, csv)},
		"no package":                       {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.Package, s.Labels = "", nil }), complete, csv), reasons: "InvalidSpec"},
		"no source":                        {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" }), complete, csv), reasons: "InvalidSpec"},
		"no source's place":                {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.CatalogSourceNamespace = "" }), complete, csv), reasons: "InvalidSpec"},
		"catalogs without UID": {in: inputOf(latest(records(newCatalog("olm", "cool", true)), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)), complete, csv), change: func(in *subscription.Input) {
			in.Catalogs = sources(newCatalog("olm", "cool", true))
			in.Catalogs.Sources.Items[0].UID, in.Subscriptions.Items[0].Status.CatalogHealth[0].CatalogSourceRef.UID = "", ""
		}},
		"two catalogs of one UID": {in: inputOf(latest(records(newCatalog("olm", "cool", true), newCatalog(ns, "cool", true)), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)), complete, csv),
			change: func(in *subscription.Input) {
				in.Catalogs = sources(newCatalog("olm", "cool", true), newCatalog(ns, "cool", true))
			}},
		"a clock that went back": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(9999) }), complete, csv)},
		"observations of another namespace": {in: inputOf(latest(), complete, csv), change: func(in *subscription.Input) {
			in.Histories, in.Observations = historyOf(subscription.StageComplete), []subscription.Observation{{At: second(50).Time, Plan: strange}}
		}, reasons: "ObservationIgnored"},
		"a history of another plan": {in: inputOf(latest(), complete, csv), change: func(in *subscription.Input) {
			h := known(subscription.StageComplete)
			h.PlanUID, h.PlanName = "old", "old"
			in.Histories = map[types.UID]subscription.History{"a-uid": h}
		}},
		"a plan with nil steps": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Status.Plan = []*v1alpha1.Step{nil} }), csv)},
		"a plan of versions that nobody asked for": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, "lib.v1")
		}), csv)},
		"the highest generation":         {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = math.MaxInt }), csv), writes: true},
		"a negative generation":          {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = -1 }), csv)},
		"a Subscription that is deleted": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.DeletionTimestamp, s.Labels = secondp(9), nil }, pending("Installing", 6)), complete, csv), writes: true},
		"a plan that is deleted": {in: inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) {
			p.DeletionTimestamp, p.OwnerReferences = secondp(9), nil
		})), writes: true},
		"owner references without flags": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences[0].Controller, p.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		}), csv)},
		"an empty list of OperatorGroups": {in: inputOf(newSub("a", withCondition("ResolutionFailed", "ErrorPreventedResolution", "found 0 operatorGroups, expected 1", 6))),
			change: func(in *subscription.Input) { in.OperatorGroups.Items = []*operatorsv1.OperatorGroup{} }, reasons: "OperatorGroupCount"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.in)
			}
			out := reconcile(t, tc.in)
			require.Equal(t, tc.reasons, reasons(out.Result))
			require.Equal(t, tc.writes, len(out.Actions) > 0, "%+v", out.Actions)
			carryOut(t, &tc.in, out)
			require.Empty(t, reconcile(t, tc.in).Actions, "written twice")
		})
	}
}

// TestSeqCountsWhatWasTold: every transition has a number of its own.
func TestSeqCountsWhatWasTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatcher()
		for _, v := range walk(t, true) {
			if rapid.Bool().Draw(t, "look") {
				w.look(t, v.at, v.plan)
				require.EqualValues(t, len(w.told), w.in.Histories["a-uid"].Seq)
			}
		}
	})
}
