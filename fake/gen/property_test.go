// SPDX-License-Identifier: Apache-2.0

package gen_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
)

// TestAnyOperatorGroup is the first property test of docs/testing.md: whatever is in the input, Reconcile neither
// panics nor changes it.
func TestAnyOperatorGroup(t *testing.T) {
	words := gen.Vocabulary{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Namespace: "ops", Names: []string{"team", "shop"}, Hostile: true}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[operatorgroup.Input](words).Draw(t, "in")
		in.Checkpoint = nil
		before := invariant.Clone(in)
		_, _ = operatorgroup.Reconcile(in) // an error is an answer, too
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatal(diff)
		}
	})
}
