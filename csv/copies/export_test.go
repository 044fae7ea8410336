// SPDX-License-Identifier: Apache-2.0

package copies

import "github.com/olmcore/olm/olmcore"

// UpdatesOf returns a function that builds the updates of all copies of an Input.
func UpdatesOf(in Input) func() []olmcore.Action {
	f := observe(&in)
	desired, err := prototypeOf(f.source)
	if err != nil {
		panic(err)
	}
	var all []outdated
	for i := range f.others {
		o, _, _ := desired.compare(&f.others[i])
		all = append(all, o)
	}
	return func() []olmcore.Action { return desired.updates(all) }
}
