// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

func TestLearningFindsWhatWalkingFinds(t *testing.T) {
	solved := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t, small).input()
		want := resolution.Selections(in, false)
		if want != nil {
			solved++
		}
		same(t, want, resolution.Selections(in, true))
	})
	t.Logf("%d namespaces with a solution", solved)
}
