// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

func TestEveryPublishedCSVReachesSucceededAndIsCleanedUp(t *testing.T) {
	csvs := realCSVs(t)
	for _, name := range slices.Sorted(maps.Keys(csvs)) {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, csvs[name])
			namespace := csvs[name].Namespace
			if namespace == "" {
				namespace = "operators"
			}
			live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespace, name)
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, live.Status.Phase, "%s: %s\n%s", live.Status.Reason, live.Status.Message, fake.Format(driver.Events))

			in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: namespace, Name: name}, csv.Config{})
			require.NoError(t, err)
			in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
			out, err := outcome(in)
			require.NoError(t, err)
			require.Equal(t, csv.Outcome{}, out, "a converged CSV asks for nothing")

			require.NoError(t, cluster.Delete(refOf(live)))
			require.NoError(t, driver.RunUntilIdle(context.Background(), 600e9))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespace, name))
			require.Empty(t, clusterObjectsOf(cluster, live), "nothing cluster-scoped is left")
		})
	}
}

// TestPublishedCSVsSurviveADowntimeAtAnyMoment installs and deletes published operators, two at once, while the
// controllers are down at random moments and writes get lost: each ends Succeeded, and leaves nothing behind.
func TestPublishedCSVsSurviveADowntimeAtAnyMoment(t *testing.T) {
	all := realCSVs(t)
	names := slices.Sorted(maps.Keys(all))
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		disturb := func() { disturb(t, cluster, driver) }
		var live []*v1alpha1.ClusterServiceVersion
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(names)-1), 1, 2, rapid.ID).Draw(t, "operators") {
			c := all[names[i]].DeepCopy()
			c.Namespace, c.Spec.Replaces = fmt.Sprintf("ns-%d", i), ""
			live = append(live, c)
		}
		for _, crd := range definitionsFor(live...) {
			require.NoError(t, cluster.Create(crd))
		}
		for _, c := range live {
			g := groupFor(c)
			require.NoError(t, cluster.Create(needs(c)...))
			require.NoError(t, cluster.Create(g, c))
			disturb()
		}
		shared := len(live) == 2 && sharesAnAPI(live[0], live[1])
		cluster.Recover()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		ready := 0
		for _, c := range live {
			got := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name)
			if got.Status.Phase == succeeded {
				ready++
			} else {
				require.True(t, shared, "%s: %s %s", c.Name, got.Status.Phase, got.Status.Message)
				require.Equal(t, v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, got.Status.Reason)
			}
		}
		require.NotZero(t, ready, "one of two that provide the same runs")
		for _, c := range live {
			got := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name)
			require.NoError(t, cluster.Delete(refOf(got)))
			disturb()
		}
		cluster.Recover()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		for _, c := range live {
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name))
			require.Empty(t, clusterObjectsOf(cluster, c))
		}
	})
}

// disturb runs a few rounds with writes that get lost and controllers that are down in between.
func disturb(t *rapid.T, cluster *fake.Cluster, driver *fake.Driver) {
	for range rapid.IntRange(0, 6).Draw(t, "rounds") {
		if rapid.IntRange(0, 2).Draw(t, "fault") == 0 {
			cluster.Inject(fake.Fault{
				Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
				Nth:  rapid.IntRange(1, 3).Draw(t, "nth"),
			})
		}
		_, err := driver.Round(context.Background())
		require.NoError(t, err)
		require.NoError(t, cluster.RunFor(time.Duration(rapid.SampledFrom([]int{0, 1, 40, 400}).Draw(t, "down"))*time.Second))
	}
}

func sharesAnAPI(a, b *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(a.Spec.CustomResourceDefinitions.Owned, func(x v1alpha1.CRDDescription) bool {
		return slices.ContainsFunc(b.Spec.CustomResourceDefinitions.Owned, func(y v1alpha1.CRDDescription) bool { return x.Name == y.Name })
	})
}

