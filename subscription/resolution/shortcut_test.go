// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

func TestShortcutsChangeNothingButTheWork(t *testing.T) {
	saved := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t, small).input()
		want := resolution.Resolve(in)
		steps := want.Stats.Steps
		want.Stats = resolution.Stats{}
		for off := range 1 << 4 {
			got := resolution.ResolveSlowly(in, off&1 != 0, off&2 != 0, off&4 != 0, off&8 != 0)
			saved = max(saved, got.Stats.Steps-steps)
			got.Stats = resolution.Stats{}
			same(t, want, got)
		}
	})
	t.Logf("at most %d steps were saved", saved)
}
