// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/olmcore/olm/internal/jsonvalue"
	"github.com/olmcore/olm/internal/nilcheck"
	"github.com/olmcore/olm/olmcore"
)

// Decode returns the object that a JSON text contains. Its Go type is that of olmcore.NewObject. The error is an
// *olmcore.InputError, for example if apiVersion or kind is missing.
//
// The case of the other keys of a typed object does not matter, because OLM decodes objects with encoding/json. Only
// the keys of a CustomResourceDefinition are case-sensitive, as in OLM. See DecodeKeys.
func Decode(data []byte) (olmcore.Object, error) {
	o, _, err := DecodeKeys(data)
	return o, err
}

// DecodeKeys does the same as Decode, and returns the keys that are not spelled like a field of the Go type: keys that
// differ only in case, and unknown keys that resemble a field. They are sorted by path. For kinds without a Go type
// there are none.
func DecodeKeys(data []byte) (olmcore.Object, []KeyCase, error) {
	var meta metav1.TypeMeta
	if err := utiljson.Unmarshal(data, &meta); err != nil {
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) && other.Field == "" {
			return nil, nil, &olmcore.InputError{Field: "object", Problem: "is not a JSON object: it is of type " + other.Value}
		}
		return nil, nil, &olmcore.InputError{Field: "object", Problem: "is not a JSON object: " + err.Error()}
	}
	switch {
	case meta.Kind == "":
		return nil, nil, &olmcore.InputError{Field: "kind", Problem: "is empty"}
	case meta.APIVersion == "":
		return nil, nil, &olmcore.InputError{Field: "apiVersion", Problem: "is empty"}
	}
	o := olmcore.NewObject(meta.GroupVersionKind())
	keys, err := decodeInto(data, o)
	if err != nil {
		return nil, nil, &olmcore.InputError{Field: meta.Kind, Problem: "cannot be decoded: " + err.Error()}
	}
	return o, keys, nil
}

func decodeInto(data []byte, o olmcore.Object) ([]KeyCase, error) {
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

// FromMap fills o, a pointer to an API type or an *unstructured.Unstructured, with a copy of JSON values. Keys are
// matched as in Decode. If the spec.updateStrategy of a CatalogSource is {}, it becomes an empty UpdateStrategy; the
// decoder of the API type panics on such a value. The error reports the first value that does not fit. It is an
// *olmcore.InputError if o is nil, or if a value of an unstructured object cannot be JSON.
func FromMap(m map[string]any, o olmcore.Object) error {
	if nilcheck.IsNil(o) {
		return &olmcore.InputError{Field: "object", Problem: "is nil"}
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		object, problem := jsonvalue.Copy(m)
		if problem != nil {
			return &olmcore.InputError{Field: problem.Path, Problem: problem.Message}
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

func fromMap(m map[string]any, o olmcore.Object) error {
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

// withoutEmptyStrategy returns a copy of m whose spec.updateStrategy the API type can decode. empty reports whether an
// empty spec.updateStrategy was removed.
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
