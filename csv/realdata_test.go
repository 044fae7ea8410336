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
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
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
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, csv.Outcome{}, out, "a converged CSV asks for nothing")
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = csv.Reconcile(in) }))

			require.NoError(t, cluster.Delete(refOf(live)))
			require.NoError(t, driver.RunUntilIdle(context.Background(), 600e9))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespace, name))
			require.Empty(t, clusterObjectsOf(cluster, live), "nothing cluster-scoped is left")
		})
	}
}

// TestPublishedCSVsSurviveADowntimeAtAnyMoment installs and deletes published
// operators, two at once, while the controllers are down at random moments and
// writes get lost: each ends Succeeded, and leaves nothing behind.
func TestPublishedCSVsSurviveADowntimeAtAnyMoment(t *testing.T) {
	all := realCSVs(t)
	names := slices.Sorted(maps.Keys(all))
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		disturb := func() {
			for range rapid.IntRange(0, 6).Draw(t, "rounds") {
				if rapid.IntRange(0, 2).Draw(t, "fault") == 0 {
					cluster.Inject(fake.Fault{
						Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
						Nth:  rapid.IntRange(1, 3).Draw(t, "nth"),
					})
				}
				_, err := driver.Round(ctx)
				require.NoError(t, err)
				require.NoError(t, cluster.RunFor(time.Duration(rapid.SampledFrom([]int{0, 1, 40, 400}).Draw(t, "down"))*time.Second))
			}
		}
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

func sharesAnAPI(a, b *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(a.Spec.CustomResourceDefinitions.Owned, func(x v1alpha1.CRDDescription) bool {
		return slices.ContainsFunc(b.Spec.CustomResourceDefinitions.Owned, func(y v1alpha1.CRDDescription) bool { return x.Name == y.Name })
	})
}
