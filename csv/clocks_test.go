// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
)

// clockRounds is the number of reconciles of each manager in which both come to rest while time stands still.
const clockRounds = 40

// pastGrace is a pause after which Pods serve with a certificate that all clients trust.
const pastGrace = backend.TrustGrace + time.Second

var clockPauses = []time.Duration{time.Second, 20 * time.Second, pastGrace, 4 * time.Minute}

// TestTwoClocksAgreeOnEveryVersion runs two managers in turn whose clocks differ by up to the tolerance, after any history
// of installations, upgrades and deletions. While time stands still, both stop to write.
func TestTwoClocksAgreeOnEveryVersion(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		clocks := invariant.TwoClocks{
			Cluster: h.c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
			Managers: [2][]fake.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
		}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			for range rapid.IntRange(1, 10).Draw(t, "steps") {
				h.step(t)
				for range rapid.IntRange(0, 4).Draw(t, "rounds") {
					_, err := h.d.Round(context.Background())
					require.NoError(t, err)
				}
			}
			h.c.Recover()
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

// TestTwoClocksAgreeOnEveryGroup does the same while OperatorGroups, some with a ServiceAccount that is missing, come and go.
func TestTwoClocksAgreeOnEveryGroup(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		c, _ := newWorld(csv.Config{})
		require.NoError(t, c.Create(fromFiles("base.yaml")[1:]...))
		require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "target"}}))
		require.NoError(t, c.RunFor(time.Second))
		require.NoError(t, c.Create(fromFiles("v1.yaml")...))
		clocks := invariant.TwoClocks{
			Cluster: c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
			Managers: [2][]fake.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
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
