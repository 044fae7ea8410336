// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/subscription/internal/planhistory"
)

// Unexported names that the tests use.
var (
	ConditionTable = conditionTable
	Reachable      = planhistory.CanReach
	StageOf        = planhistory.StageOf
	ConditionOf    = planhistory.Condition
	ShownStage     = planhistory.ShownStage
)

// ReconcileWithCondition is Reconcile with one more row in the table: a condition that is True while the version of the
// Subscription exists.
func ReconcileWithCondition(in Input, t v1alpha1.SubscriptionConditionType, reason, message string) (Outcome, error) {
	return reconcile(in, append(slices.Clone(conditionTable), conditionRow{Type: t, From: "CSV", Want: func(f *conditionFacts) want {
		if f.csv == nil {
			return absent
		}
		return present(reason, message)
	}}))
}
