// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func invalidCatalog(namespace, name string) *v1alpha1.CatalogSource {
	c := newCatalog(namespace, name, true)
	c.Status.Reason = v1alpha1.CatalogSourceSpecInvalidError
	return c
}

func sources(list ...*v1alpha1.CatalogSource) *subscription.Catalogs {
	return &subscription.Catalogs{Sources: olmcore.Found(list...)}
}

// records makes a Subscription have recorded the health of catalogs at second 3.
func records(list ...*v1alpha1.CatalogSource) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		for _, c := range list {
			s.Status.CatalogHealth = append(s.Status.CatalogHealth, v1alpha1.SubscriptionCatalogHealth{
				CatalogSourceRef: &corev1.ObjectReference{Kind: "CatalogSource", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
				Healthy:          c.Status.GRPCConnectionState.LastObservedState == "READY", LastUpdated: secondp(3),
			})
		}
	}
}

func saysHealth(status corev1.ConditionStatus, reason, message string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		c := condition(v1alpha1.SubscriptionCatalogSourcesUnhealthy, reason, message, 3)
		c.Status = status
		s.Status.Conditions = append(s.Status.Conditions, c)
	}
}

const allHealthy = "all available catalogsources are healthy"

// TestCatalogHealthCondition checks the condition and the recorded health for the cases of OLM's UpdateHealth and
// catalogHealth tests, and for cases that OLM gets wrong.
func TestCatalogHealthCondition(t *testing.T) {
	cool, sick := newCatalog("olm", "cool", true), newCatalog("olm", "cool", false)
	other, ill := newCatalog("olm", "other", true), newCatalog("olm", "other", false)
	mine := newCatalog(ns, "mine", true)
	healthy, unhealthy := saysHealth("False", "AllCatalogSourcesHealthy", allHealthy), saysHealth("True", "UnhealthyCatalogSourceFound", "targeted catalogsource olm/cool unhealthy")
	for name, tc := range map[string]struct {
		sub      *v1alpha1.Subscription
		catalogs *subscription.Catalogs
		want     string // status/reason: message, empty when nothing is written
		health   string // recorded after it: namespace/name=healthy@second
	}{
		"without catalogs nothing can be resolved": {newSub("a"), sources(),
			"True/NoCatalogSourcesFound: dependency resolution requires at least one catalogsource", ""},
		"without catalogs the condition is written once": {newSub("a", saysHealth("True", "NoCatalogSourcesFound", "dependency resolution requires at least one catalogsource")), sources(), "", ""},
		"the last catalog was deleted": {newSub("a", records(cool), healthy), sources(),
			"True/NoCatalogSourcesFound: dependency resolution requires at least one catalogsource", ""},
		"the targeted catalog is unhealthy": {newSub("a", records(sick)), sources(sick),
			"True/UnhealthyCatalogSourceFound: targeted catalogsource olm/cool unhealthy", "olm/cool=false@3"},
		"the targeted catalog is still unhealthy": {newSub("a", records(sick), unhealthy), sources(sick), "", "olm/cool=false@3"},
		"all catalogs are still healthy": {
			newSub("a", records(cool, other), healthy), sources(cool, other), "", "olm/cool=true@3 olm/other=true@3",
		},
		"recorded in another order": {
			newSub("a", records(other, cool), healthy), sources(cool, other), "", "olm/other=true@3 olm/cool=true@3",
		},
		"the targeted catalog becomes healthy": {
			newSub("a", records(sick), unhealthy), sources(cool), "False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@60",
		},
		"the reason that OLM writes first":                 {newSub("a", records(cool), saysHealth("False", "CatalogSourcesUpdated", allHealthy)), sources(cool), "False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@3"},
		"the targeted catalog was replaced by another one": {newSub("a", records(cool), healthy), sources(other), "True/UnhealthyCatalogSourceFound: targeted catalogsource olm/cool missing", "olm/other=true@60"},
		"a global catalog appears": {newSub("a", records(mine), saysHealth("True", "UnhealthyCatalogSourceFound", "targeted catalogsource olm/cool missing")), sources(mine, cool),
			"False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@60 ops/mine=true@3"},
		"another target is chosen": {newSub("a", records(other), saysHealth("True", "UnhealthyCatalogSourceFound", "targeted catalogsource olm/gone missing"),
			func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "other" }), sources(other), "False/AllCatalogSourcesHealthy: " + allHealthy, "olm/other=true@3"},
		"a catalog was deleted": {
			newSub("a", records(cool, other), healthy), sources(cool), "False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@3",
		},
		"a spec becomes invalid": {newSub("a", records(cool), healthy), sources(invalidCatalog("olm", "cool")),
			"True/UnhealthyCatalogSourceFound: targeted catalogsource olm/cool unhealthy", "olm/cool=false@60"},
		"another catalog is unhealthy": {newSub("a", records(cool, other), healthy), sources(ill, cool),
			"True/UnhealthyCatalogSourceFound: catalogsource olm/other unhealthy", "olm/cool=true@3 olm/other=false@60"},
		"several others are unhealthy": {newSub("a", records(cool, ill)), sources(cool, ill, newCatalog("olm", "zzz", false)),
			"True/UnhealthyCatalogSourceFound: catalogsources olm/other, olm/zzz unhealthy", "olm/cool=true@3 olm/other=false@3 olm/zzz=false@60"},
		"a change after a change is not dropped": {newSub("a", records(cool), saysHealth("False", "CatalogSourcesUpdated", allHealthy)), sources(sick),
			"True/UnhealthyCatalogSourceFound: targeted catalogsource olm/cool unhealthy", "olm/cool=false@60"},
		"a probe overrides the status": {newSub("a", records(cool), healthy),
			&subscription.Catalogs{Sources: sources(cool).Sources, Probes: map[types.NamespacedName]subscription.Probe{{Namespace: "olm", Name: "cool"}: {}}},
			"True/UnhealthyCatalogSourceFound: targeted catalogsource olm/cool unhealthy", "olm/cool=false@60"},
		"no target is given": {newSub("a", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource, s.Spec.CatalogSourceNamespace = "", "" }, records(cool)), sources(cool),
			"True/UnhealthyCatalogSourceFound: targeted catalogsource / missing", "olm/cool=true@3"},
		"a record without a time": {newSub("a", records(cool), healthy, func(s *v1alpha1.Subscription) { s.Status.CatalogHealth[0].LastUpdated = nil }), sources(cool),
			"False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@60"},
		"without UIDs, recorded in another order": {newSub("a", records(nameless("other", false), nameless("cool", true)), saysHealth("True", "UnhealthyCatalogSourceFound", "catalogsource olm/other unhealthy")),
			sources(nameless("cool", true), nameless("other", false)), "", "olm/other=false@3 olm/cool=true@3"},
		"a record without a reference": {newSub("a", func(s *v1alpha1.Subscription) {
			s.Status.CatalogHealth = []v1alpha1.SubscriptionCatalogHealth{{}}
		}, healthy), sources(cool), "False/AllCatalogSourcesHealthy: " + allHealthy, "olm/cool=true@60"},
	} {
		t.Run(name, func(t *testing.T) {
			in := answered(inputOf(tc.sub))
			in.Catalogs = tc.catalogs
			out := reconcile(t, in)
			status := statusOf(t, in, out, "a")
			if tc.want == "" {
				require.Empty(t, out.Actions)
			} else {
				c := status.GetCondition(v1alpha1.SubscriptionCatalogSourcesUnhealthy)
				require.Equal(t, tc.want, fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message))
			}
			var health []string
			for _, h := range status.CatalogHealth {
				health = append(health, fmt.Sprintf("%s/%s=%v@%d", h.CatalogSourceRef.Namespace, h.CatalogSourceRef.Name, h.Healthy, int(h.LastUpdated.Sub(epoch).Seconds())))
			}
			require.Equal(t, tc.health, strings.Join(health, " "))
			for range 2 {
				carryOut(&in, reconcile(t, in))
			}
			require.Empty(t, reconcile(t, in).Actions, "at rest")
		})
	}
}

