// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/controlplane"
)

// went returns the versions that a Subscription had installed, in their order.
func went(s *story) (versions []string) {
	for _, p := range list[*v1alpha1.InstallPlan](s) {
		versions = append(versions, p.Spec.ClusterServiceVersionNames...)
	}
	return versions
}

func TestUpgradesTakeTheirPath(t *testing.T) {
	t.Parallel()
	tell(t, "each version of a chain is installed in turn", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0", "alpha.v1.2.0 replaces alpha.v1.1.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.2.0")
		require.ElementsMatch(s, []string{"alpha.v1.0.0", "alpha.v1.1.0", "alpha.v1.2.0"}, went(s))
	})
	tell(t, "what is skipped is passed over", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0",
			"alpha.v1.2.0 replaces alpha.v1.0.0 skips alpha.v1.1.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.2.0")
		require.ElementsMatch(s, []string{"alpha.v1.0.0", "alpha.v1.2.0"}, went(s))
	})
	tell(t, "a version that is skipped and installed is upgraded too", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.1.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.1.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.2.0 replaces alpha.v1.0.0 skips alpha.v1.1.0"))
		s.installed("alpha", "alpha.v1.2.0")
	})
	tell(t, "a range of versions is passed over", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0", "alpha.v1.2.0 replaces alpha.v1.1.0",
			"alpha.v2.0.0 replaces alpha.v1.2.0 skipRange >=1.0.0 <2.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v2.0.0")
		require.ElementsMatch(s, []string{"alpha.v1.0.0", "alpha.v2.0.0"}, went(s))
	})
	tell(t, "a version below the range takes the chain until it is inside", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0", "alpha.v1.2.0 replaces alpha.v1.1.0",
			"alpha.v2.0.0 replaces alpha.v1.2.0 skipRange >=1.1.0 <2.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v2.0.0")
		require.ElementsMatch(s, []string{"alpha.v1.0.0", "alpha.v1.1.0", "alpha.v2.0.0"}, went(s))
	})
	tell(t, "a version that the catalog takes back stays installed", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.1.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.atRest()
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "the old version is replaced, then deleted", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.1.0")
		s.until("the old version is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
		eventually(s, "it was replaced first", func() []string {
			return after(s.transitions("ClusterServiceVersion", "alpha.v1.0.0", "Phase"), "Replacing")
		},
			[]string{"Replacing", "Deleting"})
		s.goesThrough("ClusterServiceVersion", "alpha.v1.1.0", "Phase", "Pending", "InstallReady", "Installing", "Succeeded")
		require.Contains(s, container(s).Image, "v1.1.0")
	})
	tell(t, "an API is handed from the old version to the new one", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
			bundle("alpha.v1.0.0", owns("Widget")).bundle("alpha.v1.1.0", owns("Widget")))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.1.0")
		s.until("the old version is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
		eventually(s, "the CustomResourceDefinition was there already", func() []string { return steps(s.plan("alpha"))[:2] },
			[]string{"ClusterServiceVersion alpha.v1.1.0: Created", "CustomResourceDefinition widgets.NS.example.com: Present"})
	})
}

