// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/internal/nilcheck"
	"github.com/olmcore/olm/internal/spelling"
	"github.com/olmcore/olm/olmcore"
)

// KeyCase describes a key of an object that is not spelled like the field that it resembles. If only the case differs,
// as in MinKubeVersion, encoding/json, and therefore OLM, sets the field. An API server drops the key.
type KeyCase struct {
	// Path is the path of the key, such as spec.MinKubeVersion. Field is the name of the field.
	Path, Field string
	// Ignored is true if the key was not read: the object also contains the field, or keys of this kind are
	// case-sensitive.
	Ignored bool
	// Misspelt is true if the key differs from Field in more than case. Such a key is not read.
	Misspelt bool
}

// String returns a sentence that reports how the key was handled.
func (k KeyCase) String() string {
	switch {
	case k.Misspelt:
		return fmt.Sprintf("%s is not known, and ignored: did you mean %s?", k.Path, k.Field)
	case k.Ignored:
		return fmt.Sprintf("%s is ignored: the field is called %s", k.Path, k.Field)
	}
	return fmt.Sprintf("%s is read as %s, which an API server does not", k.Path, k.Field)
}

// FoldKeys returns a copy of m in which keys that differ only in case from a field of the type of o have the name of
// that field, and the keys that it renamed, sorted by path. If there are none, it returns m itself. The rule is that of
// encoding/json, except that a key that matches exactly takes precedence. The keys of objects without a Go type and of
// CustomResourceDefinitions are not renamed.
func FoldKeys(m map[string]any, o olmcore.Object) (map[string]any, []KeyCase) {
	folded, keys, _ := foldKeys(m, o, false)
	return folded, keys
}

// foldKeys does the same as FoldKeys. The error is an *olmcore.InputError that names an excessive quantity.
func foldKeys(m map[string]any, o olmcore.Object, spelling bool) (map[string]any, []KeyCase, error) {
	_, untyped := o.(*unstructured.Unstructured)
	if untyped || nilcheck.IsNil(o) {
		return m, nil, nil
	}
	f := folderOf(o)
	f.spelling = spelling
	folded, _ := f.fold(m, reflect.TypeOf(o))
	slices.SortFunc(f.found, func(a, b KeyCase) int { return strings.Compare(a.Path, b.Path) })
	if len(f.excessive) > 0 {
		return folded.(map[string]any), f.found, &olmcore.InputError{
			Field:   slices.Min(f.excessive),
			Problem: "is a quantity with too many digits or too large an exponent",
		}
	}
	return folded.(map[string]any), f.found, nil
}

// folder walks JSON values and the Go type that they belong to.
type folder struct {
	strict    bool      // keys are case-sensitive
	fitting   bool      // omit values that the type rejects
	spelling  bool      // record unknown keys that resemble a field
	found     []KeyCase // in no order
	excessive []string  // paths of excessive quantities
	path      []string  // of the value that is folded
}

func folderOf(o olmcore.Object) folder {
	_, strict := o.(*apiextensionsv1.CustomResourceDefinition)
	return folder{strict: strict}
}

// fold returns a copy of value with its keys renamed; fits is false for what is to be left out.
func (f *folder) fold(value any, t reflect.Type) (folded any, fits bool) {
	t = indirect(t)
	m, isMap := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case t == quantity && isExcessive(value):
		f.excessive = append(f.excessive, f.at())
		return value, !f.fitting
	case !isMap && !isList && !f.fitting:
	case decodesItself(t):
		return value, !f.fitting || decodes(value, t)
	case isMap && t.Kind() == reflect.Struct:
		return f.foldStruct(m, fieldsOf(t)), true
	case isMap && t.Kind() == reflect.Map:
		return f.foldMap(m, t.Elem()), true
	case isList && t.Kind() == reflect.Slice:
		return f.foldList(list, t.Elem())
	}
	return value, true
}

// indirect returns the type that a pointer points to.
func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func (f *folder) foldMap(m map[string]any, elem reflect.Type) map[string]any {
	next := make(map[string]any, len(m))
	for key, entry := range m {
		f.put(next, key, key, entry, elem)
	}
	return next
}

