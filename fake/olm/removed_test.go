// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestWhatWasRemovedIsNotPlannedAgain: an administrator removed a version and its plan.
// However often beta has the namespace resolved, no plan is made for alpha, which does not
// ask for its version; beta is served as ever, and with it alpha comes back, as in OLM.
func TestWhatWasRemovedIsNotPlannedAgain(t *testing.T) {
	for name, reinstalls := range map[string]bool{"it stays removed": false, "it is installed again": true} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			w.olm.Subscription.ReinstallMissingCSV = reinstalls
			one := resolution.ChannelEntry{Name: csvName("beta", 1)}
			w.offer(t, packages, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
			w.offer(t, packages, "beta", one)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, time.Minute)
			require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalAutomatic))
			w.run(t, time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())

			for _, o := range []olmcore.Object{w.planOf(t, csvName("alpha", 1)), w.csvs()[0]} {
				require.NoError(t, w.cluster.Delete(olmcore.RefOf(o)))
				w.run(t, 2*time.Minute)
			}
			before := names(w.plans())
			for range 3 {
				w.poke(t)
				w.run(t, time.Hour)
				require.Equal(t, before, names(w.plans()))
			}
			if reinstalls {
				require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
				return
			}
			require.Equal(t, "beta.v1.0.0 Succeeded", w.phases())
			w.offer(t, packages, "beta", one, resolution.ChannelEntry{Name: csvName("beta", 2), Replaces: one.Name})
			w.poke(t)
			w.run(t, 10*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v2.0.0 Succeeded", w.phases())
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
		})
	}
}

func names(plans []*v1alpha1.InstallPlan) []string {
	var all []string
	for _, p := range plans {
		all = append(all, p.Name)
	}
	return all
}