func TestUpgradesWaitForTheOperator(t *testing.T) {
	t.Parallel()
	chain := func() *pack {
		return pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0")
	}
	upgradeable := func(status metav1.ConditionStatus, message string) func(*operatorsv2.OperatorCondition) {
		return func(o *operatorsv2.OperatorCondition) {
			o.Spec.Conditions = []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: status, Reason: "Busy", Message: message, LastTransitionTime: metav1.Now()}}
		}
	}
	tell(t, "which says that it is not upgradeable", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha.v1.0.0", upgradeable(metav1.ConditionFalse, "a migration runs"))
		says[*operatorsv2.OperatorCondition](s, "alpha.v1.0.0", operatorsv2.Upgradeable, "False Busy: a migration runs")
		s.publish("community", chain())
		eventually(s, "the new version waits", func() string {
			status := s.csv("alpha.v1.1.0").Status
			return string(status.Phase) + " " + string(status.Reason) + ": " + status.Message
		}, "Pending OperatorConditionNotUpgradeable: operator is not upgradeable: the operator is not upgradeable: a migration runs")
		require.Equal(s, v1alpha1.CSVPhaseReplacing, s.csv("alpha.v1.0.0").Status.Phase)
		require.Contains(s, container(s).Image, "v1.0.0")
		edit(s, "alpha.v1.0.0", upgradeable(metav1.ConditionTrue, "done"))
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "unless an administrator overrides what it says", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		edit(s, "alpha.v1.0.0", upgradeable(metav1.ConditionFalse, "a migration runs"))
		says[*operatorsv2.OperatorCondition](s, "alpha.v1.0.0", operatorsv2.Upgradeable, "False Busy: a migration runs")
		s.publish("community", chain())
		eventually(s, "the new version waits", func() v1alpha1.ConditionReason { return s.csv("alpha.v1.1.0").Status.Reason }, "OperatorConditionNotUpgradeable")
		edit(s, "alpha.v1.0.0", func(o *operatorsv2.OperatorCondition) {
			o.Spec.Overrides = []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: "Forced", Message: "now", LastTransitionTime: metav1.Now()}}
		})
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "which gets the name of its OperatorCondition, and may write it", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		condition := get[*operatorsv2.OperatorCondition](s, "alpha.v1.0.0")
		require.Equal(s, []string{"alpha"}, condition.Spec.ServiceAccounts)
		require.Equal(s, []string{"alpha"}, condition.Spec.Deployments)
		names := map[string]string{}
		for _, e := range container(s).Env {
			names[e.Name] = e.Value
		}
		require.Equal(s, "alpha.v1.0.0", names["OPERATOR_CONDITION_NAME"])
	})
	tell(t, "whose condition goes with its version", func(s *story) {
		s.group()
		s.catalog("community", chain())
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.1.0")
		s.until("the condition of the old version is gone", func() bool { return !exists[*operatorsv2.OperatorCondition](s, "alpha.v1.0.0") })
		require.True(s, exists[*operatorsv2.OperatorCondition](s, "alpha.v1.1.0"))
	})
}

func failForward(o *operatorsv1.OperatorGroup) {
	o.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
}

func TestFailForward(t *testing.T) {
	t.Parallel()
	// failing is an operator whose version 1.1.0 never runs.
	failing := func(s *story) {
		s.imageIs("alpha:v1.1.0", controlplane.Image{NeverReady: true})
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		eventually(s, "version 1.1.0 has failed", func() v1alpha1.ClusterServiceVersionPhase { return s.csv("alpha.v1.1.0").Status.Phase }, v1alpha1.CSVPhaseFailed)
	}
	repaired := func() *pack {
		return pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0", "alpha.v1.2.0 replaces alpha.v1.0.0 skips alpha.v1.1.0")
	}
	tell(t, "without it a version that failed is followed by none", func(s *story) {
		failing(s)
		s.publish("community", repaired())
		s.atRest()
		require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.2.0"))
		require.Equal(s, "alpha.v1.1.0", s.subscription("alpha").Status.InstalledCSV)
		require.Equal(s, v1alpha1.CSVPhaseReplacing, s.csv("alpha.v1.0.0").Status.Phase)
	})
	tell(t, "with it a version that failed is followed by one that skips it", func(s *story) {
		failing(s)
		edit(s, "group", failForward)
		s.publish("community", repaired())
		s.installed("alpha", "alpha.v1.2.0")
		s.until("the version that failed is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.1.0") })
	})
	tell(t, "with it a plan that failed makes the Subscription UpgradeFailed, and a later version is installed", func(s *story) {
		s.group()
		edit(s, "group", failForward)
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").bundle("alpha.v1.1.0", brings(monitor)))
		s.planned("alpha", v1alpha1.InstallPlanPhaseFailed, "alpha.v1.1.0")
		eventually(s, "the upgrade failed", func() v1alpha1.SubscriptionState { return s.subscription("alpha").Status.State }, v1alpha1.SubscriptionStateFailed)
		s.publish("community", repaired())
		s.installed("alpha", "alpha.v1.2.0")
	})
	tell(t, "without it a plan that failed holds the Subscription until the plan is deleted", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").bundle("alpha.v1.1.0", brings(monitor)))
		s.planned("alpha", v1alpha1.InstallPlanPhaseFailed, "alpha.v1.1.0")
		s.publish("community", repaired())
		s.atRest()
		require.Equal(s, v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateUpgradePending), s.subscription("alpha").Status.State)
		s.planned("alpha", v1alpha1.InstallPlanPhaseFailed, "alpha.v1.1.0")
		remove[*v1alpha1.InstallPlan](s, s.plan("alpha").Name)
		s.installed("alpha", "alpha.v1.2.0")
	})
}

// monitor is a manifest of an API that the cluster does not have.
const monitor = `
apiVersion: monitoring.NS.example.com/v1
kind: ServiceMonitor
metadata: {name: alpha}
spec: {}
`