// foldList does not fit if an entry does not, because the order of a list may matter.
func (f *folder) foldList(list []any, elem reflect.Type) (folded any, fits bool) {
	next := make([]any, len(list))
	for i, entry := range list {
		next[i], fits = f.below("["+strconv.Itoa(i)+"]", entry, elem)
		if !fits {
			return nil, false
		}
	}
	return next, true
}

// below folds what is at a key of the value.
func (f *folder) below(key string, value any, t reflect.Type) (folded any, fits bool) {
	f.path = append(f.path, key)
	folded, fits = f.fold(value, t)
	f.path = f.path[:len(f.path)-1]
	return folded, fits
}

// put adds what is at a key of the value as a field.
func (f *folder) put(next map[string]any, field, key string, value any, t reflect.Type) {
	if folded, fits := f.below(key, value, t); fits {
		next[field] = folded
	}
}

// at is the path of the value, or of what is below it.
func (f *folder) at(below ...string) string {
	return strings.ReplaceAll(strings.Join(slices.Concat(f.path, below), "."), ".[", "[")
}

func (f *folder) foldStruct(m map[string]any, fields structFields) map[string]any {
	next := make(map[string]any, len(m))
	var others []string
	for key, value := range m {
		if t, exact := fields.types[key]; exact {
			f.put(next, key, key, value, t)
		} else if _, other := fields.folded[strings.ToLower(key)]; other {
			others = append(others, key)
		} else {
			next[key] = value
			f.misspelt(key, fields)
		}
	}
	slices.Sort(others) // of several the last counts, as in JSON that was made of a map
	for _, key := range slices.Backward(others) {
		field := fields.folded[strings.ToLower(key)]
		_, exact := m[field]
		_, taken := next[field]
		ignored := f.strict || exact || taken
		f.found = append(f.found, KeyCase{Path: f.at(key), Field: field, Ignored: ignored})
		if ignored && !f.fitting {
			next[key] = m[key]
		} else if ignored { // it may count when what counts before it does not fit
			f.put(next, key, key, m[key], fields.types[field])
		} else {
			f.put(next, field, key, m[key], fields.types[field])
		}
	}
	return next
}

// misspelt notes a key that is no field, if it is near one.
func (f *folder) misspelt(key string, fields structFields) {
	if !f.spelling {
		return
	}
	if field := spelling.Nearest(key, slices.Collect(maps.Keys(fields.types))); field != "" {
		f.found = append(f.found, KeyCase{Path: f.at(key), Field: field, Misspelt: true})
	}
}

var (
	unmarshaler    = reflect.TypeFor[json.Unmarshaler]()
	updateStrategy = reflect.TypeFor[v1alpha1.UpdateStrategy]()
)

// decodesItself reports whether a type has a decoder of its own. That of an UpdateStrategy reads its fields as any
// other's.
func decodesItself(t reflect.Type) bool {
	return t != updateStrategy && reflect.PointerTo(t).Implements(unmarshaler)
}

// structFields are the fields of a struct type, and of those that it embeds.
type structFields struct {
	types  map[string]reflect.Type // by name
	folded map[string]string       // names by their lower case
}

func fieldsOf(t reflect.Type) structFields {
	if fields, ok := knownFields[t]; ok {
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

// knownFields contains the fields of the Go types of all kinds, and of the types below them.
var knownFields = fieldsOfKinds(olmcore.Kinds())

func fieldsOfKinds(kinds []olmcore.Kind) map[reflect.Type]structFields {
	all := map[reflect.Type]structFields{}
	for _, k := range kinds {
		if k.NewList() != nil {
			learnFields(all, reflect.TypeOf(olmcore.NewObject(k.GroupVersionKind)))
		}
	}
	return all
}

// learnFields adds a type and the types of its fields.
func learnFields(all map[reflect.Type]structFields, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		learnFields(all, t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	_, known := all[t]
	if known || decodesItself(t) {
		return
	}
	fields := readFields(t)
	all[t] = fields
	for _, field := range fields.types {
		learnFields(all, field)
	}
}
