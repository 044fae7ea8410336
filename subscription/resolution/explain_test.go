// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func TestExplain(t *testing.T) {
	skipping := entry{in: "a/s", name: "a4", version: "4.0.0", replaces: "a3", skips: []string{"a2"}}
	base := func() *world {
		return newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1"), line("a/s", "a3", "a2"), skipping, line("a/s", "a5", "a4", requires("K")),
			line("b/s", "b1", "", requiresPackage("c", ">=1.0.0")), line("c/s", "c1", ""), line("d/s", "d1", ""), line("d/s", "d2", ""))
	}
	for name, c := range map[string]struct {
		world                *world
		subscription, bundle string
		want                 string
	}{
		"chosen":                                {base().sub("a/s"), "", "a4", `true : a4 is installed from channel s of catalog global/cat for Subscription a.`},
		"a dependency":                          {base().sub("b/s"), "", "c1", `true : c1 is installed from channel s of catalog global/cat because b1 needs it.`},
		"stays":                                 {base().sub("a/s", has("a4")).csv("a", "a4", nil), "a", "a4", `true : a4 stays installed for Subscription a.`},
		"stays without a Subscription":          {base().sub("b/s").csv("a", "a4", nil), "", "a4", `true : a4 stays installed: it exists, and no Subscription refers to it.`},
		"is none of that Subscription's":        {base().sub("b/s").csv("a", "a4", nil), "b", "a4", `false NotFollowed: a4 is in channel s of package a in catalog global/cat, which Subscription b does not ask for, and nothing that is selected needs it.`},
		"better, but it needs what nobody has":  {base().sub("a/s"), "a", "a5", `false RequirementUnmet: Subscription a does not get a5: a5 needs an operator that provides K (g/v1), and no catalog visible from namespace ns has one.`},
		"possible, but there is a better one":   {base().sub("a/s"), "", "a3", `false LessPreferred: Subscription a gets a4, which it prefers to a3.`},
		"skipped":                               {base().sub("a/s"), "", "a2", `false Skipped: a2 is skipped by a4 of channel s.`},
		"it cannot be read":                     {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", property(resolution.PropertyConstraint, `{}`))).sub("a/s"), "", "a2", `false CandidateInvalid: Subscription a does not get a2: a2 is invalid (convert olm.constraint to resolver predicate: constraint is empty).`},
		"stranded":                              {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1"), entry{in: "a/s", name: "a3", version: "3.0.0", skips: []string{"a2"}}).sub("a/s"), "", "a1", `false ChannelMalformed: a1 is stranded: the head of channel s does not lead to it.`},
		"startingCSV asks for another":          {base().sub("a/s", starting("a1")), "", "a4", `false LessPreferred: Subscription a asks to start with a1.`},
		"no upgrade leads to it":                {base().sub("a/s", has("a3")).csv("a", "a3", nil), "", "a5", `false NoUpgradeEdge: There is no upgrade from a3 to a5: it neither replaces nor skips it, nor has a skipRange for its version.`},
		"its channel is broken":                 {base().sub("d/s").sub("a/s"), "", "d1", `false Unresolved: Subscription d follows package d, whose upgrade graph in catalog global/cat is broken: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "s" of package "d": d1, d2.`},
		"nobody asks for it":                    {base().sub("a/s"), "", "c1", `false NotFollowed: c1 is in channel s of package c in catalog global/cat, which no Subscription asks for, and nothing that is selected needs it.`},
		"one Subscription does not ask for it":  {base().sub("a/s").sub("d/s"), "a", "d1", `false NotFollowed: d1 is in channel s of package d in catalog global/cat, which Subscription a does not ask for, and nothing that is selected needs it.`},
		"nobody has it":                         {base().sub("a/s"), "", "z9", `false UnknownBundle: No catalog visible from namespace ns has z9.`},
		"mistyped":                              {newWorld(line("a/s", "etcd.v1.0.0", ""), line("a/s", "etcd.v1.0.1", "etcd.v1.0.0")).sub("a/s"), "", "ectd.v1.0.1", `false UnknownBundle: No catalog visible from namespace ns has ectd.v1.0.1. Did you mean etcd.v1.0.1 or etcd.v1.0.0?`},
		"one that is like a name left empty":    {newWorld(line("a/s", "a1", ""), line("a/s", "", "a0")).sub("a/s"), "", "z9", `false UnknownBundle: No catalog visible from namespace ns has z9.`},
		"no such Subscription":                  {base(), "a", "a1", `false NotFollowed: There is no Subscription a in namespace ns.`},
		"its Subscription has no solution":      {base().sub("a/s").csv("a", "a9", nil), "", "a4", `false Unresolved: Subscription a cannot be resolved: only one operator of package a can be installed; ClusterServiceVersion a9 of package a exists already and no Subscription refers to it.`},
		"nothing is resolved":                   {base().sub("a/s").policy(resolution.Policy{MaxSteps: 1}), "", "a4", `false Unresolved: Subscription a was not decided within 1 steps: each of the 4 candidates from a5 to a1 was tried, together with what older Subscriptions can have.`},
		"held until the upgrade is done":        {base().sub("a/s", has("a3")).csv("a", "a1", nil, phase("Replacing")).csv("a", "a3", nil, replacing("a1")), "", "a4", `false ReplacementInProgress: Subscription a stays at a3: the upgrade from a1 to a3 is not finished.`},
		"another package's bundle has its name": {newWorld(line("a/s", "x1", ""), line("b/t", "b1", ""), line("b/t", "x1", "b1")).sub("a/s").sub("b/t"), "b", "x1", `false BlockedBySubscription: Subscription b does not get x1: packages a and b each have a bundle x1, and only one ClusterServiceVersion can have that name; Subscription a needs x1.`},
		"nothing but a taken name":              {newWorld(line("a/s", "x1", ""), line("b/t", "x1", "")).sub("a/s").sub("b/t"), "b", "x1", `false Unresolved: Together, Subscriptions a and b cannot be resolved: packages a and b each have a bundle x1, and only one ClusterServiceVersion can have that name; Subscription a needs x1; Subscription b needs x1.`},
	} {
		t.Run(name, func(t *testing.T) {
			x := resolution.Explain(c.world.in, c.subscription, c.bundle)
			require.Equal(t, c.want, fmt.Sprintf("%v %s: %s", x.Chosen, x.Code, x.Summary))
		})
	}
	w := base().sub("a/s")
	w.in.OperatorGroups = nil
	require.Equal(t, resolution.Unresolved, resolution.Explain(w.in, "", "a4").Code)
}

func TestSimilarPackageIsSuggested(t *testing.T) {
	lines := []entry{line("kafka-operator/s", "a1", ""), line("mykafka/s", "b1", ""), line("other/s", "c1", "")}
	for asked, want := range map[string]string{
		"kafka":                    "Subscription a asks for package kafka, which catalog global/cat does not have. Did you mean mykafka or kafka-operator?",
		"Kafka-Operator":           "Subscription a asks for package Kafka-Operator, which catalog global/cat does not have. Did you mean kafka-operator?",
		"other-operator.community": "Subscription a asks for package other-operator.community, which catalog global/cat does not have. Did you mean other?",
		"unheard-of":               "Subscription a asks for package unheard-of, which catalog global/cat does not have.",
	} {
		require.Equal(t, want, resolution.Resolve(newWorld(lines...).sub(asked+"/s", named("a")).in).Cores[0].Summary)
	}
}

func TestRemedies(t *testing.T) {
	for name, c := range map[string]struct {
		world *world
		want  []resolution.RemedyCode
	}{
		"an orphan":          {newWorld(chain()...).sub("a/stable").csv("a", "a1", nil), []resolution.RemedyCode{resolution.DeleteOrphanCSV, resolution.AdoptOrphanCSV}},
		"no such channel":    {newWorld(chain()...).sub("a/beta"), []resolution.RemedyCode{resolution.ChangeChannel}},
		"no such package":    {newWorld(chain()...).sub("b/beta"), []resolution.RemedyCode{resolution.ChangePackage}},
		"no such catalog":    {newWorld(chain()...).sub("a/stable", from("ns/x")), []resolution.RemedyCode{resolution.AddCatalog}},
		"a requirement":      {newWorld(line("a/s", "a1", "", requires("K"))).sub("a/s"), []resolution.RemedyCode{resolution.AddCatalog}},
		"a broken channel":   {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "")).sub("a/s"), []resolution.RemedyCode{resolution.RepairCatalog}},
		"a catalog is down":  {newWorld().broken("global/cat", 0).sub("a/s"), []resolution.RemedyCode{resolution.RepairCatalog}},
		"two of one package": {newWorld(line("a/s", "a1", ""), line("a/t", "a2", "")).sub("a/s").sub("a/t", named("b")), []resolution.RemedyCode{resolution.RemoveConflictingSubscription}},
	} {
		t.Run(name, func(t *testing.T) {
			res := resolution.Resolve(c.world.in)
			require.Len(t, res.Cores, 1)
			var codes []resolution.RemedyCode
			for _, r := range res.Cores[0].Remedies {
				codes = append(codes, r.Code)
				require.NotEmpty(t, r.Message)
			}
			require.Equal(t, c.want, codes)
			require.Equal(t, res.Cores, res.CoresFor(res.Cores[0].Subscriptions[0]))
			require.Empty(t, res.CoresFor("somebody else"))
		})
	}
}

