// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription/resolution"
)

// twoChannels: stable leads from 1.0.0 to 1.1.0, beta on from there to 2.0.0.
func twoChannels() *pack {
	return pkg("alpha").
		channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
		channel("beta", "alpha.v1.1.0", "alpha.v2.0.0 replaces alpha.v1.1.0")
}

func TestSubscriptionsFollowAChannel(t *testing.T) {
	t.Parallel()
	tell(t, "the head of the channel is installed", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.1.0")
		require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0"))
		s.goesThrough("Subscription", "alpha", "State", "UpgradePending", "AtLatestKnown")
	})
	tell(t, "without a channel the default channel of the package counts", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").channel("beta", "alpha.v2.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "a starting version is installed first, and then upgraded to the head", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"), startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.1.0")
		s.goesThrough("Subscription", "alpha", "State", "UpgradePending", "AtLatestKnown", "UpgradePending", "AtLatestKnown")
		s.until("the version that is replaced is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
	})
	tell(t, "with manual approval a starting version can be held", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"), startingAt("alpha.v1.0.0"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
		s.until("the first version has succeeded", func() bool { return s.csv("alpha.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded })
		require.Equal(s, "alpha.v1.0.0", s.subscription("alpha").Status.InstalledCSV)
	})
	tell(t, "a version that the catalog gets later is installed", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", twoChannels())
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "the other channel is followed once the Subscription names it", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.1.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.Channel = "beta" })
		s.installed("alpha", "alpha.v2.0.0")
	})
	tell(t, "a channel without a way from what is installed changes nothing", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").channel("other", "alpha.v2.0.0"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.Channel = "other" })
		s.atRest()
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "ResolutionFailed", "")
	})
	tell(t, "a version range holds the operator inside of it", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"), startingAt("alpha.v1.0.0"), manual)
		edit(s, "alpha", func(o *v1alpha1.Subscription) {
			o.Annotations = map[string]string{resolution.AnnotationVersionRange: "<1.1.0"}
			o.Spec.InstallPlanApproval = v1alpha1.ApprovalAutomatic
		})
		s.until("the plan has a phase", func() bool { return s.plan("alpha").Status.Phase != "" })
		if s.plan("alpha").Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval {
			s.approve("alpha")
		}
		s.installed("alpha", "alpha.v1.0.0")
		s.atRest()
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Annotations = nil })
		s.installed("alpha", "alpha.v1.1.0")
	})
}

func TestSubscriptionsAskForApproval(t *testing.T) {
	t.Parallel()
	tell(t, "nothing is installed until the plan is approved", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanPending", "True RequiresApproval")
		s.atRest()
		require.Empty(s, list[*v1alpha1.ClusterServiceVersion](s))
		require.Equal(s, v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateUpgradePending), s.subscription("alpha").Status.State)
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.1.0")
		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanPending", "")
		eventually(s, "each stage of the plan was reported", func() []string { return s.transitions("Subscription", "alpha", "InstallPlan") },
			[]string{"NotYetReconciled", "RequiresApproval", "Installing", "Complete"})
	})
	tell(t, "an upgrade asks again", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", twoChannels())
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
		require.Equal(s, "alpha.v1.0.0", s.subscription("alpha").Status.InstalledCSV)
		require.Equal(s, "alpha.v1.1.0", s.subscription("alpha").Status.CurrentCSV)
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "one manual Subscription makes the plan of all in the namespace manual", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"), pkg("beta").channel("stable", "beta.v1.0.0"))
		s.subscribe("alpha", manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.subscribe("beta")
		s.until("beta has a plan", func() bool { return s.plan("beta").Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval })
		require.Equal(s, v1alpha1.ApprovalManual, s.plan("beta").Spec.Approval)
		require.False(s, s.plan("beta").Spec.Approved)
		s.approve("beta")
		s.installed("beta", "beta.v1.0.0")
	})
	tell(t, "a plan that waits is not followed by a newer version until it is approved", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.publish("community", twoChannels())
		s.atRest()
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
	})
	tell(t, "a plan that waits and is deleted is made anew, for what is the head by then", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.publish("community", twoChannels())
		remove[*v1alpha1.InstallPlan](s, s.plan("alpha").Name)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanMissing", "")
	})
	tell(t, "an approval that is taken back before the plan could begin counts for nothing", func(s *story) {
		s.given(scoped)
		s.catalog("community", alphaWith())
		s.subscribe("alpha", manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.until("it waits for its account", func() bool {
			return strings.HasPrefix(conditionOf(s.plan("alpha"), "Installed"), "False InstallCheckFailed") && s.plan("alpha").Spec.Approved
		})
		s.withdraw("alpha")
		s.given(everything)
		s.given(installer)
		says[*v1alpha1.InstallPlan](s, s.plan("alpha").Name, "Installed", "")
		s.atRest()
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0"))
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "an approval that is taken back afterwards takes nothing back", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha", manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		s.withdraw("alpha")
		s.atRest()
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "the plan of an installed version may be deleted, and the Subscription says that it is missing", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.1.0")
		remove[*v1alpha1.InstallPlan](s, s.plan("alpha").Name)
		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanMissing", "True ReferencedInstallPlanNotFound")
		s.installed("alpha", "alpha.v1.1.0")
	})
}

