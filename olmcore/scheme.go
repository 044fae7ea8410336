// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/jsonvalue"
	"github.com/olmcore/olm/internal/nilcheck"
)

// GVKOf returns an object's group, version and kind: by its Go type for the kinds the library knows, whose TypeMeta is
// usually empty when they come from a typed client, else by its TypeMeta. It does not allocate for known types.
func GVKOf(o runtime.Object) schema.GroupVersionKind {
	return namesOf(o).gvk
}

// namesOf is GVKOf, and the apiVersion that goes with it.
func namesOf(o runtime.Object) typeNames {
	if names, ok := known.byType[reflect.TypeOf(o)]; ok {
		return names
	}
	if nilcheck.IsNil(o) {
		return typeNames{}
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	return typeNames{gvk, gvk.GroupVersion().String()}
}

// NewObject returns an empty object for a kind: the API's own type where the library knows it, else
// *unstructured.Unstructured with kind and version set.
func NewObject(gvk schema.GroupVersionKind) Object {
	if t, ok := known.typeByGVK[gvk]; ok {
		o := reflect.New(t).Interface().(Object)
		o.GetObjectKind().SetGroupVersionKind(gvk)
		return o
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// ToMap returns an object as JSON values, with apiVersion and kind set and without what encoders add (a null
// creationTimestamp, an empty status). Nothing is shared with o. A nil object, and a value in an unstructured one that
// JSON cannot hold, is an *InputError.
func ToMap(o Object) (map[string]any, error) {
	if nilcheck.IsNil(o) {
		return nil, &InputError{Field: "object", Problem: "is nil"}
	}
	var m map[string]any
	if u, ok := o.(*unstructured.Unstructured); ok {
		var problem *jsonvalue.Problem
		if m, problem = jsonvalue.Copy(u.Object); problem != nil {
			return nil, &InputError{Field: problem.Path, Problem: problem.Message}
		}
	} else {
		var err error
		if m, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil, fmt.Errorf("encode %s: %w", KeyOf(o), err)
		}
	}
	m["apiVersion"], m["kind"] = GVKOf(o).ToAPIVersionAndKind()
	dropNullCreation(m)
	status, ok := m["status"].(map[string]any)
	if ok && len(status) == 0 {
		delete(m, "status")
	}
	return m, nil
}

func dropNullCreation(v any) {
	switch x := v.(type) {
	case map[string]any:
		created, ok := x["creationTimestamp"]
		if ok && created == nil {
			delete(x, "creationTimestamp")
		}
		for _, child := range x {
			dropNullCreation(child)
		}
	case []any:
		for _, child := range x {
			dropNullCreation(child)
		}
	}
}
