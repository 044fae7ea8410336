// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// fold merges a second description of an object into the first, as applying one after the other would.
func fold(first, second map[string]any, kind kinds.Kind) map[string]any {
	out := merge(first, second, kind, true)
	metadata := manifest.Fields(out, "metadata")
	for _, field := range [...]string{"ownerReferences", "finalizers"} {
		if list, ok := manifest.Fields(second, "metadata")[field].([]any); ok {
			have, _ := metadata[field].([]any)
			metadata[field] = slices.Concat(have, list)
		}
	}
	return out
}

// owning are the labels that say of an object that OLM manages it.
var owning = []string{olmcore.LabelManaged, olmcore.LabelOwner, olmcore.LabelOwnerNamespace, olmcore.LabelOwnerKind, olmcore.LabelOwnerUID}

// merge returns have with the content of want: labels and annotations are added or overwritten, other metadata and the
// status are have's, everything else is want's, but for what the kind keeps. Neither is written to. An object that OLM
// does not manage gets no label that says otherwise, and an unmanaged account keeps its own metadata: annotations give
// accounts rights in clouds.
func merge(have, want map[string]any, kind kinds.Kind, managed bool) map[string]any {
	out := runtime.DeepCopyJSON(have)
	want = runtime.DeepCopyJSON(want)
	for _, field := range [...]string{"labels", "annotations"} {
		merged := manifest.Strings(manifest.Fields(out, "metadata"), field)
		for key, value := range manifest.Strings(manifest.Fields(want, "metadata"), field) {
			_, has := merged[key]
			if managed || !(has && kind.Additive) && !(field == "labels" && slices.Contains(owning, key)) {
				merged[key] = value
			}
		}
		if len(merged) > 0 {
			manifest.Fields(out, "metadata")[field] = merged
		}
	}
	if kind.Keep != nil {
		want = kind.Keep(have, want, managed)
	}
	for key := range out {
		if want[key] == nil && !isFrame(key) {
			delete(out, key) // typed objects say null for a list of nothing
		}
	}
	for key, value := range want {
		if !isFrame(key) && value != nil {
			out[key] = value
		}
	}
	return out
}

// isFrame tells the fields of every object from those of its kind.
func isFrame(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

// useUnmanaged decides about an object that exists and was not handed to OLM: it may be used where it holds what the
// step wants, and is not written.
func useUnmanaged(t *Target, have, want map[string]any) Verdict {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !isFrame(key) && !holds(have[key], want[key]) {
			return unmanaged(t, key)
		}
	}
	return Verdict{Outcome: Done}
}

// holds reports whether an observed value has all that is wanted: fields may have been added, by the API server or by
// its user, entries of lists may not.
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
			if !holds(fields[key], value) && !(key == "targetPort" && (value == int64(0) || value == "")) {
				return false
			}
		}
		return true
	case []any:
		list, ok := have.([]any)
		return (ok || len(want) == 0) && slices.EqualFunc(list, want, holds)
	}
	return reflect.DeepEqual(have, want) || have == nil && reflect.ValueOf(want).IsZero()
}
