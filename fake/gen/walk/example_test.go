// SPDX-License-Identifier: Apache-2.0

package walk_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/fake/gen/walk"
)

// A property over a whole world: rapid chooses what goes wrong, then all heals.
func ExampleThrough() {
	_ = func(t *testing.T) { // func TestTheWorldSurvives(t *testing.T)
		rapid.Check(t, func(t *rapid.T) {
			h := chaos.New(chaos.Options{Setting: chaos.Setting{Approves: true, Attacks: true}})
			require.NoError(t, walk.Through(t, h, 200))
			require.NoError(t, h.Heal())
		})
	}
}