// TestCatalogHealthReferencesItsCatalog checks that status.catalogHealth contains complete references.
func TestCatalogHealthReferencesItsCatalog(t *testing.T) {
	in := inputOf(newSub("a"))
	in.Catalogs = sources(newCatalog("olm", "cool", true))
	require.Equal(t, []v1alpha1.SubscriptionCatalogHealth{{
		CatalogSourceRef: &corev1.ObjectReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Namespace: "olm", Name: "cool", UID: "cool-uid", ResourceVersion: "7"},
		LastUpdated:      secondp(60), Healthy: true,
	}}, statusOf(t, in, reconcile(t, in), "a").CatalogHealth)
}

// nameless returns a catalog without a UID.
func nameless(name string, healthy bool) *v1alpha1.CatalogSource {
	c := newCatalog("olm", name, healthy)
	c.UID = ""
	return c
}

func TestFailedProbeKeepsTheRecordedHealth(t *testing.T) {
	cool := newCatalog("olm", "cool", true)
	in := answered(inputOf(newSub("a", records(cool), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)), newSub("b")))
	in.Catalogs = sources(cool)
	in.Catalogs.Probes = map[types.NamespacedName]subscription.Probe{{Namespace: "olm", Name: "cool"}: {Error: "timeout"}}
	out := reconcile(t, in)
	require.Equal(t, "CatalogsChanged CatalogProbeError", reasons(out.Result), "b has no record of the catalog")
	require.Contains(t, out.Diagnostics[1].Message, "timeout")
	require.NotZero(t, out.RequeueAfter)
	require.Len(t, out.Actions, 1)
	require.Equal(t, in.Subscriptions.Items[0].Status, statusOf(t, in, out, "a"), "the last known health stands")
	b := statusOf(t, in, out, "b")
	require.False(t, b.CatalogHealth[0].Healthy)
}

