// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	b := olmcore.Backoff{Base: 10 * time.Second, Max: 5 * time.Minute}
	for tries, want := range map[int]time.Duration{
		-1: 10 * time.Second, 0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second,
		5: 160 * time.Second, 6: 5 * time.Minute, 7: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		require.Equal(t, want, b.After(tries), tries)
	}
	require.Equal(t, time.Second, olmcore.Backoff{Base: time.Minute, Max: time.Second}.After(1))
}

func TestGraphAllowsItsEdgesAlone(t *testing.T) {
	g := olmcore.Graph[string]{{From: "a", To: "b"}, {From: "b", To: "c"}}
	require.True(t, g.Allows("a", "b"))
	require.False(t, g.Allows("b", "a"))
	require.False(t, g.Allows("a", "c"))
	require.False(t, g.Allows("a", "a"))
}
