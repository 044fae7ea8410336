// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/subscription/resolution"
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

// TestHopsSayWhyThereAreNone: it cannot be resolved, or what comes is in an image alone.
func TestHopsSayWhyThereAreNone(t *testing.T) {
	sub := olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: "ops", Name: "vault"}
	for name, tt := range map[string]struct {
		change func(w *upgradetest.World)
		want   preview.Block
	}{
		"unresolved": {func(w *upgradetest.World) {
			require.NoError(t, fake.Edit(w.Cluster, sub.Namespace, sub.Name, func(s *v1alpha1.Subscription) {
				s.Spec.Package, s.Status = "other", v1alpha1.SubscriptionStatus{}
			}))
			require.NoError(t, fake.Edit(w.Cluster, sub.Namespace, upgradetest.First, func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }))
			require.NoError(t, w.Cluster.Do(t.Context(), olmcore.DeleteOf(fake.Find[*v1alpha1.ClusterServiceVersion](w.Cluster, sub.Namespace, upgradetest.First), olmcore.Cause{Reason: "Test"})))
		}, preview.Block{
			Object: sub, Reason: "ConstraintsNotSatisfiable",
			Message: "constraints not satisfiable: no operators found in package other in the catalog referenced by subscription vault, subscription vault exists",
		}},
		"packed": {func(w *upgradetest.World) {
			version := func(v string) []olmcore.Property {
				return []olmcore.Property{{Type: resolution.PropertyPackage, Value: []byte(`{"packageName":"vault","version":"` + v + `"}`)}}
			}
			content, problems := resolution.Build([]resolution.Package{{
				Name: "vault", DefaultChannel: "stable",
				Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: upgradetest.First}, {Name: upgradetest.Second, Replaces: upgradetest.First}}}},
				Bundles: []resolution.Bundle{
					{Name: upgradetest.First, Bundle: olmcore.Bundle{Image: "registry.example.com/vault-bundle:1", Properties: version("1.0.0")}},
					{Name: upgradetest.Second, Bundle: olmcore.Bundle{Image: "registry.example.com/vault-bundle:2", Properties: version("2.0.0")}},
				},
			}})
			require.Empty(t, problems)
			w.Catalogs.Content[types.NamespacedName{Namespace: "olm", Name: "community"}] = content
		}, preview.Block{
			Object: sub, Reason: "BundleNotUnpacked",
			Message: "the bundle of vault.v2.0.0 is unpacked from image registry.example.com/vault-bundle:2 first, which a preview does not do",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := upgradetest.Offering(t, series(1))
			w.Approve(t)
			tt.change(w)
			in, err := preview.GatherNamespace(t.Context(), w.Cluster, upgradetest.Namespace, w.Cluster.Now(), w.OLM.Options)
			require.NoError(t, err)
			in.NotRead = []string{"Pod"}
			hops, err := preview.Hops(t.Context(), in, upgradetest.Subscription)
			require.NoError(t, err)
			want := preview.Between(nil, nil)
			want.NotRead, want.Blocked = in.NotRead, []preview.Block{tt.want}
			require.Equal(t, []preview.Preview{want}, hops)
		})
	}
}
