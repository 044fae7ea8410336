// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestAPlanThatFailedMidwayIsMadeAgain: the plan of an upgrade creates the new version, and then a ClusterRole is rejected. If a user
// deletes the plan, a new one does the open steps. While the cause lasts, that one fails, too, and nothing more happens.
func TestAPlanThatFailedMidwayIsMadeAgain(t *testing.T) {
	for name, approval := range map[string]v1alpha1.Approval{
		"approval is automatic": v1alpha1.ApprovalAutomatic,
		"approval is manual":    v1alpha1.ApprovalManual,
	} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
			w.offer(t, packages, "alpha", one)
			require.NoError(t, w.subscribe("alpha", approval))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 5*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())

			rejected := true
			w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				if rejected && verb == olmcore.VerbCreate && target.Kind == "ClusterRole" && target.Name[:8] == "alpha.v2" {
					return invalid(target)
				}
				return nil
			}
			w.offer(t, packages, "alpha", one, resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name})
			w.poke(t)
			require.NoError(t, w.approveAll())
			w.run(t, 20*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Replacing, alpha.v2.0.0 Pending", w.phases())
			failed := w.planOf(t, "alpha.v2.0.0")
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase)

			require.NoError(t, w.cluster.Delete(olmcore.RefOf(failed)))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 20*time.Minute)
			failed = w.planOf(t, "alpha.v2.0.0")
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase, "the cause lasts")
			require.Equal(t, "alpha.v1.0.0 Replacing, alpha.v2.0.0 Pending", w.phases())
			w.requireNothingIsAsked(t)

			rejected = false
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(failed)))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
			require.Equal(t, "alpha.v2.0.0", w.status("alpha").InstalledCSV)
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
			w.requireNothingIsAsked(t)
		})
	}
}
