// SPDX-License-Identifier: Apache-2.0

package olmcore

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

	"github.com/olmcore/olm/internal/spelling"
)

// KeyCase is a key of an object that is not spelt as a field is. One that differs in case alone, such as
// MinKubeVersion, encoding/json, and so OLM, takes for the field; an API server drops it.
type KeyCase struct {
	// Path is where the key is, such as spec.MinKubeVersion; Field is the name of the field.
	Path, Field string
	// Ignored: it was not read, as the field is there, too, or as OLM is as strict as an API server for this kind.
	Ignored bool
	// Misspelt: it differs from Field in more than case, and was not read.
	Misspelt bool
}

// String says what became of the key.
func (k KeyCase) String() string {
	switch {
	case k.Misspelt:
		return fmt.Sprintf("%s is not known, and ignored: did you mean %s?", k.Path, k.Field)
	case k.Ignored:
		return fmt.Sprintf("%s is ignored: the field is called %s", k.Path, k.Field)
	}
	return fmt.Sprintf("%s is read as %s, which an API server does not", k.Path, k.Field)
}

// FoldKeys returns m with the keys that the type of o spells in another case renamed, and what these are, sorted by
// path. m is not changed, and shared where there are none. The rule is encoding/json's, but that a key which matches
// exactly counts before all others. Objects without a Go type and CustomResourceDefinitions keep their keys: OLM hands
// them on, or decodes them, as an API server does.
func FoldKeys(m map[string]any, o Object) (map[string]any, []KeyCase) {
	folded, keys, _ := foldKeys(m, o, false)
	return folded, keys
}

// foldKeys is FoldKeys; the error names a quantity that is not to be computed with.
func foldKeys(m map[string]any, o Object, spelling bool) (map[string]any, []KeyCase, error) {
	_, untyped := o.(*unstructured.Unstructured)
	if untyped || isNil(o) {
		return m, nil, nil
	}
	f := folderOf(o)
	f.spelling = spelling
	folded, _ := f.fold(m, reflect.TypeOf(o))
	slices.SortFunc(f.found, func(a, b KeyCase) int { return strings.Compare(a.Path, b.Path) })
	if len(f.excessive) > 0 {
		return folded.(map[string]any), f.found, &InputError{Field: slices.Min(f.excessive), Problem: "is a quantity with too many digits or too large an exponent"}
	}
	return folded.(map[string]any), f.found, nil
}

// folder goes through JSON values along a Go type.
type folder struct {
	strict    bool      // keys count as they are spelt
	fitting   bool      // leave out what types that decode themselves do not take
	spelling  bool      // note keys that are near a field
	found     []KeyCase // in no order
	excessive []string  // paths of quantities that are not computed with
	path      []string  // of the value that is folded
}

func folderOf(o Object) folder {
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