// publishedUpgrades returns the operators of which two versions are published, the second replacing the first.
func publishedUpgrades(t *testing.T) [][2]*v1alpha1.ClusterServiceVersion {
	var found [][2]*v1alpha1.ClusterServiceVersion
	last := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, b := range realdata.ClusterServiceVersions(t) { // skips without shared/data
		for _, o := range b.Objects {
			c, ok := o.(*v1alpha1.ClusterServiceVersion)
			if !ok {
				continue
			}
			c = c.DeepCopy()
			c.Namespace, c.Spec.Replaces = "ns", ""
			if before := last[b.Operator]; before != nil {
				c.Spec.Replaces = before.Name
				found = append(found, [2]*v1alpha1.ClusterServiceVersion{before, c})
			}
			last[b.Operator] = c
		}
	}
	return found
}

// define brings the definitions of a version, as its InstallPlan does: what it does not describe any more is not served
// any more.
func define(t require.TestingT, cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) {
	for _, crd := range definitionsFor(c) {
		if fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", crd.Name) == nil {
			require.NoError(t, cluster.Create(crd))
			continue
		}
		require.NoError(t, fake.Edit(cluster, "", crd.Name, func(live *apiextensionsv1.CustomResourceDefinition) {
			for i := range live.Spec.Versions {
				live.Spec.Versions[i].Served = false
			}
			for _, v := range crd.Spec.Versions {
				i := slices.IndexFunc(live.Spec.Versions, func(l apiextensionsv1.CustomResourceDefinitionVersion) bool { return l.Name == v.Name })
				if i < 0 {
					v.Storage, i = false, len(live.Spec.Versions)
					live.Spec.Versions = append(live.Spec.Versions, v)
				}
				live.Spec.Versions[i].Served = true
			}
		}))
	}
}

// TestPublishedUpgradesSurviveADowntimeAtAnyMoment: the second version of each published operator comes at any moment
// of the first one's life, while writes get lost and controllers are down. The first one goes with all that is its own,
// nothing that the second needs goes, and in the end neither leaves anything.
func TestPublishedUpgradesSurviveADowntimeAtAnyMoment(t *testing.T) {
	ctx := context.Background()
	upgrades := publishedUpgrades(t)
	require.NotEmpty(t, upgrades)
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SampledFrom(upgrades).Draw(t, "upgrade")
		first, second := pair[0], pair[1]
		cluster, driver := newWorld(csv.Config{})
		define(t, cluster, first)
		require.NoError(t, cluster.Create(needs(first)...))
		require.NoError(t, cluster.Create(groupFor(first), first))
		disturb(t, cluster, driver)
		if rapid.Bool().Draw(t, "installed") { // otherwise the second comes while the first is on its way
			require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
			define(t, cluster, second)
		} else {
			for _, crd := range definitionsFor(first, second) {
				require.NoError(t, ignoreExisting(cluster.Create(crd)))
			}
		}
		for _, o := range needs(second) {
			require.NoError(t, ignoreExisting(cluster.Create(o)))
		}
		require.NoError(t, cluster.Create(second))
		disturb(t, cluster, driver)
		if live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", first.Name); live != nil && len(live.Finalizers) > 0 && rapid.Bool().Draw(t, "impatient") {
			require.NoError(t, cluster.Delete(refOf(live)))
			disturb(t, cluster, driver)
		}
		cluster.Recover()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", first.Name), "%s", fake.Format(driver.Events))
		require.Empty(t, clusterObjectsOf(cluster, first))
		live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", second.Name)
		require.Equal(t, succeeded, live.Status.Phase, "%s: %s\n%s", live.Status.Reason, live.Status.Message, fake.Format(driver.Events))
		exists := map[olmcore.Key]bool{}
		for _, o := range cluster.Objects() {
			exists[olmcore.KeyOf(o)] = true
		}
		for _, o := range needs(second) {
			require.True(t, exists[olmcore.KeyOf(o)], "%s went with the first version", olmcore.KeyOf(o))
		}
		require.NoError(t, cluster.Delete(refOf(live)))
		disturb(t, cluster, driver)
		cluster.Recover()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		require.Empty(t, csvs(cluster), "%s", fake.Format(driver.Events))
		require.Empty(t, clusterObjectsOf(cluster, second))
	})
}