func TestSubscriptionsOfOneNamespace(t *testing.T) {
	t.Parallel()
	two := func() []*pack {
		return []*pack{pkg("alpha").channel("stable", "alpha.v1.0.0"), pkg("beta").channel("stable", "beta.v1.0.0")}
	}
	tell(t, "share a plan when they are resolved together", func(s *story) {
		s.catalog("community", two()...)
		s.subscribe("alpha")
		s.subscribe("beta")
		s.group()
		s.installed("alpha", "alpha.v1.0.0")
		s.installed("beta", "beta.v1.0.0")
		require.Equal(s, s.plan("alpha").Name, s.plan("beta").Name)
		require.ElementsMatch(s, []string{"alpha", "beta"}, owners(s.plan("alpha")))
	})
	tell(t, "one that cannot be resolved does not stop the other", func(s *story) {
		s.group()
		s.catalog("community", two()...)
		s.subscribe("gamma")
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "gamma", "ResolutionFailed", "True ConstraintsNotSatisfiable: constraints not satisfiable: "+
			"no operators found in package gamma in the catalog referenced by subscription gamma, subscription gamma exists")
		says[*v1alpha1.Subscription](s, "alpha", "ResolutionFailed", "")
	})
	tell(t, "a deleted one leaves its operator behind", func(s *story) {
		s.group()
		s.catalog("community", two()...)
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		remove[*v1alpha1.Subscription](s, "alpha")
		s.until("it is gone", func() bool { return !exists[*v1alpha1.Subscription](s, "alpha") })
		s.atRest()
		require.Equal(s, v1alpha1.CSVPhaseSucceeded, s.csv("alpha.v1.0.0").Status.Phase)
	})
	tell(t, "a new one for an operator that was left behind says what is in its way", func(s *story) {
		s.group()
		s.catalog("community", two()...)
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		remove[*v1alpha1.Subscription](s, "alpha")
		s.until("it is gone", func() bool { return !exists[*v1alpha1.Subscription](s, "alpha") })
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", "ResolutionFailed", "True ConstraintsNotSatisfiable: constraints not satisfiable: "+
			"@existing/NS//alpha.v1.0.0 and community/NS/stable/alpha.v1.0.0 originate from package alpha, "+
			"clusterserviceversion alpha.v1.0.0 exists and is not referenced by a subscription, "+
			"subscription alpha exists, subscription alpha requires community/NS/stable/alpha.v1.0.0")
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "ResolutionFailed", "")
	})
}

func TestSubscriptionsAreEdited(t *testing.T) {
	t.Parallel()
	tell(t, "from manual to automatic approval, and the next plan is not asked about", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"), manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.InstallPlanApproval = v1alpha1.ApprovalAutomatic })
		s.publish("community", twoChannels())
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "from automatic to manual approval, and the next plan is asked about", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha", manualNow)
		s.publish("community", twoChannels())
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
	})
	tell(t, "from one catalog to another, which has the upgrade", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.catalog("other", twoChannels())
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.CatalogSource = "other" })
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "to a channel that is not in the catalog, and what is installed stays", func(s *story) {
		s.group()
		s.catalog("community", twoChannels())
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.1.0")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.Channel = "nightly" })
		s.atRest()
		s.installed("alpha", "alpha.v1.1.0")
	})
}

// manualNow asks for approval from now on.
func manualNow(o *v1alpha1.Subscription) { o.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }

// owners are the names of an object's owners.
func owners(p *v1alpha1.InstallPlan) (names []string) {
	for _, ref := range p.OwnerReferences {
		names = append(names, ref.Name)
	}
	return names
}
