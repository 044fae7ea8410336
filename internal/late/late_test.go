// SPDX-License-Identifier: Apache-2.0

package late_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/late"
)

// TestWhatWasAskedForLastIsKept, and never more than twice as many values.
func TestWhatWasAskedForLastIsKept(t *testing.T) {
	values := late.Values[int, int]{Many: 3}
	for key := range 4 {
		values.Put(key, 10*key)
	}
	_, ok := values.Get(0) // from then on it is one of those asked for last
	require.True(t, ok)
	values.Put(4, 40)
	values.Put(5, 50)
	for key, want := range []bool{true, false, false, true, true, true} {
		_, ok := values.Get(key)
		require.Equal(t, want, ok, key)
	}
	for key := range 100 {
		values.Put(key, 10*key)
		for older := max(0, key-2); older <= key; older++ {
			value, ok := values.Get(older)
			require.True(t, ok, "%d after %d", older, key)
			require.Equal(t, 10*older, value)
		}
	}
	values.Forget()
	_, ok = values.Get(99)
	require.False(t, ok)
}
