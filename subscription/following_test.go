// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestSubscriptionFollowsTheSuccessorOfItsVersion checks which version a Subscription follows if two InstallPlans
// of its namespace install two versions of a dependency, and the plan with the older version created the
// Subscription.
func TestSubscriptionFollowsTheSuccessorOfItsVersion(t *testing.T) {
	brings := func(csv string, generation int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Spec.ClusterServiceVersionNames, p.Spec.Generation, p.OwnerReferences = []string{csv}, generation, nil
		}
	}
	generated := func(s *v1alpha1.Subscription) {
		s.Annotations, s.Spec.StartingCSV = map[string]string{"olm.generated-by": "p"}, "etcd.v1"
	}
	stale := newSub("a", follows("p", "etcd.v1"), installed)
	older, newer := newPlan("p", "Complete", done(8)), newPlan("q", "Complete", brings("etcd.v2", 2))
	v2 := newCSV("etcd.v2", replaces("etcd.v1"))

	const wedged, moved = "etcd.v1 etcd.v1 UpgradePending p", "etcd.v2 etcd.v2 AtLatestKnown q"
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    string // currentCSV, installedCSV, state, plan
	}{
		"with the plan that brought it": {objects: []olmcore.Object{stale, older, newer, v2}, want: moved},
		"its own plan may be gone":      {objects: []olmcore.Object{stale, newer, v2}, want: moved},
		"the other plan may be gone":    {objects: []olmcore.Object{stale, older, v2}, want: "etcd.v2 etcd.v2 AtLatestKnown p"},
		"with a plan that was never executed": {
			objects: []olmcore.Object{stale, older, newPlan("q", "", empty, brings("etcd.v2", 2)), v2}, want: "etcd.v2 etcd.v2 AtLatestKnown p",
		},
		"its own version was never observed": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), older, newer, v2}, want: moved},
		"it refers to no plan yet":           {objects: []olmcore.Object{newSub("a", generated), older, newer, v2}, want: "etcd.v2 etcd.v2 AtLatestKnown p"},
		"no version if it has none": {
			objects: []olmcore.Object{
				newSub("a", generated, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = "" }),
				newSub("b", generated, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = "other.v1" }), older, newCSV("other.v1"),
			},
			want: "   ",
		},
		"not while its plan is unfinished": {
			objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), newPlan("p", "Installing"), newer, v2},
			want:    "etcd.v1  UpgradePending p",
		},
		"not while its version exists": {
			objects: []olmcore.Object{stale, older, newer, v2, newCSV("etcd.v1")},
			want:    "etcd.v1 etcd.v1 AtLatestKnown p",
		},
		"not a successor of another version": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v0"))}, want: wedged},
		"not a version that another Subscription follows": {
			objects: []olmcore.Object{stale, newSub("b", follows("q", "etcd.v2"), installed), older, newer, v2}, want: wedged,
		},
		"not a copied CSV": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v1"), func(c *v1alpha1.ClusterServiceVersion) {
			c.Labels["olm.copiedFrom"] = "elsewhere"
		})}, want: wedged},
		"not a CSV that is being deleted": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v1"), func(c *v1alpha1.ClusterServiceVersion) {
			c.DeletionTimestamp, c.Finalizers = secondp(50), []string{"x"}
		})}, want: wedged},
	} {
		t.Run(name, func(t *testing.T) {
			in := gathered(t, tc.objects)
			out := reconcile(t, in)
			require.Equal(t, tc.want, followed(statusOf(t, in, out, "a")))
			carryOut(&in, out)
			require.Empty(t, reconcile(t, in).Actions, "at rest after one write")
		})
	}
}

func replaces(name string) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = name }
}

// gathered is the Input of a namespace of these objects.
func gathered(t *testing.T, objects []olmcore.Object) subscription.Input {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
	require.NoError(t, err)
	in.Now, in.OperatorGroups.Items, in.Live = now, inputOf().OperatorGroups.Items, true
	return in
}

// followed prints currentCSV, installedCSV, state and plan.
func followed(s v1alpha1.SubscriptionStatus) string {
	plan := ""
	if s.InstallPlanRef != nil {
		plan = s.InstallPlanRef.Name
	}
	return s.CurrentCSV + " " + s.InstalledCSV + " " + string(s.State) + " " + plan
}

