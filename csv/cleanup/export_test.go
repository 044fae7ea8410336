// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"time"

	"github.com/olmcore/olm/olmcore"
)

// Stages returns the names of the table of stages, in order.
func Stages() (names []Stage) {
	for _, s := range stages {
		names = append(names, s.name)
	}
	return names
}

// WithStage returns a Reconcile whose table has one more row, before all others: objects
// with owner labels that pass a filter hold the ClusterServiceVersion for a time.
func WithStage(name Stage, pass func(olmcore.Key) bool, hold time.Duration) func(Input) (Outcome, error) {
	row := stage{name: name, limits: limits{failing: hold, terminating: hold, forbidden: hold, webhook: hold}, batch: 1, find: func(f *facts) found {
		objects, all := labelled(f, pass)
		all.targets = deletionsOf(f, objects)
		return all
	}}
	return func(in Input) (Outcome, error) { return decide(&in, append([]stage{row}, stages...)), nil }
}
