// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// forgot makes a Subscription one that had an InstallPlan and forgot it; it goes back to an installed version, "" for
// none.
func forgot(installed string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.InstalledCSV, s.Status.InstallPlanGeneration = installed, 3 }
}

// TestAnUnfinishedVersionIsInstalledAgain: the version exists because an InstallPlan created it and did not finish. It
// is left out of the installed versions, and the same version is chosen, whatever else the channel has.
func TestAnUnfinishedVersionIsInstalledAgain(t *testing.T) {
	pending := phase(v1alpha1.CSVPhasePending)
	once := func(p v1alpha1.ClusterServiceVersionPhase, history ...v1alpha1.ClusterServiceVersionPhase) func(*v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase = p
			for _, phase := range history {
				c.Status.Conditions = append(c.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: phase})
			}
		}
	}
	refers := func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "ns", Name: "p", UID: types.UID("p")}
	}
	upgrade := func(change ...func(*v1alpha1.Subscription)) *world {
		return newWorld(chain()...).sub("a/stable", append([]func(*v1alpha1.Subscription){forgot("a1")}, change...)...).
			csv("a", "a1", nil, phase(v1alpha1.CSVPhaseReplacing))
	}
	first := func(change ...func(*v1alpha1.Subscription)) *world {
		return newWorld(chain()...).sub("a/stable", append([]func(*v1alpha1.Subscription){forgot("")}, change...)...)
	}
	generation := func(n int) func(*v1alpha1.Subscription) {
		return func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = n }
	}
	current := func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a2" }
	const (
		upgraded = "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: a1 -> a2, currentCSV a2"
		again    = "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: nothing -> a2, currentCSV a2"
	)
	const (
		others   = "cat/global/stable/a1, cat/global/stable/a2 and cat/global/stable/a3 originate from package a, clusterserviceversion "
		unowned  = " exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of "
		channel  = "cat/global/stable/a3, cat/global/stable/a2 or cat/global/stable/a1"
		failed   = "Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: @existing/ns//"
		conflict = failed + "a2, " + others + "a2" + unowned + channel
	)
	check(t, cases{
		"an upgrade":                               {upgrade().csv("a", "a2", nil, replacing("a1"), pending), upgraded},
		"an upgrade that failed":                   {upgrade().csv("a", "a2", nil, replacing("a1"), once(v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhasePending)), upgraded},
		"a first installation":                     {first().csv("a", "a2", nil, pending), again},
		"a first installation without properties":  {first().csv("", "a2", nil, bare, pending), again},
		"what it replaces is gone":                 {first().csv("a", "a2", nil, replacing("a1"), pending), again},
		"the Subscription starts with another one": {first(starting("a1")).csv("a", "a2", nil, replacing("a1"), pending), again},
		"the Subscription starts with this one":    {first(starting("a2")).csv("a", "a2", nil, pending), again},
		"a first installation that failed":         {first().csv("a", "a2", nil, once(v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhasePending)), again},
		"it is the head":                           {first().csv("a", "a3", nil, pending), "Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3"},
		"its dependency is not finished either":    {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"))).sub("a/s", forgot("")).sub("b/s", forgot("")).csv("a", "a1", nil, pending).csv("b", "b1", nil, pending), "Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from global/cat b/s for b required by a1\na: nothing -> a1, currentCSV a1\nb: nothing -> b1, currentCSV b1"},
		"its dependency was installed": {newWorld(line("a/s", "a1", "", requires("K")), line("b/s", "b1", "", provides("K"))).sub("a/s", forgot("")).sub("b/s", has("b1")).
			csv("a", "a1", nil, pending).csv("b", "b1", []olmcore.Property{provides("K")}), "Resolved\ninstall a1 from global/cat a/s for a\na: nothing -> a1, currentCSV a1\nb: b1 -> b1"},

		"the Subscription still refers to the plan": {first(refers).csv("a", "a2", nil, pending), conflict},
		"the Subscription waits for the version":    {first(current).csv("a", "a2", nil, pending), conflict},
		"the Subscription never had a plan":         {first(generation(0)).csv("a", "a2", nil, pending), conflict},
		"the version was installed once":            {first().csv("a", "a2", nil, once(v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded)), conflict},
		"the version works":                         {first().csv("a", "a2", nil), conflict},
		"the version left the catalog":              {first().csv("a", "a9", nil, pending), failed + "a9, " + others + "a9" + unowned + channel},
		"an upgrade left the catalog": {upgrade().csv("a", "a9", nil, replacing("a1"), pending),
			"Unsatisfiable\na: a1 -> a1, failed\ncore [a]: constraints not satisfiable: @existing/ns//a1, @existing/ns//a9 and " +
				"cat/global/stable/a2 originate from package a, clusterserviceversion a9" + unowned + "cat/global/stable/a2 or @existing/ns//a1"},
		"another Subscription has it": {first(named("z")).sub("a/stable", has("a2")).csv("a", "a2", nil, pending), "Resolved\ninstall a3 from global/cat a/stable replacing a2 for a,z\na: a2 -> a3, currentCSV a3\nz: nothing -> a3, currentCSV a3"},
		"it is being deleted":         {first().csv("a", "a2", nil, pending, deleting), "Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3"},
		"OLM finds a contradiction":   {first().csv("a", "a2", nil, pending).policy(resolution.UpstreamPolicy()), conflict},
	})
}
