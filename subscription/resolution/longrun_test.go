// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

// TestManyNamespacesResolveLikeTheOracle compares Resolve with the oracle on random namespaces, one for each seed
// from 0. OLMCORE_NAMESPACES is how many; a million take some minutes.
func TestManyNamespacesResolveLikeTheOracle(t *testing.T) {
	count := 1000
	if text := os.Getenv("OLMCORE_NAMESPACES"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	namespaces := rapid.Custom(func(t *rapid.T) *namespace { return drawNamespace(t, small) })
	solved := 0
	for seed := range count {
		n := namespaces.Example(seed)
		in := n.input()
		in.Policy.AllOrNothing = true
		in.Policy.OmitHeldBack = true
		solution, ok := newOracle(n, false).solve()
		res := resolution.Resolve(in)
		if got := res.Failure == nil; got != ok {
			t.Fatalf("seed %d: %s, the oracle says satisfiable=%v", seed, res.Outcome, ok)
		}
		if !ok {
			continue
		}
		solved++
		if diff := cmp.Diff(installedAnew(solution), chosen(res)); diff != "" {
			t.Fatalf("seed %d (-oracle +got):\n%s", seed, diff)
		}
	}
	t.Logf("%d of %d namespaces have a solution", solved, count)
}
