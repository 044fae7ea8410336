// SPDX-License-Identifier: Apache-2.0

package gen_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/subscription"
)

// A property over any Subscription: whatever is in it, Reconcile neither panics nor changes its input.
func ExampleValue() {
	_ = func(t *testing.T) { // func TestAnySubscription(t *testing.T)
		words := gen.Vocabulary{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Namespace: "ops", Names: []string{"etcd", "vault"}, Hostile: true}
		rapid.Check(t, func(t *rapid.T) {
			in := gen.Value[subscription.Input](words).Draw(t, "in")
			before := invariant.Clone(in)
			_, _ = subscription.Reconcile(in) // an error is an answer, too
			if diff := cmp.Diff(before, in); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
