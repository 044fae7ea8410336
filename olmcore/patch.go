// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mergeDiff returns the JSON merge patch that turns from into to. The result
// shares values with to.
func mergeDiff(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, kept := to[key]; !kept {
			patch[key] = nil
		}
	}
	for key, want := range to {
		have, exists := from[key]
		wantMap, wantIsMap := want.(map[string]any)
		haveMap, haveIsMap := have.(map[string]any)
		switch {
		case exists && wantIsMap && haveIsMap:
			if sub := mergeDiff(haveMap, wantMap); len(sub) > 0 {
				patch[key] = sub
			}
		case !exists || !reflect.DeepEqual(have, want):
			patch[key] = want
		}
	}
	return patch
}

// mergePatch applies a JSON merge patch to target and returns target.
func mergePatch(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			sub, ok := target[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
			}
			target[key] = mergePatch(sub, v)
		default:
			target[key] = value
		}
	}
	return target
}

func newLike(o Object) Object {
	if _, ok := o.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{}
	}
	return reflect.New(reflect.TypeOf(o).Elem()).Interface().(Object)
}
