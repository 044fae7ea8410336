// SPDX-License-Identifier: Apache-2.0

// Package walk lets rapid walk through the world of package chaos.
//
// It imports rapid, which registers its flags (-rapid.checks and so on), so only tests should import this package.
package walk

import (
	"fmt"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/chaos"
)

// move is one step of a walk, with a seed for the choices in it: what rapid leaves out of a walk does not change the
// rest.
type move struct {
	step chaos.Step
	seed uint64
}

// String shows a move in rapid's report.
func (m move) String() string { return fmt.Sprintf("%s (%d)", m.step.Name, m.seed) }

// Through lets rapid take up to n steps in a history. The error is that of the first that went wrong. Of a failure it
// leaves out steps as long as it fails.
func Through(t *rapid.T, h *chaos.History, n int) error {
	steps := chaos.Steps(h.Options)
	moves := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
		return move{chaos.Draw(steps, choices{t}), rapid.Uint64().Draw(t, "seed")}
	}), 0, n).Draw(t, "steps")
	for _, m := range moves {
		if err := h.Do(m.step, rand.New(rand.NewPCG(m.seed, 1))); err != nil {
			return fmt.Errorf("%s: %w", m.step.Name, err)
		}
	}
	return nil
}

// choices are those of rapid.
type choices struct{ t *rapid.T }

// IntN implements chaos.Choices.
func (c choices) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "choice") }
