// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestAHalfMadeVersionHoldsNothingUpForEver: no role can be written until the plan of the
// first version has failed. What it left is finished once the trouble is over, also when
// the Subscription follows the plan of the next version by then, which waits for it.
func TestAHalfMadeVersionHoldsNothingUpForEver(t *testing.T) {
	for name, upgrade := range map[string]bool{"alone": false, "the next version waits": true} {
		t.Run(name, func(t *testing.T) {
			w, content := newWorld(t), map[string]resolution.Package{}
			one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
			w.offer(t, content, "alpha", one)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			for range 1000 {
				w.cluster.Faults().Inject(fake.Fault{Verb: olmcore.VerbCreate, Kind: "ClusterRole", Mode: fake.FailWithoutEffect})
			}
			w.run(t, 15*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Pending", w.phases())
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, w.planOf(t, one.Name).Status.Phase)
			want := one.Name
			if upgrade {
				want = csvName("alpha", 2)
				w.offer(t, content, "alpha", one, resolution.ChannelEntry{Name: want, Replaces: one.Name})
				w.poke(t)
				require.Equal(t, w.planOf(t, want).UID, w.status("alpha").InstallPlanRef.UID)
				require.Equal(t, "alpha.v1.0.0 Pending, alpha.v2.0.0 Pending", w.phases())
			}
			w.cluster.Faults().Clear()
			w.run(t, 30*time.Minute)
			require.Equal(t, want+" Succeeded", w.phases())
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
		})
	}
}