// TestSubscriptionFollowsTheVersionThatItsPlanInstalled checks that a Subscription follows a version that its
// former InstallPlan installed. The plan was approved just before the Subscription referenced another plan, so no
// Subscription followed that version.
func TestSubscriptionFollowsTheVersionThatItsPlanInstalled(t *testing.T) {
	type change = func(*v1alpha1.ClusterServiceVersion)
	of := func(pkg string, more ...change) change {
		return func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations = map[string]string{olmcore.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
			for _, f := range more {
				f(c)
			}
		}
	}
	plan := func(name string, phase v1alpha1.InstallPlanPhase, generation int, csv string, more ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		return newPlan(name, phase, append(more, func(p *v1alpha1.InstallPlan) {
			p.Spec.Generation, p.Spec.ClusterServiceVersionNames = generation, []string{"other.v1", csv}
		})...)
	}
	superseded := installedIs(corev1.ConditionFalse, "Superseded", "superseded by InstallPlan q", 8)
	lost := newSub("a", func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = 5 })
	brought, v1 := plan("p", "Complete", 1, "etcd.v1"), newCSV("etcd.v1", of("etcd"))

	const wedged, healed = "   ", "etcd.v1 etcd.v1 AtLatestKnown p"
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    string
	}{
		"of a complete plan":                              {[]olmcore.Object{lost, brought, v1}, healed},
		"of an unfinished plan":                           {[]olmcore.Object{lost, plan("p", "Installing", 1, "etcd.v1"), v1}, healed},
		"of a plan that failed because of another object": {[]olmcore.Object{lost, plan("p", "Failed", 1, "etcd.v1", failed(8)), v1}, healed},
		"that is being replaced by a newer one":           {[]olmcore.Object{lost, brought, v1, plan("q", "Complete", 2, "etcd.v2"), newCSV("etcd.v2", of("etcd"))}, "etcd.v2 etcd.v2 AtLatestKnown q"},
		"while it waits for the approval of a newer plan": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v2")), brought, v1, plan("q", "RequiresApproval", 2, "etcd.v2", manual(1))}, healed,
		},
		"of its generated Subscription, after the plan was deleted": {
			[]olmcore.Object{newSub("a", generated("gone", "etcd.v1")), v1}, "etcd.v1 etcd.v1 AtLatestKnown ",
		},
		"not of a generated Subscription if another package has the version": {
			[]olmcore.Object{newSub("a", generated("gone", "etcd.v1")), newCSV("etcd.v1", of("other"))}, wedged,
		},
		"not of a generated Subscription if another one follows the version": {
			[]olmcore.Object{newSub("a", generated("gone", "etcd.v1")), newSub("b", follows("p", "etcd.v1")), brought, v1}, wedged,
		},
		"while it waits for the steps of a newer plan": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v2")), brought, v1, plan("q", "", 2, "etcd.v2", manual(2), empty)}, healed,
		},
		"not while a newer plan is installing": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v2")), brought, v1, plan("q", "Installing", 2, "etcd.v2")}, "etcd.v2  UpgradePending q",
		},
		"not while its installed version exists": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v2"), installed), newCSV("etcd.v2"), brought, v1, plan("q", "Complete", 2, "etcd.v2")},
			"etcd.v2 etcd.v2 AtLatestKnown q",
		},
		"not while the version that it waits for exists": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v2")), newCSV("etcd.v2"), brought, v1, plan("q", "RequiresApproval", 2, "etcd.v2", manual(1))},
			"etcd.v2 etcd.v2 AtLatestKnown q",
		},
		"not a version that is being replaced": {
			[]olmcore.Object{
				newSub("a", follows("q", "etcd.v2"), installed, follows("r", "etcd.v3")), brought, v1, newCSV("etcd.v2", replaces("etcd.v1")),
				plan("q", "Complete", 2, "etcd.v2"), plan("r", "RequiresApproval", 3, "etcd.v3", manual(1)),
			},
			"etcd.v3 etcd.v2 UpgradePending r",
		},
		"not a version whose successor no plan installed": {
			[]olmcore.Object{lost, brought, v1, newCSV("etcd.v2", replaces("etcd.v1"))}, wedged,
		},
		"a copied CSV replaces nothing": {
			[]olmcore.Object{lost, brought, v1, newCSV("etcd.v2", replaces("etcd.v1"), func(c *v1alpha1.ClusterServiceVersion) { c.Labels["olm.copiedFrom"] = "elsewhere" })}, healed,
		},
		"not of a plan of another Subscription": {[]olmcore.Object{lost, plan("p", "Complete", 1, "etcd.v1", func(p *v1alpha1.InstallPlan) { p.OwnerReferences = nil }), v1}, wedged},
		"not of a plan of a deleted Subscription with its name": {
			[]olmcore.Object{lost, plan("p", "Complete", 1, "etcd.v1", func(p *v1alpha1.InstallPlan) { p.OwnerReferences[0].UID = "older" }), v1}, wedged,
		},
		"not of a plan that was not executed":             {[]olmcore.Object{lost, plan("p", "RequiresApproval", 1, "etcd.v1"), plan("q", "Failed", 2, "etcd.v1", superseded), v1}, wedged},
		"not of a plan with another version":              {[]olmcore.Object{lost, plan("p", "Complete", 1, "etcd.v2"), v1}, wedged},
		"not of another package":                          {[]olmcore.Object{lost, brought, newCSV("etcd.v1", of("vault")), newCSV("other.v1", of("other"))}, wedged},
		"not of an unknown package":                       {[]olmcore.Object{lost, brought, newCSV("etcd.v1")}, wedged},
		"not a version that another Subscription follows": {[]olmcore.Object{lost, newSub("b", follows("p", "etcd.v1"), installed), brought, v1}, wedged},
		"not a copied CSV": {[]olmcore.Object{lost, brought, newCSV("etcd.v1", of("etcd", func(c *v1alpha1.ClusterServiceVersion) {
			c.Labels["olm.copiedFrom"] = "elsewhere"
		}))}, wedged},
		"not a CSV that is being deleted": {[]olmcore.Object{lost, brought, newCSV("etcd.v1", of("etcd", func(c *v1alpha1.ClusterServiceVersion) {
			c.DeletionTimestamp, c.Finalizers = secondp(50), []string{"x"}
		}))}, wedged},
		"not if the Subscription is being deleted": {[]olmcore.Object{newSub("a", leaving(50)), brought, v1}, wedged},
	} {
		t.Run(name, func(t *testing.T) {
			in := gathered(t, tc.objects)
			out := reconcile(t, in)
			require.Equal(t, tc.want, followed(statusOf(t, in, out, "a")))
			carryOut(&in, out)
			require.Empty(t, reconcile(t, in).Actions, "at rest after one write")
		})
	}
}