func TestMessageOfACompoundConstraint(t *testing.T) {
	api := func(kind string) string {
		return `{"gvk":{"group":"g","kind":"` + kind + `","version":"v1"}}`
	}
	need := `{"any":{"constraints":[{"all":{"constraints":[` + api("A") + `,` + api("B") + `]}},` + api("C") + `]}}`
	require.Equal(t, "Subscription a cannot be resolved: a1 needs (an operator that provides A (g/v1) that is at the same time an operator that provides B (g/v1)) or an operator that provides C (g/v1), and no catalog visible from namespace ns has one.",
		resolution.Resolve(newWorld(line("a/s", "a1", "", constraint(need))).sub("a/s").in).Cores[0].Summary)
}

func TestRemedyNamesTheExistingChannels(t *testing.T) {
	w := newWorld(append(chain(), line("a/alpha", "a0", ""))...).sub("a/beta")
	require.Equal(t, []resolution.Remedy{{Code: resolution.ChangeChannel, Object: "a", Message: "Let Subscription a follow a channel of package a that exists: stable or alpha.",
		Changes: []resolution.Change{{Subscription: "a", Channel: "stable"}}}},
		resolution.Resolve(w.in).Cores[0].Remedies)
}

func TestRemedyForTheVersionOfAFailedSubscription(t *testing.T) {
	w := newWorld(line("a/s", "a1", ""), line("b/s", "b1", "", provides("K"))).
		sub("a/s", has("a0")).csv("a", "a0", []olmcore.Property{requires("gone"), provides("K")}).sub("b/s")
	cores := resolution.Resolve(w.in).CoresFor("b")
	require.Len(t, cores, 1)
	require.Equal(t, []resolution.Remedy{{Code: resolution.ApproveOrFixFailed, Object: "a0", Message: "Repair Subscription a first."}}, cores[0].Remedies)
}

