// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore/controller"
)

// clockRounds is the number of reconciles of each manager in which both come to rest while time stands still.
const clockRounds = 40

// pastGrace is a pause after which Pods serve with a certificate that all clients trust.
const pastGrace = internalserving.TrustGrace + time.Second

var clockPauses = []time.Duration{time.Second, 20 * time.Second, pastGrace, 4 * time.Minute}

// TestManagersWithDifferentClocksAgreeOnCSVs runs two managers in turn whose clocks differ by up to the tolerance,
// after any history of installations, upgrades and deletions. While time stands still, both stop writing.
func TestManagersWithDifferentClocksAgreeOnCSVs(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		clocks := invariant.TwoClocks{
			Cluster: h.c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
			Managers: [2][]controller.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
		}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			for range rapid.IntRange(1, 10).Draw(t, "steps") {
				h.step(t)
				for range rapid.IntRange(0, 4).Draw(t, "rounds") {
					_, err := h.d.Round(context.Background())
					require.NoError(t, err)
				}
			}
			h.c.Faults().Clear()
			for range rapid.IntRange(1, 3).Draw(t, "pauses") {
				require.NoError(t, clocks.Agree(context.Background()), "%v", phases(csvs(h.c)))
				require.NoError(t, h.c.RunFor(rapid.SampledFrom(clockPauses).Draw(t, "pause")))
				if rapid.IntRange(0, 3).Draw(t, "slowly") == 0 {
					require.NoError(t, clocks.RunFor(context.Background(), pastGrace, 5*time.Second))
				}
			}
		}
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}

// TestManagersWithDifferentClocksAgreeOnWaitingSuccessor runs two managers with different clocks while cool.v1 fails
// twice. Its installation takes too long, and shortly afterwards its Deployment exceeds its progress deadline. The
// message of cool.v2 contains the reason of cool.v1.
func TestManagersWithDifferentClocksAgreeOnWaitingSuccessor(t *testing.T) {
	for _, ahead := range invariant.ClockPairs() {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			c, d := newWorld(csv.Config{})
			require.NoError(t, c.Create(fromFiles("base.yaml")...))
			require.NoError(t, c.RunFor(time.Second))
			require.NoError(t, c.Create(fromFiles("v1.yaml")...))
			for fake.Find[*appsv1.Deployment](c, "ns", "cool") == nil {
				_, err := d.Round(t.Context())
				require.NoError(t, err)
			}
			c.Deployment("ns", "cool").Break("crash-looping")
			require.NoError(t, c.RunFor(270*time.Second)) // no manager runs, so that cool.v1 is Installing late
			require.NoError(t, c.Create(fromFiles("rbac-v2.yaml", "v2.yaml")...))

			clocks := invariant.TwoClocks{
				Cluster: c, Rounds: clockRounds, Ahead: ahead,
				Managers: [2][]controller.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
			}
			require.NoError(t, clocks.RunFor(t.Context(), 8*time.Minute, 5*time.Second))
			var reasons []string
			for _, condition := range fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1").Status.Conditions {
				reasons = append(reasons, string(condition.Reason))
			}
			require.Equal(t, []string{"InstallCheckFailed", "ComponentUnhealthy", "InstallCheckFailed"}, reasons[max(0, len(reasons)-3):])
			require.Equal(t, "requirements met; waiting for cool.v1 to be replaced (it is Failed/InstallCheckFailed)",
				fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v2").Status.Message)
		})
	}
}

// TestManagersWithDifferentClocksAgreeOnOperatorGroups does the same while OperatorGroups are created and deleted. Some
// name a ServiceAccount that does not exist.
func TestManagersWithDifferentClocksAgreeOnOperatorGroups(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		c, _ := newWorld(csv.Config{})
		require.NoError(t, c.Create(fromFiles("base.yaml")[1:]...))
		require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "target"}}))
		require.NoError(t, c.RunFor(time.Second))
		require.NoError(t, c.Create(fromFiles("v1.yaml")...))
		clocks := invariant.TwoClocks{
			Cluster: c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
			Managers: [2][]controller.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
		}
		for range rapid.IntRange(1, 12).Draw(t, "times") {
			changeGroups(t, c, rapid.IntRange(0, 3).Draw(t, "step"))
			require.NoError(t, clocks.Agree(context.Background()), "%v", phases(csvs(c)))
			require.NoError(t, c.RunFor(rapid.SampledFrom(clockPauses).Draw(t, "pause")))
			if rapid.IntRange(0, 3).Draw(t, "slowly") == 0 {
				require.NoError(t, clocks.RunFor(context.Background(), pastGrace, 5*time.Second))
			}
		}
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}
