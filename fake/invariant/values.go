// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	metaTimeType = reflect.TypeFor[metav1.Time]()
	objectType   = reflect.TypeFor[runtime.Object]()
)

// walk returns a copy of v in which nothing is shared, with every leaf that visit knows replaced.
func walk(v reflect.Value, visit func(reflect.Value) (reflect.Value, bool)) reflect.Value {
	if replaced, ok := visit(v); ok {
		return replaced
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(walk(v.Elem(), visit))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(walk(v.Elem(), visit))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(walk(v.Index(i), visit))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(walk(v.Index(i), visit))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, key := range v.MapKeys() {
				out.SetMapIndex(key, walk(v.MapIndex(key), visit))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(walk(v.Field(i), visit))
			}
		}
	}
	return out
}

// Clone returns a deep copy of a value made of API objects and plain data, such
// as an Input. Unexported fields are copied as they are.
func Clone[T any](value T) T {
	v := reflect.ValueOf(&value).Elem()
	return walk(v, func(v reflect.Value) (reflect.Value, bool) {
		if v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Implements(objectType) {
			return reflect.ValueOf(v.Interface().(runtime.Object).DeepCopyObject()), true
		}
		return v, v.Type() == timeType
	}).Interface().(T)
}

// Shift returns a deep copy of value in which every time that is set is moved by d.
func Shift[T any](value T, d time.Duration) T {
	v := reflect.ValueOf(&value).Elem()
	return walk(v, func(v reflect.Value) (reflect.Value, bool) {
		switch v.Type() {
		case timeType:
			if t := v.Interface().(time.Time); !t.IsZero() {
				return reflect.ValueOf(t.Add(d)), true
			}
			return v, true
		case metaTimeType:
			if t := v.Interface().(metav1.Time); !t.IsZero() {
				return reflect.ValueOf(metav1.NewTime(t.Add(d))), true
			}
			return v, true
		}
		return v, false
	}).Interface().(T)
}

// Shuffle returns a copy of a struct whose slices (the struct's own fields and the Items of what it and its parts
// observed, not those of the objects in them) are in another order, chosen by seed.
func Shuffle[T any](value T, seed uint64) T {
	value = Clone(value)
	v := reflect.ValueOf(&value).Elem()
	if v.Kind() != reflect.Struct {
		return value
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			shuffleField(v.Field(i), seed)
		}
	}
	return value
}

func shuffleField(field reflect.Value, seed uint64) {
	switch field.Kind() {
	case reflect.Slice:
		if field.Type() != reflect.TypeFor[[]byte]() {
			shuffle(field, seed)
		}
	case reflect.Struct:
		if items := field.FieldByName("Items"); items.IsValid() && items.Kind() == reflect.Slice && field.FieldByName("Complete").IsValid() {
			shuffle(items, seed)
			return
		}
		for i := range field.NumField() { // what was observed in a part of the struct
			if field.Type().Field(i).IsExported() && field.Field(i).Kind() == reflect.Struct {
				shuffleField(field.Field(i), seed)
			}
		}
	}
}

// shuffle permutes a slice with a linear congruential generator: the order is a function of the seed alone.
func shuffle(slice reflect.Value, seed uint64) {
	swap := reflect.Swapper(slice.Interface())
	for i := slice.Len() - 1; i > 0; i-- {
		seed = seed*6364136223846793005 + 1442695040888963407
		swap(i, int(seed>>33)%(i+1))
	}
}

// at returns a copy of an Input with its field Now set; ok is false when it has no such field.
func at[T any](input T, now time.Time) (T, bool) {
	field := reflect.ValueOf(&input).Elem().FieldByName("Now")
	if !field.IsValid() || field.Type() != timeType {
		return input, false
	}
	field.Set(reflect.ValueOf(now))
	return input, true
}

func nowOf[T any](input T) time.Time {
	field := reflect.ValueOf(&input).Elem().FieldByName("Now")
	if !field.IsValid() || field.Type() != timeType {
		return time.Time{}
	}
	return field.Interface().(time.Time)
}