func TestRemediesHelp(t *testing.T) {
	bare := func() []entry {
		return []entry{line("kafka/stable", "kafka1", ""), line("kafka/stable", "kafka2", "kafka1")}
	}
	after := func(w *world, subscription string, r resolution.Remedy) resolution.Standing {
		d, err := resolution.WhatIf(w.in, r.Changes...)
		require.NoError(t, err)
		return d.After.Standing(subscription)
	}
	helps := func(w *world) (list []string) {
		res := resolution.Resolve(w.in)
		for _, c := range res.Cores {
			for _, r := range c.Remedies {
				list = append(list, r.Message)
				for _, name := range c.Subscriptions {
					require.Equal(t, r.Changes == nil, after(w, name, r).Failure != "", "%s: what it proposes is the change that helps", r.Message)
				}
			}
		}
		for _, h := range res.HeldBack {
			for _, r := range h.Remedies {
				list = append(list, r.Message)
				require.Equal(t, r.Changes != nil, after(w, h.Subscription, r).Target.Target == h.Candidate, r.Message)
			}
		}
		return list
	}
	for name, c := range map[string]struct {
		world *world
		want  []string
	}{
		"a mistyped package":         {newWorld(bare()...).sub("kafak/stable"), []string{"Let Subscription kafak follow package kafka of catalog global/cat."}},
		"a mistyped channel":         {newWorld(bare()...).sub("kafka/stabel"), []string{"Let Subscription kafka follow channel stable of package kafka."}},
		"a mistyped bundle":          {newWorld(bare()...).sub("kafka/stable", starting("kafka3")), []string{"Let Subscription kafka start with kafka1.", "Let Subscription kafka start with kafka2.", "Take spec.startingCSV out of Subscription kafka."}},
		"a package that is no help":  {newWorld(line("kafka/stable", "kafka1", "", requires("K"))).sub("kafak/stable"), nil},
		"an orphan of other content": {newWorld(chain()...).sub("a/stable").csv("a", "a0", nil), []string{"Delete ClusterServiceVersion a0, so that its Subscription can install it again.", "Adopt ClusterServiceVersion a0: set status.installedCSV of Subscription a to it."}},
		"an orphan that is not alone": {newWorld(append(chain(), line("b/s", "b1", "", requires("K")))...).sub("a/stable").sub("b/s").csv("a", "a0", nil),
			[]string{"Delete ClusterServiceVersion a0, so that its Subscription can install it again.", "Adopt ClusterServiceVersion a0: set status.installedCSV of Subscription a to it.", "Add a catalog that has an operator that provides K (g/v1)."}},
		"an older Subscription": {newWorld(line("a/s", "a1", "", provides("K")), line("b/s", "b1", ""), line("b/s", "b2", "b1", provides("K"))).sub("a/s", aged(1)).sub("b/s", aged(2)),
			[]string{"Remove Subscription a, or let it follow another channel."}},
		"a version that fail-forward leaves out": {newWorld(chain()...).failForward().sub("a/stable", has("a1")).csv("a", "a1", nil, phase("Replacing")).csv("a", "a2", nil, replacing("a1"), phase("Failed")),
			[]string{"Delete ClusterServiceVersion a2, so that its Subscription can install it again.", "Adopt ClusterServiceVersion a2: set status.installedCSV of Subscription a to it."}},
		"a missing provider": {newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requires("K"))).sub("a/s"), []string{"Add a catalog that has an operator that provides K (g/v1)."}},
	} {
		t.Run(name, func(t *testing.T) { require.ElementsMatch(t, c.want, helps(c.world)) })
	}
}

