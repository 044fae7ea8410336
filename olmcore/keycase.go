// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// KeyCase is a key of an object that differs from the name of a field in case
// alone, such as MinKubeVersion. encoding/json, and so OLM, takes it for the field;
// an API server drops it.
type KeyCase struct {
	// Path is where the key is, such as spec.MinKubeVersion; Field is the name of the
	// field.
	Path, Field string
	// Ignored: it was not read, as the field is there, too, or as OLM is as strict as
	// an API server for this kind.
	Ignored bool
}

// String says what became of the key.
func (k KeyCase) String() string {
	if k.Ignored {
		return fmt.Sprintf("%s is ignored: the field is called %s", k.Path, k.Field)
	}
	return fmt.Sprintf("%s is read as %s, which an API server does not", k.Path, k.Field)
}

// FoldKeys returns m with the keys that the type of o spells in another case
// renamed, and what these are, sorted by path. m is not changed, and shared where
// there are none. The rule is encoding/json's, but that a key which matches exactly
// counts before all others. Objects without a Go type and CustomResourceDefinitions keep
// their keys: OLM hands them on, or decodes them, as an API server does.
func FoldKeys(m map[string]any, o Object) (map[string]any, []KeyCase) {
	folded, keys, _ := foldKeys(m, o)
	return folded, keys
}

// foldKeys is FoldKeys; the error names a quantity that is not to be computed with.
func foldKeys(m map[string]any, o Object) (map[string]any, []KeyCase, error) {
	f := folder{}
	_, f.strict = o.(*apiextensionsv1.CustomResourceDefinition)
	if _, untyped := o.(*unstructured.Unstructured); untyped || isNil(o) {
		return m, nil, nil
	}
	folded := f.fold(m, reflect.TypeOf(o), "")
	slices.SortFunc(f.found, func(a, b KeyCase) int { return strings.Compare(a.Path, b.Path) })
	if len(f.excessive) > 0 {
		return folded.(map[string]any), f.found, &InputError{Field: slices.Min(f.excessive), Problem: "is a quantity with too many digits or too large an exponent"}
	}
	return folded.(map[string]any), f.found, nil
}

type folder struct {
	strict    bool
	found     []KeyCase
	excessive []string // paths of quantities that are not computed with
}

func (f *folder) fold(value any, t reflect.Type, path string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) {
		if t == quantity && isExcessive(value) {
			f.excessive = append(f.excessive, path)
		}
		return value
	}
	switch x := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Struct:
			return f.foldStruct(x, fieldsOf(t), path)
		case reflect.Map:
			return f.foldMap(x, t.Elem(), path)
		}
	case []any:
		if t.Kind() == reflect.Slice {
			return f.foldSlice(x, t.Elem(), path)
		}
	}
	return value
}

func (f *folder) foldStruct(m map[string]any, fields structFields, path string) any {
	next := m
	set := func(key string, value any) {
		if reflect.ValueOf(next).Pointer() == reflect.ValueOf(m).Pointer() {
			next = maps.Clone(m)
		}
		next[key] = value
	}
	var others []string
	for key, value := range m {
		t, known := fields.types[key]
		if !known {
			if _, other := fields.folded[strings.ToLower(key)]; other {
				others = append(others, key)
			}
			continue
		}
		if folded := f.fold(value, t, join(path, key)); !identical(folded, value) {
			set(key, folded)
		}
	}
	slices.Sort(others) // of several the last counts, as in JSON that was made of a map
	slices.Reverse(others)
	taken := map[string]bool{}
	for _, key := range others {
		field := fields.folded[strings.ToLower(key)]
		_, exact := m[field]
		ignored := f.strict || exact || taken[field]
		f.found = append(f.found, KeyCase{Path: join(path, key), Field: field, Ignored: ignored})
		if ignored {
			continue
		}
		taken[field] = true
		set(field, f.fold(m[key], fields.types[field], join(path, key)))
		delete(next, key)
	}
	return next
}

func (f *folder) foldMap(m map[string]any, t reflect.Type, path string) any {
	next := m
	for key, value := range m {
		if folded := f.fold(value, t, join(path, key)); !identical(folded, value) {
			if reflect.ValueOf(next).Pointer() == reflect.ValueOf(m).Pointer() {
				next = maps.Clone(m)
			}
			next[key] = folded
		}
	}
	return next
}

func (f *folder) foldSlice(list []any, t reflect.Type, path string) any {
	next := list
	for i, value := range list {
		if folded := f.fold(value, t, fmt.Sprintf("%s[%d]", path, i)); !identical(folded, value) {
			if &next[0] == &list[0] {
				next = slices.Clone(list)
			}
			next[i] = folded
		}
	}
	return next
}

// identical reports whether fold returned what it was given.
func identical(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var (
	unmarshaler    = reflect.TypeFor[json.Unmarshaler]()
	updateStrategy = reflect.TypeFor[v1alpha1.UpdateStrategy]()
)

// decodesItself reports whether a type has a decoder of its own. That of an
// UpdateStrategy reads its fields as any other's.
func decodesItself(t reflect.Type) bool {
	return t != updateStrategy && reflect.PointerTo(t).Implements(unmarshaler)
}

// structFields are the fields of a struct type, and of those that it embeds.
type structFields struct {
	types  map[string]reflect.Type // by name
	folded map[string]string       // names by their lower case
}

func fieldsOf(t reflect.Type) structFields {
	if fields, ok := known.fields[t]; ok {
		return fields
	}
	return readFields(t)
}

func readFields(t reflect.Type) structFields {
	fields := structFields{types: map[string]reflect.Type{}, folded: map[string]string{}}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case name == "" && field.Anonymous:
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				inner := readFields(embedded)
				maps.Copy(fields.types, inner.types)
				maps.Copy(fields.folded, inner.folded)
			}
			continue
		case name == "":
			name = field.Name
		}
		fields.types[name], fields.folded[strings.ToLower(name)] = field.Type, name
	}
	return fields
}

// learnFields adds a type and all below it.
func learnFields(all map[reflect.Type]structFields, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		learnFields(all, t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if _, known := all[t]; known || decodesItself(t) {
		return
	}
	fields := readFields(t)
	all[t] = fields
	for _, field := range fields.types {
		learnFields(all, field)
	}
}
