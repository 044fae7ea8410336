// SPDX-License-Identifier: Apache-2.0

package copies

import "github.com/olmcore/olm/olmcore"

// UpdatesOf returns the function that makes the writes of all copies of an Input, once it is decided that they differ.
func UpdatesOf(in Input) func() []olmcore.Action {
	f := factsOf(in)
	want, err := prototypeOf(f.source)
	if err != nil {
		panic(err)
	}
	var stale []differing
	for i := range f.there {
		d, _, _ := want.compare(&f.there[i])
		stale = append(stale, d)
	}
	return func() []olmcore.Action { return want.updates(stale) }
}
