// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestVersionIsNotMadeBesideAnotherUpgradeChain: both would fail of an owner conflict for good.
func TestVersionIsNotMadeBesideAnotherUpgradeChain(t *testing.T) {
	there := func(name, replaces string, crds ...string) *v1alpha1.ClusterServiceVersion {
		return csv(name, func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.Replaces = replaces
			for _, crd := range crds {
				c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: crd})
			}
		})
	}
	const crd = "one.example.com"
	going, copied := there("a.v1", "", crd), there("a.v1", "", crd)
	going.DeletionTimestamp = ago(time.Second)
	copied.Labels = map[string]string{"olm.copiedFrom": "there"}
	beside := func(name string) string {
		return "pre-existing CRD owners found for CRD one.example.com of CSV a.v3, which does not replace " + name
	}
	type versions = []*v1alpha1.ClusterServiceVersion
	for name, c := range map[string]struct { // a.v3 replaces a.v2
		there versions
		want  string
	}{
		"nothing is there":                 {},
		"what it replaces":                 {there: versions{there("a.v2", "", crd)}},
		"what that one replaces":           {there: versions{there("a.v2", "a.v1", crd), there("a.v1", "", crd)}},
		"what replaces it":                 {there: versions{there("a.v4", "a.v3", crd)}},
		"another branch of the line":       {there: versions{there("a.v2", "", crd), there("a.v2b", "a.v2", crd)}},
		"one that owns another definition": {there: versions{there("a.v1", "", "other.example.com")}},
		"one that is going":                {there: versions{going}},
		"a copy":                           {there: versions{copied}},
		"an earlier one, the line is cut":  {there: versions{there("a.v1", "", crd)}, want: beside("a.v1")},
		"one that replaces the same, gone": {there: versions{there("a.v2b", "a.v2", crd)}, want: beside("a.v2b")},
		"a later one":                      {there: versions{there("a.v5", "a.v4", crd)}, want: beside("a.v5")},
		"what it replaces and another's":   {there: versions{there("a.v2", "", crd), there("b.v1", "", crd)}, want: beside("b.v1")},
		"one it replaces, which is a copy": {there: versions{func() *v1alpha1.ClusterServiceVersion {
			c := there("a.v2", "", crd)
			c.Labels = copied.Labels
			return c
		}()}},
		"it is there, beside an earlier one": {there: versions{there("a.v3", "a.v2", crd), there("a.v1", "", crd)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := step("a.v3", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v3", there("a.v3", "a.v2", crd))
			in := input(plan(installing, []*v1alpha1.Step{s, roleStep("", "r")}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"a.v3"} }))
			in.ClusterServiceVersions = olmcore.Found(c.there...)
			r := reconcile(t, in)
			if c.want == "" {
				require.NotContains(t, reasons(r), installplan.ReasonStepRefused)
				return
			}
			require.Equal(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, describe(r), "no step is applied")
			require.Equal(t, "retrying execution due to error: "+c.want, statusOf(in, r).Message)
		})
	}
}

// TestOfTwoPlansThatRunTheFirstWins: a's plan of v2 is approved when b's plan comes, which brings a v3 that replaces
// another version. The Subscription a stays with its own; both plans run. Only one version of a is made, and once that
// one goes the other plan heals.
func TestOfTwoPlansThatRunTheFirstWins(t *testing.T) {
	bundle := func(v, replaces string) olmcore.Operator {
		o := operatorOf("a", v)
		o.Replaces = replaces
		version := o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
		version.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com", Version: "v1", Kind: "Thing"}}
		o.Bundle.Objects = append(o.Bundle.Objects, crdObject("v1"))
		return o
	}
	for name, newerFirst := range map[string]bool{"the newer one first": true, "the older one first": false} {
		t.Run(name, func(t *testing.T) {
			sub := userSubscription("a")
			sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
			c := world(t, sub)
			run := func(d time.Duration, controllers ...fake.Controller) {
				driver := &fake.Driver{Cluster: c, Controllers: controllers}
				require.NoError(t, driver.RunFor(t.Context(), d))
			}
			run(time.Minute, makers(installs(bundle("v1", "")), things))
			older := onlyPlan(t, c)
			reference := fake.Find[*v1alpha1.Subscription](c, ns, "a").Status
			require.NoError(t, c.Create(userSubscription("b")))
			run(time.Minute, makers(installs(bundle("v3", "a.v2"), operatorOf("b", "v1")), things))
			require.NoError(t, fake.Edit(c, ns, "a", func(s *v1alpha1.Subscription) { s.Status = reference }))
			newer := planNamed(t, c, fake.Find[*v1alpha1.Subscription](c, ns, "b").Status.InstallPlanRef.Name)

			first, second, made, kept := older, newer, "a.v1", "a.v3"
			if newerFirst {
				first, second, made, kept = newer, older, "a.v3", "a.v1"
			}
			for _, p := range []*v1alpha1.InstallPlan{first, second} {
				require.NoError(t, fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
				run(10*time.Minute, plans(things))
			}
			require.Equal(t, complete, planNamed(t, c, first.Name).Status.Phase)
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, made))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, kept))
			last := planNamed(t, c, second.Name).Status
			require.Equal(t, failed, last.Phase)
			require.Equal(t, "pre-existing CRD owners found for CRD things.example.com of CSV "+kept+", which does not replace "+made, last.Message)

			require.NoError(t, c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, made))))
			run(10*time.Minute, plans(things))
			require.Equal(t, complete, planNamed(t, c, second.Name).Status.Phase)
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, kept))
		})
	}
}
