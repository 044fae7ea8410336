// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

func auditOf(t require.TestingT, in subscription.Input) []audit.Finding {
	findings, err := audit.Find(in)
	require.NoError(t, err)
	return findings
}

func TestAuditFindsNothingInAConvergedNamespace(t *testing.T) {
	for _, n := range []int{0, 1, 10} {
		in := convergedInput(n)
		in.Now = in.Now.Add(time.Hour)
		for _, p := range in.InstallPlans.Items {
			p.Spec.Generation = 0
			p.Labels = map[string]string{}
			for _, s := range in.Subscriptions.Items {
				for key := range s.Labels {
					p.Labels[key] = ""
				}
			}
		}
		require.Empty(t, auditOf(t, in))
	}
	_, err := audit.Find(subscription.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

func reversed(in subscription.Input) subscription.Input {
	in.Subscriptions.Items, in.InstallPlans.Items, in.ClusterServiceVersions.Items = slices.Clone(in.Subscriptions.Items), slices.Clone(in.InstallPlans.Items), slices.Clone(in.ClusterServiceVersions.Items)
	slices.Reverse(in.Subscriptions.Items)
	slices.Reverse(in.InstallPlans.Items)
	slices.Reverse(in.ClusterServiceVersions.Items)
	return in
}

// TestRepairsRemoveTheirFindings checks for any namespace that no safe repair is left after all safe repairs ran,
// and that each repair removes its own finding. No observed object is modified.
func TestRepairsRemoveTheirFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		in.Now = in.Now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 60}).Draw(t, "minutes")) * time.Minute)
		before := append([]*v1alpha1.Subscription(nil), in.Subscriptions.Items...)
		for i, s := range before {
			before[i] = s.DeepCopy()
		}
		findings := auditOf(t, in)
		require.Empty(t, cmp.Diff(before, in.Subscriptions.Items))
		require.Empty(t, cmp.Diff(findings, auditOf(t, reversed(in))))
		for _, f := range findings {
			if len(f.Repair) == 0 {
				require.False(t, f.Safe)
				continue
			}
			repaired := in
			repaired.Subscriptions.Items, repaired.ClusterServiceVersions.Items = slices.Clone(in.Subscriptions.Items), slices.Clone(in.ClusterServiceVersions.Items)
			carryOut(&repaired, subscription.Outcome{Result: olmcore.Result{Actions: f.Repair}})
			for _, g := range auditOf(t, repaired) {
				require.False(t, g.Reason == f.Reason && g.Target == f.Target, "%+v\nagain as\n%+v", f, g)
			}
		}
		for range 8 {
			var actions []olmcore.Action
			for _, f := range auditOf(t, in) {
				if f.Safe {
					actions = append(actions, f.Repair[0])
				}
			}
			if len(actions) == 0 {
				return
			}
			carryOut(&in, subscription.Outcome{Result: olmcore.Result{Actions: actions[:1]}})
		}
		t.Fatalf("not repaired: %+v", auditOf(t, in))
	})
}
