// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// withMetadata returns a copy of an object with a copy of its metadata; the rest is shared.
func withMetadata(object map[string]any) map[string]any {
	object = maps.Clone(object)
	object["metadata"] = maps.Clone(metadataOf(object))
	return object
}

// metadataOf returns the metadata of an object; one without gets some.
func metadataOf(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

// fold merges a second description of an object into the first, as applying one after
// the other would.
func fold(first, second map[string]any, kind kinds.Kind) map[string]any {
	out := merge(first, second, kind, true)
	for _, field := range [...]string{"ownerReferences", "finalizers"} {
		if list, ok := metadataOf(second)[field].([]any); ok {
			have, _ := metadataOf(out)[field].([]any)
			metadataOf(out)[field] = slices.Concat(have, list)
		}
	}
	return out
}

// merge returns have with the content of want: labels and annotations are added or
// overwritten, other metadata and the status are have's, everything else is want's, but
// for what the kind keeps. Neither is written to. An object that OLM does not manage gets
// no label that says otherwise.
func merge(have, want map[string]any, kind kinds.Kind, managed bool) map[string]any {
	out := runtime.DeepCopyJSON(have)
	want = runtime.DeepCopyJSON(want)
	// An unmanaged account keeps its own metadata: annotations give accounts rights in
	// clouds.
	kept := func(field, key string) bool {
		_, has := manifest.Strings(metadataOf(have), field)[key]
		return has && !managed && kind.Additive
	}
	union(out, want, "labels", func(key string) bool { return (managed || !saysOwned(key)) && !kept("labels", key) })
	union(out, want, "annotations", func(key string) bool { return !kept("annotations", key) })
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

func saysOwned(label string) bool {
	switch label {
	case olmcore.LabelManaged, olmcore.LabelOwner, olmcore.LabelOwnerNamespace, olmcore.LabelOwnerKind, olmcore.LabelOwnerUID:
		return true
	}
	return false
}

func union(out, want map[string]any, field string, keep func(key string) bool) {
	merged := manifest.Strings(metadataOf(out), field)
	for key, value := range manifest.Strings(metadataOf(want), field) {
		if keep(key) {
			merged[key] = value
		}
	}
	if len(merged) > 0 {
		metadataOf(out)[field] = merged
	}
}

// useUnmanaged decides about an object that exists and was not handed to OLM: it may be
// used where it holds what the step wants, and is not written.
func useUnmanaged(t *Target, have, want map[string]any) Verdict {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !isFrame(key) && !holds(have[key], want[key]) {
			return blocked("%s", crd.UnmanagedMessage(t.Key.Kind, t.Key.Name, key))
		}
	}
	return Verdict{Outcome: Done}
}

// holds reports whether an observed value has all that is wanted: fields may have been
// added, by the API server or by its user, entries of lists may not.
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
