// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// steps are the versions of hops, with what is in the way.
func steps(hops []preview.Preview) (all []string) {
	for _, p := range hops {
		line := ""
		for _, v := range p.Versions {
			line += v.Replaces + ">" + v.Name
		}
		for _, b := range p.Blocked {
			line += " (" + b.Reason + ")"
		}
		all = append(all, line)
	}
	return all
}

// series are n versions, each replacing the one before.
func series(n int) (all []bundle) {
	for i := range n {
		b := upgradetest.BundleOf(1)
		b.CSV.Name, b.CSV.Spec.Version.Major = fmt.Sprintf("vault.v%d.0.0", i+1), uint64(i+1)
		if i > 0 {
			b.CSV.Spec.Replaces = all[i-1].CSV.Name
		}
		all = append(all, b)
	}
	return all
}

func TestHops(t *testing.T) {
	ctx := context.Background()
	all := series(3)
	w := upgradetest.Offering(t, all[:1])
	hops := func() []string {
		t.Helper()
		in, err := preview.GatherNamespace(ctx, w.Cluster, upgradetest.Namespace, w.Cluster.Now(), w.OLM.Options)
		require.NoError(t, err)
		hops, err := preview.Hops(ctx, in, upgradetest.Subscription)
		require.NoError(t, err)
		return steps(hops)
	}
	require.Equal(t, []string{">vault.v1.0.0"}, hops())
	w.Approve(t)
	require.Empty(t, hops(), "the catalog has nothing newer")
	w.Offer(t, all...)
	require.Equal(t, []string{"vault.v1.0.0>vault.v2.0.0", "vault.v2.0.0>vault.v3.0.0"}, hops(), "not a plan yet")
	w.Run(t)
	require.Equal(t, []string{"vault.v1.0.0>vault.v2.0.0", "vault.v2.0.0>vault.v3.0.0"}, hops(), "the plan waits")
	require.NoError(t, fake.Edit(w.Cluster, upgradetest.Namespace, upgradetest.Subscription, func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalAutomatic }))
	require.Equal(t, []string{"vault.v1.0.0>vault.v2.0.0", "vault.v2.0.0>vault.v3.0.0"}, hops(), "what is approved by itself is told hop by hop")

	all[1].CSV.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "keys.safe.example.com", Version: "v1", Kind: "Key"}}
	w.Offer(t, all...)
	_, err := preview.Hops(ctx, preview.Input{Now: w.Cluster.Now()}, "vault")
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	in, err := preview.GatherNamespace(ctx, w.Cluster, upgradetest.Namespace, w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	_, err = preview.Hops(ctx, in, "other")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestHopsStopAtWhatIsInTheWay: the second hop needs what is not there.
func TestHopsStopAtWhatIsInTheWay(t *testing.T) {
	ctx := context.Background()
	all := series(3)
	all[1].CSV.Spec.MinKubeVersion = "1.99.0"
	w := upgradetest.Offering(t, all[:1])
	w.Approve(t)
	w.Offer(t, all...)
	in, err := preview.GatherNamespace(ctx, w.Cluster, upgradetest.Namespace, w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	hops, err := preview.Hops(ctx, in, upgradetest.Subscription)
	require.NoError(t, err)
	require.Equal(t, []string{"vault.v1.0.0>vault.v2.0.0 (RequirementsNotMet)"}, steps(hops))
}
