// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// What the tests look at beside the exported names.
var (
	ConditionTable = conditionTable
	Reachable      = reachable
	StageOf        = stageOf
	ConditionOf    = conditionOf
	ShownStage     = shownStage
)

// ReconcileWithCondition is Reconcile with one row more in the table: a condition that is True while the version that a
// Subscription follows is there.
func ReconcileWithCondition(in Input, t v1alpha1.SubscriptionConditionType, reason, message string) (Outcome, error) {
	return reconcile(in, append(slices.Clone(conditionTable), conditionRow{Type: t, From: "CSV", Want: func(f *facts) want {
		if f.CSV == nil {
			return absent
		}
		return present(reason, message)
	}}))
}
