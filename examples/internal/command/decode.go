// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/internal/spelling"
)

// decoder sets Go values from a decoded YAML or JSON document. It is strict: a field that the type does not have, and a
// value of another type, are errors. Durations are strings such as 30s. A key without a value (null) sets nothing.
type decoder struct {
	problems []error
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
)

// quantityText limits the digits of a quantity: parsing one with an exponent of nine digits takes hours.
var quantityText = regexp.MustCompile(`^[+-]?[0-9.]{1,30}([A-Za-z]{0,2}|[eE][+-]?[0-9]{1,2})$`)

func (d *decoder) reject(path, problem string) {
	d.problems = append(d.problems, errors.New(strings.TrimPrefix(path+": ", ": ")+problem))
}

// decode sets a value that is at a path of the document; the path of the whole document is empty.
func (d *decoder) decode(path string, value any, into reflect.Value) {
	if value == nil {
		return
	}
	t := into.Type()
	switch {
	case t == durationType:
		d.decodeDuration(path, value, into)
	case reflect.PointerTo(t).Implements(unmarshaler):
		d.decodeItself(path, value, into)
	case t.Kind() == reflect.Pointer:
		element := reflect.New(t.Elem())
		d.decode(path, value, element.Elem())
		into.Set(element)
	case t.Kind() == reflect.Struct:
		d.decodeStruct(path, value, into)
	case t.Kind() == reflect.Slice:
		d.decodeSlice(path, value, into)
	case t.Kind() == reflect.Map:
		d.decodeMap(path, value, into)
	default:
		d.decodeScalar(path, value, into)
	}
}

func (d *decoder) decodeDuration(path string, value any, into reflect.Value) {
	text, _ := value.(string)
	duration, err := time.ParseDuration(text)
	if err != nil {
		d.reject(path, "is not a duration such as 30s or 1h30m")
		return
	}
	into.SetInt(int64(duration))
}

// decodeItself sets a value whose type has a decoder of its own, such as a quantity.
func (d *decoder) decodeItself(path string, value any, into reflect.Value) {
	text := fmt.Sprint(value)
	encoded, err := json.Marshal(value)
	isExcessive := into.Type() == quantityType && !quantityText.MatchString(text)
	if err != nil || isExcessive || json.Unmarshal(encoded, into.Addr().Interface()) != nil {
		d.reject(path, "is not a "+strings.ToLower(into.Type().Name()))
	}
}

func (d *decoder) decodeStruct(path string, value any, into reflect.Value) {
	mapping, ok := value.(map[string]any)
	if !ok {
		d.reject(path, "is not a mapping")
		return
	}
	fields := fieldsOf(into.Type())
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		at := pathBelow(path, key)
		if index, known := fields[key]; known {
			d.decode(at, mapping[key], into.FieldByIndex(index))
		} else {
			d.reject(at, unknown(key, slices.Sorted(maps.Keys(fields))))
		}
	}
}

func (d *decoder) decodeSlice(path string, value any, into reflect.Value) {
	list, ok := value.([]any)
	if !ok {
		d.reject(path, "is not a list")
		return
	}
	slice := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, element := range list {
		d.decodeElement(fmt.Sprintf("%s[%d]", path, i), element, slice.Index(i))
	}
	into.Set(slice)
}

func (d *decoder) decodeMap(path string, value any, into reflect.Value) {
	mapping, ok := value.(map[string]any)
	if !ok {
		d.reject(path, "is not a mapping")
		return
	}
	t := into.Type()
	into.Set(reflect.MakeMapWithSize(t, len(mapping)))
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		element := reflect.New(t.Elem()).Elem()
		d.decodeElement(pathBelow(path, key), mapping[key], element)
		into.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
	}
}

// decodeElement sets an element of a list or a map, which must have a value.
func (d *decoder) decodeElement(path string, value any, into reflect.Value) {
	if value == nil {
		d.reject(path, "has no value")
		return
	}
	d.decode(path, value, into)
}

func (d *decoder) decodeScalar(path string, value any, into reflect.Value) {
	switch kind := into.Kind(); kind {
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			into.SetBool(b)
			return
		}
		d.reject(path, "is not true or false")
	case reflect.String:
		if text, ok := value.(string); ok {
			into.SetString(text)
			return
		}
		d.reject(path, `is not a string; numbers, and words such as Off, On, Yes and No, need quotes in YAML: "Off"`)
	case reflect.Int, reflect.Int32, reflect.Int64:
		number, ok := value.(int64)
		switch {
		case !ok:
			d.reject(path, "is not a whole number")
		case into.OverflowInt(number):
			d.reject(path, "is a number that is out of range")
		default:
			into.SetInt(number)
		}
	default:
		d.reject(path, "cannot be set in a file")
	}
}

// fieldsOf returns the indexes of the fields of a struct that a file can set, by their keys. Fields with the tag "-"
// are not among them.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, field := range reflect.VisibleFields(t) {
		if key := keyOf(field); key != "" {
			fields[key] = field.Index
		}
	}
	return fields
}

// keyOf returns the key of a field: the name in its JSON tag, or the field's name in lower case where it has no tag, as
// the fields of schema.GroupVersionKind. It is empty for a field that no file can set.
func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case !field.IsExported(), key == "-", field.Anonymous && key == "":
		return ""
	case key == "":
		return strings.ToLower(field.Name)
	}
	return key
}

// pathBelow returns the path of a key below a path. A key that is no plain word is quoted, so that a path is one line.
func pathBelow(path, key string) string {
	isPlain := key != "" && strings.IndexFunc(key, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) < 0
	if !isPlain {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// unknown says that a key is none of those that are known, and which was meant where one is near.
func unknown(key string, known []string) string {
	if near := spelling.Nearest(key, known); near != "" {
		return fmt.Sprintf("is not known: did you mean %q?", near)
	}
	return "is not known. There are " + strings.Join(known, ", ")
}
