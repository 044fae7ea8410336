// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"maps"
	"reflect"
	"slices"
)

// unmanagedObject decides about an object that exists and was not handed to OLM:
// it may be used where it holds what the step wants, and is not written.
// ServiceAccounts are not asked for: what a step adds to them changes nothing of
// theirs.
func unmanagedObject(t *target, have, want map[string]any) verdict {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !isFrame(key) && !holds(have[key], want[key]) {
			return verdict{outcome: blocked, message: unmanagedMessage(t.key.Kind, t.key.Name, key)}
		}
	}
	return verdict{outcome: done}
}

// holds reports whether an observed value has all that is wanted: fields may have
// been added, by the API server or by its user, entries of lists may not.
func holds(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		fields, ok := have.(map[string]any)
		if !ok && len(want) > 0 {
			return false
		}
		for key, value := range want {
			// A Service encoded from its type says 0 for a port that it leaves open.
			if !holds(fields[key], value) && !(key == "targetPort" && isEmpty(value)) {
				return false
			}
		}
		return true
	case []any:
		list, ok := have.([]any)
		if !ok && len(want) > 0 || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !holds(list[i], want[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(have, want) || have == nil && reflect.ValueOf(want).IsZero()
}
