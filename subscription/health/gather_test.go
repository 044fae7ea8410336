// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/sample"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

// TestGatherReadsEveryKindThatOfUses checks that Gather reads the kinds that Of uses. A kind that is not read is
// incomplete.
func TestGatherReadsEveryKindThatOfUses(t *testing.T) {
	ctx := context.Background()
	objects := []olmcore.Object{newSub("a"), newDeployment("etcd"), newPod("etcd-1", 1)}
	elsewhere := newPod("etcd-2", 1)
	elsewhere.Namespace = "other"
	snapshot, err := olmcore.NewSnapshot(append(objects, elsewhere), olmcore.Everything)
	require.NoError(t, err)
	in, err := health.Gather(ctx, snapshot, "ops", subscription.Config{})
	require.NoError(t, err)
	of, err := subscription.Gather(ctx, snapshot, "ops", subscription.Config{})
	require.NoError(t, err)
	require.Equal(t, health.Input{Input: of, Deployments: olmcore.Found(newDeployment("etcd")), Pods: olmcore.Found(newPod("etcd-1", 1))}, in)

	var scopes []olmcore.Scope
	for _, kind := range []string{v1alpha1.SubscriptionKind, v1alpha1.InstallPlanKind, v1alpha1.ClusterServiceVersionKind, "OperatorGroup"} {
		scopes = append(scopes, olmcore.Scope{Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: kind}})
	}
	snapshot, err = olmcore.NewSnapshot([]olmcore.Object{newSub("a")}, scopes...)
	require.NoError(t, err)
	in, err = health.Gather(ctx, snapshot, "ops", subscription.Config{})
	require.NoError(t, err)
	require.False(t, in.Deployments.Complete)
	require.Equal(t, olmcore.Observed[*corev1.Pod]{}, in.Pods)
}

func TestGatherReturnsTheErrorOfAFailedRead(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{newSub("a")}, olmcore.Everything)
	require.NoError(t, err)
	for n := 0; ; n++ {
		left := n
		_, err := health.Gather(context.Background(), sample.Failing{Reader: snapshot, Left: &left}, "ops", subscription.Config{})
		if left >= 0 {
			require.NoError(t, err)
			require.Equal(t, 5, n) // without names of versions these are not read
			return
		}
		require.ErrorIs(t, err, sample.ErrRead)
	}
}
