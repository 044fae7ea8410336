// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/internal/sample"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
	"github.com/olmcore/olm/subscription/health/internal/rules"
)

// vocabulary has the words that health.Assess and the tables look at.
func vocabulary(words map[string][]string) gen.Vocabulary {
	all := map[string][]string{"": {"etcd.v1"}, "message": {"because"}, "status": {"True", "False"}, "reason": {"RequiresApproval", "Installing", "Other"}}
	for field, list := range words {
		all[field] = list
	}
	return gen.Vocabulary{Now: sample.Now, Namespace: sample.Namespace, Names: []string{"p"}, Words: all}
}

func statusOf(t require.TestingT, o olmcore.Object) rules.Status {
	r, err := rules.Evaluate(o)
	require.NoError(t, err)
	return r.Status
}

// TestSubscriptionRuleAgreesWithHealth checks that the rule for a Subscription alone agrees with package health if
// the version works and its InstallPlan is complete or waits for approval.
func TestSubscriptionRuleAgreesWithHealth(t *testing.T) {
	v := vocabulary(map[string][]string{
		"type":  {"ResolutionFailed", "BundleUnpackFailed", "BundleUnpacking", "InstallPlanPending", "InstallPlanMissing", "CatalogSourcesUnhealthy"},
		"state": {"AtLatestKnown"}, "currentcsv": {"etcd.v1"}, "installedcsv": {"etcd.v1"},
	})
	met := map[rules.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := sample.Sub("a", sample.Follows("p", "etcd.v1"))
		ref, install := s.Status.InstallPlanRef, s.Status.Install
		s.Status = gen.Value[v1alpha1.SubscriptionStatus](v).Draw(t, "status")
		s.Status.InstallPlanRef, s.Status.Install = ref, install
		seen := map[v1alpha1.SubscriptionConditionType]bool{} // each type once, as OLM writes them
		s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, func(c v1alpha1.SubscriptionCondition) bool {
			twice := seen[c.Type]
			seen[c.Type] = true
			return twice
		})
		in := sample.Input(s, sample.Plan("p", "Complete", sample.Done(9)), sample.CSV("etcd.v1"))
		of, is := sample.HealthOf(t, in).Phase, statusOf(t, s)
		met[is]++
		switch is {
		case rules.Healthy:
			require.Equal(t, health.Installed, of)
		case rules.Degraded:
			require.Contains(t, []health.Phase{health.Failed, health.Degraded}, of)
		}
		if of == health.Failed {
			require.Equal(t, rules.Degraded, is)
		}

		s = sample.Sub("a", sample.Follows("p", "etcd.v1"), sample.Pending("RequiresApproval", 6), func(s *v1alpha1.Subscription) {
			if rapid.Bool().Draw(t, "others cannot be resolved") {
				sample.WithCondition("ResolutionFailed", "ConstraintsNotSatisfiable", "x", 7)(s)
			}
		})
		require.Equal(t, rules.Suspended, statusOf(t, s))
		require.Equal(t, health.WaitingForApproval, sample.HealthOf(t, sample.Input(s, sample.Plan("p", "RequiresApproval", sample.Manual(1)))).Phase)
	})
	require.NotZero(t, met[rules.Healthy])
	require.NotZero(t, met[rules.Degraded])
}

func TestInstallPlanRuleAgreesWithHealth(t *testing.T) {
	v := vocabulary(map[string][]string{"phase": {"", "Planning", "RequiresApproval", "Installing", "Complete", "Failed", "Melting"}, "type": {"Installed"}})
	rapid.Check(t, func(t *rapid.T) {
		p := sample.Plan("p", "", sample.Manual(rapid.Int64Range(1, 2).Draw(t, "generation")), func(p *v1alpha1.InstallPlan) {
			p.Status = gen.Value[v1alpha1.InstallPlanStatus](v).Draw(t, "status")
			if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
				p.DeletionTimestamp = sample.Secondp(50)
			}
		})
		of := sample.HealthOf(t, sample.Input(sample.Sub("a", sample.Follows("p", "etcd.v1")), p)).Phase
		allowed := map[rules.Status][]health.Phase{
			rules.Healthy:     {health.Installing, health.Stuck}, // the version is to come, or was removed
			rules.Degraded:    {health.Failed},
			rules.Suspended:   {health.WaitingForApproval},
			rules.Unknown:     {health.Stuck},
			rules.Progressing: {health.Resolving, health.Unpacking, health.Installing, health.Stuck},
		}
		require.Contains(t, allowed[statusOf(t, p)], of)
	})
}

func TestCSVRuleAgreesWithHealth(t *testing.T) {
	v := vocabulary(map[string][]string{
		"phase":  {"", "Pending", "InstallReady", "Installing", "Succeeded", "Failed", "Unknown", "Replacing", "Deleting"},
		"reason": {"RequirementsNotMet", "OperatorConditionNotUpgradeable", "InstallWaiting", "ComponentUnhealthy"},
	})
	rapid.Check(t, func(t *rapid.T) {
		c := sample.CSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Status = gen.Value[v1alpha1.ClusterServiceVersionStatus](v).Draw(t, "status")
			if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
				c.DeletionTimestamp = sample.Secondp(50)
			}
		})
		in := sample.Input(sample.Sub("a", sample.Follows("p", "etcd.v1"), sample.Installed), sample.Plan("p", "Complete", sample.Done(9)), c)
		of, is := sample.HealthOf(t, in).Phase, statusOf(t, c)
		switch is {
		case rules.Healthy:
			require.Equal(t, health.Installed, of)
		case rules.Degraded:
			require.Contains(t, []health.Phase{health.Failed, health.Degraded}, of)
		default:
			require.NotEqual(t, health.Installed, of)
			if c.DeletionTimestamp == nil {
				require.Contains(t, []health.Phase{health.Installing, health.Upgrading}, of)
			}
		}
	})
}

func TestCatalogRuleAgreesWithHealth(t *testing.T) {
	for _, state := range []string{"READY", "CONNECTING", "TRANSIENT_FAILURE", "IDLE", "SHUTDOWN"} {
		c := sample.Catalog("olm", "cool", true)
		c.Status.GRPCConnectionState.LastObservedState = state
		in := sample.Input(sample.Sub("a"))
		in.Catalogs = &subscription.Catalogs{Sources: olmcore.Found(c)}
		h := sample.HealthOf(t, in)
		require.Equal(t, statusOf(t, c) == rules.Healthy, h.Reason != "UnhealthyCatalogSourceFound", state)
	}
}
