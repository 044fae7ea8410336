// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
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
	if isNil(o) {
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

// Decode reads one object from JSON, as NewObject would type it. The input must carry apiVersion and kind; otherwise
// the error is an *InputError. Other keys of typed objects are matched with fields as encoding/json does, in any case,
// but for those of a CustomResourceDefinition: as OLM does. See DecodeKeys.
func Decode(data []byte) (Object, error) {
	o, _, err := DecodeKeys(data)
	return o, err
}

// DecodeKeys is Decode that says which keys differ from the name of a field in case alone, and which are no field and
// near one, sorted by path; nil for none, and for kinds without a Go type.
func DecodeKeys(data []byte) (Object, []KeyCase, error) {
	var meta metav1.TypeMeta
	if err := utiljson.Unmarshal(data, &meta); err != nil {
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) && other.Field == "" {
			return nil, nil, &InputError{Field: "object", Problem: "is not a JSON object: it is of type " + other.Value}
		}
		return nil, nil, &InputError{Field: "object", Problem: "is not a JSON object: " + err.Error()}
	}
	switch {
	case meta.Kind == "":
		return nil, nil, &InputError{Field: "kind", Problem: "is empty"}
	case meta.APIVersion == "":
		return nil, nil, &InputError{Field: "apiVersion", Problem: "is empty"}
	}
	o := NewObject(meta.GroupVersionKind())
	keys, err := decodeInto(data, o)
	if err != nil {
		return nil, nil, &InputError{Field: meta.Kind, Problem: "cannot be decoded: " + err.Error()}
	}
	return o, keys, nil
}

func decodeInto(data []byte, o Object) ([]KeyCase, error) {
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		return nil, utiljson.Unmarshal(data, o)
	}
	decoded := false
	_, special := o.(*v1alpha1.CatalogSource)
	if !special && !mayHoldExcess(data) {
		decoded = true
		unknown, err := kjson.UnmarshalStrict(data, o, kjson.DisallowUnknownFields)
		if err != nil || len(unknown) == 0 {
			return nil, err
		}
	}
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	m, keys, err := foldKeys(m, o, true)
	if err != nil {
		return nil, err
	}
	if _, special := o.(*v1alpha1.CatalogSource); special {
		return keys, fromMap(m, o)
	}
	if len(keys) == 0 && decoded {
		return nil, nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	reflect.ValueOf(o).Elem().SetZero()
	return keys, utiljson.Unmarshal(text, o)
}

// ToMap returns an object as JSON values, with apiVersion and kind set and without what encoders add (a null
// creationTimestamp, an empty status). Nothing is shared with o. A nil object, and a value in an unstructured one that
// JSON cannot hold, is an *InputError.
func ToMap(o Object) (map[string]any, error) {
	if isNil(o) {
		return nil, &InputError{Field: "object", Problem: "is nil"}
	}
	var m map[string]any
	if u, ok := o.(*unstructured.Unstructured); ok {
		var err *InputError
		if m, err = copyJSON(u.Object); err != nil {
			return nil, err
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

// FromMap sets o, a pointer to an API type or *unstructured.Unstructured, from JSON values, which it copies. A
// CatalogSource whose spec.updateStrategy is {} becomes one with an empty UpdateStrategy: the API type's own decoder
// panics on it. Keys count in any case, as Decode has it. The error says what does not fit, or is an *InputError as
// that of ToMap.
func FromMap(m map[string]any, o Object) error {
	if isNil(o) {
		return &InputError{Field: "object", Problem: "is nil"}
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		object, err := copyJSON(m)
		if err != nil {
			return err
		}
		u.Object = object
		return nil
	}
	m, _, err := foldKeys(m, o, false)
	if err != nil {
		return err
	}
	return fromMap(m, o)
}

func fromMap(m map[string]any, o Object) error {
	switch o := o.(type) {
	case *v1alpha1.CatalogSource:
		m, empty := withoutEmptyStrategy(m)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, o); err != nil {
			return err
		}
		if empty {
			o.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{}
		}
		return nil
	default:
		return runtime.DefaultUnstructuredConverter.FromUnstructured(m, o)
	}
}

// withoutEmptyStrategy returns m with a spec.updateStrategy that the API type can decode, and whether an empty one was
// taken out. m is not changed.
func withoutEmptyStrategy(m map[string]any) (decodable map[string]any, empty bool) {
	spec, _ := m["spec"].(map[string]any)
	strategy, ok := spec["updateStrategy"].(map[string]any)
	if !ok {
		return m, false
	}
	m, spec = maps.Clone(m), maps.Clone(spec)
	m["spec"] = spec
	poll := strategy["registryPoll"]
	if poll == nil {
		delete(spec, "updateStrategy")
		return m, true
	}
	spec["updateStrategy"] = map[string]any{"registryPoll": poll}
	return m, false
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

func isNil(o any) bool {
	if o == nil {
		return true
	}
	v := reflect.ValueOf(o)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// copyJSON returns a deep copy of JSON values, never nil. Whole numbers of other Go types become int64, as a decoder
// makes them. The error's field is the path of what is no JSON value, the first one by path.
func copyJSON(m map[string]any) (map[string]any, *InputError) {
	var first *InputError
	out := make(map[string]any, len(m))
	for key, value := range m {
		copied, err := copyValue(value)
		if err != nil {
			err.Field = under(key, err.Field)
			if first == nil || err.Field < first.Field {
				first = err
			}
		}
		out[key] = copied
	}
	return out, first
}

func copyValue(v any) (any, *InputError) {
	switch v := v.(type) {
	case nil, string, bool, int64, float64, json.Number:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		return copyJSON(v)
	case []any:
		if v == nil {
			return nil, nil
		}
		out := make([]any, len(v))
		for i := range v {
			var err *InputError
			if out[i], err = copyValue(v[i]); err != nil {
				err.Field = under(fmt.Sprintf("[%d]", i), err.Field)
				return nil, err
			}
		}
		return out, nil
	default:
		return nil, &InputError{Problem: fmt.Sprintf("is a %T, which is no JSON value", v)}
	}
}

// under returns the path of a field below another.
func under(parent, field string) string {
	if field == "" || strings.HasPrefix(field, "[") {
		return parent + field
	}
	return parent + "." + field
}
