// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// The table of classes, for its tests.
type (
	Traits      = podClass
	RegistryPod = pod
)

const RemoveStuck = removeStuck

var Classes = podClasses

// With is Reconcile and Assess with one more class of Pods, which is tried after those of Pods that are not the
// catalog's or have finished.
func With(row Traits) (func(Input) (Outcome, error), func(Input) Assessment) {
	table := slices.Insert(slices.Clone(podClasses), 2, row)
	return func(in Input) (Outcome, error) { return reconcile(in, table) }, func(in Input) Assessment { return assess(in, table) }
}

// NodeClasses is the table of Node states, for its tests.
var NodeClasses = nodeClasses
