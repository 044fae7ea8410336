// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"time"
)

// Stages returns the names of the table of stages, in order.
func Stages() (names []Stage) {
	for _, s := range stages {
		names = append(names, s.name)
	}
	return names
}

// WithStage returns a Reconcile with an additional first stage. Objects of a kind with owner labels keep the
// ClusterServiceVersion for a time.
func WithStage(name Stage, kind string, hold time.Duration) func(Input) (Outcome, error) {
	row := stage{name: name, limits: within(hold), batch: 1, find: func(f *facts) found {
		all := findLabelled(f, StageOthers)
		all.targets = slices.DeleteFunc(all.targets, func(t target) bool { return t.ref.Kind != kind })
		return all
	}}
	return func(in Input) (Outcome, error) { return decide(&in, append([]stage{row}, stages...)), nil }
}
