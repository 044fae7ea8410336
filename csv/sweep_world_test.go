// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestSweepFindsWhatAnOldControllerLeft: the finalizer is taken off by hand, and the group is deleted; a sweep removes
// what is left of both.
func TestSweepFindsWhatAnOldControllerLeft(t *testing.T) {
	ctx := context.Background()
	cluster, driver := install(t, small(t))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	bare := live.DeepCopy()
	bare.Finalizers = nil
	require.NoError(t, cluster.Do(ctx, olmcore.UpdateOf(live, bare, olmcore.Cause{})))
	require.NoError(t, cluster.Delete(refOf(live)))
	require.NoError(t, cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup", Namespace: "ns", Name: "group"}))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.NoError(t, cluster.RunFor(time.Hour))
	require.NotEmpty(t, clusterObjectsOf(cluster, live))

	in, err := sweep.Gather(ctx, cluster, cleanup.Config{SweepDelete: true})
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err := sweep.Reconcile(in)
	require.NoError(t, err)
	require.NoError(t, olmcore.Run(ctx, cluster, res.Actions))
	require.Empty(t, clusterObjectsOf(cluster, live))
	for _, o := range cluster.Objects() {
		_, owned := olmcore.OwnerOf(o.GetLabels())
		require.False(t, owned && o.GetNamespace() == "", "%s", olmcore.KeyOf(o))
	}
	in, err = sweep.Gather(ctx, cluster, cleanup.Config{})
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err = sweep.Reconcile(in)
	require.NoError(t, err)
	require.Empty(t, res.Result)
}