// TestSubscriptionLeavesASupersededPlan checks which plan a Subscription references once it has its version and its
// plan was superseded. Another writer or an earlier plan installed the version.
func TestSubscriptionLeavesASupersededPlan(t *testing.T) {
	ended := installedIs(corev1.ConditionFalse, "Superseded", "the versions of its Subscriptions are installed", 8)
	unstarted := func(p *v1alpha1.InstallPlan) { p.Status.Plan, p.Status.StartTime = nil, nil }
	begun := func(p *v1alpha1.InstallPlan) { p.Status.StartTime = secondp(3) }
	stranger := func(p *v1alpha1.InstallPlan) { p.OwnerReferences = nil }
	has := newSub("a", follows("q", "etcd.v1"), installed, pending("InstallPlanNotYetReconciled", 6))
	there, halfMade := newCSV("etcd.v1"), newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Labels, c.Status.Phase = map[string]string{"olm.managed": "true"}, v1alpha1.CSVPhasePending
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "etcds.example.com"}}
		c.Status.RequirementStatus = []v1alpha1.RequirementStatus{{Kind: "CustomResourceDefinition", Name: "etcds.example.com", Status: "NotPresent"}}
	})
	byHand := halfMade.DeepCopy()
	byHand.Labels = nil
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		plan    string // of the reference
		failed  bool   // the condition
	}{
		"no other plan exists":                   {[]olmcore.Object{has, there, newPlan("q", "Failed", unstarted, ended)}, "", false},
		"the version lacks its definition":       {[]olmcore.Object{has, halfMade, newPlan("q", "Failed", unstarted, ended)}, "", false},
		"a version by hand lacks its definition": {[]olmcore.Object{has, byHand, newPlan("q", "Failed", unstarted, ended)}, "", false},
		"another Subscription owns the other plan": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", unstarted, ended), newPlan("p", "Complete", stranger)}, "", false,
		},
		"the other plan failed": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", unstarted, ended), newPlan("p", "Failed", failed(8), begun)}, "", false,
		},
		"the other plan was not executed": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", unstarted, ended), newPlan("p", "RequiresApproval")}, "", false,
		},
		"the other plan installed the version": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", unstarted, ended), newPlan("p", "Complete")}, "p", false,
		},
		"its plan was superseded after its start": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", ended, begun), newPlan("p", "Complete")}, "q", true,
		},
		"its plan failed": {
			[]olmcore.Object{has, there, newPlan("q", "Failed", failed(8), begun), newPlan("p", "Complete")}, "q", true,
		},
		"its plan may get its steps": {[]olmcore.Object{has, there, newPlan("q", "", empty), newPlan("p", "Complete")}, "q", false},
		"it does not have its version": {
			[]olmcore.Object{newSub("a", follows("q", "etcd.v1")), newPlan("q", "Failed", unstarted, ended)}, "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := gathered(t, tc.objects)
			out := reconcile(t, in)
			s := statusOf(t, in, out, "a")
			got := ""
			if s.InstallPlanRef != nil {
				got = s.InstallPlanRef.Name
			}
			require.Equal(t, tc.plan, got)
			require.Equal(t, tc.failed, s.GetCondition(v1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue)
			if slices.Contains(tc.objects, olmcore.Object(there)) || slices.Contains(tc.objects, olmcore.Object(byHand)) {
				require.Equal(t, "etcd.v1 etcd.v1 AtLatestKnown", s.CurrentCSV+" "+s.InstalledCSV+" "+string(s.State))
			}
			carryOut(&in, out)
			require.Empty(t, reconcile(t, in).Actions, "at rest after one write")
		})
	}
}

// generated makes a Subscription one that a plan created for a dependency.
func generated(plan, csv string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Annotations, s.Spec.StartingCSV = map[string]string{"olm.generated-by": plan}, csv
	}
}