func TestNewerBundlesWithTheSameReasonShareOneLine(t *testing.T) {
	w := newWorld(line("a/s", "a1", ""), line("a/s", "a2", "a1", requires("K")), line("a/s", "a3", "a2", requires("K")), line("a/s", "a4", "a3", requires("K"), requires("L"))).sub("a/s")
	held := resolution.Resolve(w.in).HeldBack
	require.Len(t, held, 1)
	require.Equal(t, "a4", held[0].Candidate)
	require.Equal(t, []string{"a3", "a2"}, held[0].Also)
	require.Equal(t, "Subscription a does not get a4, a3 and a2: a4 needs an operator that provides K (g/v1), and no catalog visible from namespace ns has one.", held[0].Summary)
}

func TestConstrainingBundleIsNamed(t *testing.T) {
	w := newWorld(line("dns/s", "dns1", ""), line("dns/s", "dns2", "dns1"), line("kuadrant/s", "kuadrant1", "", requiresPackage("dns", "1.0.0"))).
		sub("kuadrant/s", aged(1)).sub("dns/s", aged(2), has("dns1")).csv("dns", "dns1", nil)
	w.in.Subscriptions[0].Status.InstalledCSV, w.in.Subscriptions[0].Status.CurrentCSV = "kuadrant1", "kuadrant1"
	w.csv("kuadrant", "kuadrant1", []olmcore.Property{requiresPackage("dns", "1.0.0")})
	held := resolution.Resolve(w.in).HeldBack
	require.Len(t, held, 1)
	require.Contains(t, held[0].Summary, "kuadrant1 needs exactly version 1.0.0 of package dns")
}
