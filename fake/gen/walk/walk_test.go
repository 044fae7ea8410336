// SPDX-License-Identifier: Apache-2.0

package walk_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/fake/gen/walk"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore/controller"
)

func TestThroughTakesStepsAndReturnsWhatWentWrong(t *testing.T) {
	never, walked, failed := errors.New("never"), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		writes := 0
		h := chaos.New(chaos.Options{AfterAction: func(controller.Event) error {
			if writes++; writes > 3 {
				return never
			}
			return nil
		}})
		err := walk.Through(t, h, 40)
		walked += h.Figures.Steps
		require.LessOrEqual(t, h.Figures.Steps, 40)
		require.Equal(t, writes > 3, errors.Is(err, never), "%v", err)
		if err != nil {
			failed++
		}
	})
	require.NotZero(t, walked)
	require.NotZero(t, failed)
}
