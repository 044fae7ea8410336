// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

// answersOf returns the Summary of all tenants of a fake cluster, and checks each answer.
func answersOf(t *testing.T, h *chaos.History) (all health.Summary, answers []health.Health) {
	t.Helper()
	for _, namespace := range chaos.Tenants() {
		in, err := health.Gather(context.Background(), h.Cluster, namespace, subscription.Config{})
		require.NoError(t, err)
		in.Now = h.Cluster.Now()
		of, err := health.Assess(in)
		require.NoError(t, err)
		require.Len(t, of, len(in.Subscriptions.Items))
		for name, a := range of {
			require.Equal(t, name, a.Subscription.Name)
			require.GreaterOrEqual(t, health.Failed.Badness(), a.Phase.Badness())
			require.NotEmpty(t, a.Object.Name, a)
			require.False(t, a.Since.After(in.Now.Add(time.Hour)), a) // clocks of managers are wrong
			answers = append(answers, a)
		}
		all = all.Merge(health.Summarize(of))
	}
	return all, answers
}

// TestSubscriptionsAreInstalledOnceTheClusterRecovers checks that each Subscription has a Health while parts of a
// fake cluster fail, and that all Subscriptions are Installed after the cluster recovered.
func TestSubscriptionsAreInstalledOnceTheClusterRecovers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 20260102))
	h := chaos.New(chaos.Options{Setting: chaos.Setting{Approves: true, Deletes: true}})
	steps, met := chaos.Steps(h.Options), map[health.Phase]int{}
	for range 600 {
		require.NoError(t, h.Do(chaos.Draw(steps, random), random))
		_, answers := answersOf(t, h)
		for _, a := range answers {
			met[a.Phase]++
		}
	}
	require.Greater(t, len(met), 3, "%v", met)
	require.NoError(t, h.Heal())
	all, _ := answersOf(t, h)
	require.Equal(t, map[health.Phase]int{health.Installed: all.Subscriptions}, all.Phases, "%+v", all.Act)
}

// TestFailedUpgradeNamesTheNewVersion checks that the version that fails is reported as the blocking object. The
// resolver fails, too, because it finds two versions of one Subscription.
func TestFailedUpgradeNamesTheNewVersion(t *testing.T) {
	const broken = "registry.example.com/broken:2"
	w := upgradetest.New(t, func(_, second *upgradetest.Bundle) {
		second.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = broken
	})
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	require.Equal(t, corev1.ConditionTrue, w.Subscribed().Status.GetCondition(v1alpha1.SubscriptionResolutionFailed).Status)
	in, err := health.Gather(context.Background(), w.Cluster, upgradetest.Namespace, subscription.Config{})
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	answers, err := health.Assess(in)
	require.NoError(t, err)
	h := answers[upgradetest.Subscription]
	require.Equal(t, []string{"Degraded", "Deployment ops/vault-operator", "ProgressDeadlineExceeded"}, []string{string(h.Phase), h.Object.String(), h.Reason})
}