func TestGatherReadsLocalAndGlobalCatalogs(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		newCatalog("olm", "b", true), newCatalog("olm", "a", true), newCatalog(ns, "own", true), newCatalog("elsewhere", "x", true)}, olmcore.Everything)
	require.NoError(t, err)
	for global, want := range map[string]string{"": "ops/own", ns: "ops/own", "olm": "olm/a olm/b ops/own"} {
		c, err := subscription.GatherCatalogs(context.Background(), snapshot, ns, global)
		require.NoError(t, err)
		var names []string
		for _, s := range c.Sources.Items {
			names = append(names, s.Namespace+"/"+s.Name)
		}
		require.Equal(t, want, strings.Join(names, " "))
	}
}

func entryOf(bundle string, deprecations ...*string) subscription.Entry {
	e := subscription.Entry{Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}, Package: "etcd", Channel: "stable", Bundle: bundle}
	if len(deprecations) == 3 {
		e.PackageDeprecation, e.ChannelDeprecation, e.BundleDeprecation = deprecations[0], deprecations[1], deprecations[2]
	}
	return e
}

// OLM's cases: deprecations at three levels, coming and going.
func TestDeprecationConditions(t *testing.T) {
	says := func(t v1alpha1.SubscriptionConditionType, message string) func(*v1alpha1.Subscription) {
		return withCondition(t, "", message, 3)
	}
	has := func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" }
	anyChannel := func(s *v1alpha1.Subscription) { s.Spec.Channel = "" }
	for name, tc := range map[string]struct {
		sub     *v1alpha1.Subscription
		entries []subscription.Entry
		want    string
		reason  string
	}{
		"all three levels": {newSub("a", has), []subscription.Entry{entryOf("etcd.v1", new("p"), new("c"), new("b"))},
			"PackageDeprecated=olm.package/etcd: p ChannelDeprecated=olm.channel/stable: c BundleDeprecated=olm.bundle/etcd.v1: b Deprecated=olm.package/etcd: p; olm.channel/stable: c; olm.bundle/etcd.v1: b", ""},
		"already reported": {newSub("a", has, says("BundleDeprecated", "olm.bundle/etcd.v1: b"), says("PackageDeprecated", "olm.package/etcd: p"), says("Deprecated", "olm.package/etcd: p; olm.bundle/etcd.v1: b")),
			[]subscription.Entry{entryOf("etcd.v1", new("p"), nil, new("b"))}, "BundleDeprecated=olm.bundle/etcd.v1: b PackageDeprecated=olm.package/etcd: p Deprecated=olm.package/etcd: p; olm.bundle/etcd.v1: b", ""},
		"one level ends":                                   {newSub("a", has, says("BundleDeprecated", "olm.bundle/etcd.v1: b"), says("PackageDeprecated", "olm.package/etcd: p"), says("Deprecated", "olm.package/etcd: p; olm.bundle/etcd.v1: b")), []subscription.Entry{entryOf("etcd.v1", new("p"), nil, nil)}, "PackageDeprecated=olm.package/etcd: p Deprecated=olm.package/etcd: p", ""},
		"none is left":                                     {newSub("a", has, says("BundleDeprecated", "b"), says("Deprecated", "b")), []subscription.Entry{entryOf("etcd.v1")}, "", ""},
		"the condition Deprecated is missing":              {newSub("a", has, says("BundleDeprecated", "olm.bundle/etcd.v1: b")), []subscription.Entry{entryOf("etcd.v1", nil, nil, new("b"))}, "BundleDeprecated=olm.bundle/etcd.v1: b Deprecated=olm.bundle/etcd.v1: b", ""},
		"without a message":                                {newSub("a", has), []subscription.Entry{entryOf("etcd.v1", nil, nil, new(""))}, "BundleDeprecated=olm.bundle/etcd.v1:  Deprecated=olm.bundle/etcd.v1: ", ""},
		"no channel is followed":                           {newSub("a", has, anyChannel, says("ChannelDeprecated", "c")), []subscription.Entry{entryOf("etcd.v1", nil, new("c"), nil)}, "", ""},
		"the catalog does not contain the bundle any more": {newSub("a", has, says("BundleDeprecated", "b")), []subscription.Entry{entryOf("etcd.v2")}, "BundleDeprecated=b", "DeprecationUnknown"},
		"a message without prefixes":                       {newSub("a", has, says("BundleDeprecated", "b"), says("Deprecated", "b")), []subscription.Entry{entryOf("etcd.v1", nil, nil, new("b"))}, "BundleDeprecated=olm.bundle/etcd.v1: b Deprecated=olm.bundle/etcd.v1: b", ""},
		"another catalog's entry":                          {newSub("a", has), []subscription.Entry{{Catalog: types.NamespacedName{Namespace: "olm", Name: "hot"}, Package: "etcd", Channel: "stable", Bundle: "etcd.v1", BundleDeprecation: new("b")}}, "", ""},
		"another channel's entry":                          {newSub("a", has, func(s *v1alpha1.Subscription) { s.Spec.Channel = "alpha" }), []subscription.Entry{entryOf("etcd.v1", nil, nil, new("b"))}, "", ""},
		"nothing is installed":                             {newSub("a"), []subscription.Entry{entryOf("etcd.v1", nil, nil, new("b"))}, "", ""},
		"the entries are not known":                        {newSub("a", has, says("BundleDeprecated", "b")), nil, "BundleDeprecated=b", "DeprecationUnknown"},
		"entries of several bundles":                       {newSub("a", has), []subscription.Entry{entryOf("etcd.v0", nil, nil, new("0")), entryOf("etcd.v1", nil, nil, new("1")), entryOf("etcd.v3", nil, nil, new("3"))}, "BundleDeprecated=olm.bundle/etcd.v1: 1 Deprecated=olm.bundle/etcd.v1: 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cool := newCatalog("olm", "cool", true)
			records(cool)(tc.sub)
			saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)(tc.sub)
			in := answered(inputOf(tc.sub))
			in.Catalogs = sources(cool)
			in.Catalogs.Entries = tc.entries
			out := reconcile(t, in)
			var got []string
			for _, c := range statusOf(t, in, out, "a").Conditions {
				if strings.HasSuffix(string(c.Type), "Deprecated") {
					require.Equal(t, corev1.ConditionTrue, c.Status)
					require.NotNil(t, c.LastTransitionTime)
					got = append(got, string(c.Type)+"="+c.Message)
				}
			}
			require.Equal(t, tc.want, strings.Join(got, " "))
			carryOut(&in, out)
			require.Equal(t, olmcore.Result{}, reconcile(t, in).Result)
			require.NotNil(t, reconcile(t, in).Checkpoint)
			a, err := subscription.Assess(in)
			require.NoError(t, err)
			require.Equal(t, tc.reason, reasons(a.Decisions[0].Result))
		})
	}
}

// TestCatalogConditionsMatchTheCatalogs checks for any namespace that the conditions about catalogs and
// deprecations match the catalogs.
func TestCatalogConditionsMatchTheCatalogs(t *testing.T) {
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
		out := reconcile(t, in)
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
		carryOut(&in, out)
		for _, a := range reconcile(t, in).Actions {
			if u, ok := a.(olmcore.UpdateStatus); ok {
				require.Equal(t, u.Before.(*v1alpha1.Subscription).Status.CatalogHealth, u.After.(*v1alpha1.Subscription).Status.CatalogHealth, "written twice")
			}
		}
	})
}

// checkRollUp checks that the condition Deprecated joins the three levels in their order.
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
