// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
)

// Vocabulary is what values are drawn from.
type Vocabulary struct {
	// Now is the time around which times lie: up to a day before, and a little after.
	Now time.Time
	// Namespace is the namespace of most objects.
	Namespace string
	// Names are the names of objects, in the order of their likelihood.
	Names []string
	// Words are values for all other strings, by the lower-case name of the field; the key "" is for fields that have
	// none.
	Words map[string][]string
	// Hostile adds what no API server would store: empty names and UIDs, other
	// namespaces, invalid UTF-8, huge strings, nil entries in lists.
	Hostile bool
	// Objects are the values that a field of an interface type, such as
	// olmcore.Object, may hold; without any, those fields stay nil.
	Objects []olmcore.Object
}

// maxDepth bounds how deep a value is filled; below it, pointers are nil and lists are empty.
const maxDepth = 12

// Value returns a generator of T filled at random: pointers are nil half of the time, lists and maps have up to two
// entries, objects have metadata as an API server leaves it. It is meant for Input structs and API objects.
func Value[T any](v Vocabulary) *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) T {
		var value T
		f := filler{t: t, v: v}
		f.fill(reflect.ValueOf(&value).Elem(), "", 0)
		return value
	})
}

type filler struct {
	t *rapid.T
	v Vocabulary
}

func (f filler) fill(v reflect.Value, field string, depth int) {
	if f.known(v, field) {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(f.t, field))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.SampledFrom([]int{0, 1, 2, 3, 100, -1}).Draw(f.t, field)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(rapid.IntRange(0, 3).Draw(f.t, field)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(rapid.IntRange(0, 3).Draw(f.t, field)))
	case reflect.String:
		v.SetString(f.word(field))
	case reflect.Pointer:
		if depth < maxDepth && (depth <= 1 && !f.v.Hostile || rapid.Bool().Draw(f.t, field+"?")) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), field, depth+1)
			if at, ok := v.Interface().(*metav1.Time); ok && at.IsZero() {
				v.SetZero() // the API has no zero times, only absent ones
			}
		}
	case reflect.Slice:
		f.fillSlice(v, field, depth)
	case reflect.Map:
		f.fillMap(v, field, depth)
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), field, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), name, depth+1)
			}
		}
	case reflect.Interface:
		f.fillInterface(v, field)
	}
}

func (f filler) fillSlice(v reflect.Value, field string, depth int) {
	if depth >= maxDepth {
		return
	}
	n := rapid.IntRange(0, 2).Draw(f.t, "len "+field)
	if n == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		element := v.Index(i)
		if element.Kind() == reflect.Pointer && !f.v.Hostile {
			element.Set(reflect.New(element.Type().Elem()))
			f.fill(element.Elem(), field, depth+1)
			continue
		}
		f.fill(element, field, depth+1)
	}
}

func (f filler) fillMap(v reflect.Value, field string, depth int) {
	if depth >= maxDepth {
		return
	}
	n := rapid.IntRange(0, 2).Draw(f.t, "len "+field)
	if n == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, field+" key", depth+1)
		f.fill(value, field+" value", depth+1)
		v.SetMapIndex(key, value)
	}
}

func (f filler) fillInterface(v reflect.Value, field string) {
	var fitting []olmcore.Object
	for _, o := range f.v.Objects {
		if reflect.TypeOf(o).Implements(v.Type()) {
			fitting = append(fitting, o)
		}
	}
	if len(fitting) > 0 {
		v.Set(reflect.ValueOf(rapid.SampledFrom(fitting).Draw(f.t, field).DeepCopyObject()))
	}
}

// known fills the types whose random values would be nonsense.
func (f filler) known(v reflect.Value, field string) bool {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = f.time(field)
	case *metav1.Time:
		*x = metav1.Time{}
		if rapid.IntRange(0, 3).Draw(f.t, field+"?") > 0 {
			*x = olmcore.Timestamp(f.time(field))
		}
	case *metav1.Duration:
		x.Duration = time.Duration(rapid.IntRange(-1, 90).Draw(f.t, field)) * time.Minute
	case *time.Duration:
		*x = 0
	case *metav1.TypeMeta:
	case *metav1.ObjectMeta:
		f.meta(x)
	case *resource.Quantity:
		*x = resource.MustParse(rapid.SampledFrom([]string{"0", "10m", "50Mi", "1"}).Draw(f.t, field))
	case *intstr.IntOrString:
		*x = intstr.FromInt32(int32(rapid.IntRange(0, 100).Draw(f.t, field)))
	case *runtime.RawExtension:
		x.Raw = []byte(`{}`)
	case *json.RawMessage:
		*x = json.RawMessage(`{}`)
	case *semver.Version:
		*x = semver.Version{Major: 1, Minor: uint64(rapid.IntRange(0, 3).Draw(f.t, field))}
	case *types.UID:
		*x = f.uid(field)
	default:
		return false
	}
	return true
}

func (f filler) time(field string) time.Time {
	seconds := rapid.SampledFrom([]int{0, -1, -5, -30, -60, -61, -300, -3600, -86400, 10}).Draw(f.t, field)
	return f.v.Now.Add(time.Duration(seconds) * time.Second)
}

func (f filler) uid(field string) types.UID {
	if f.v.Hostile && rapid.IntRange(0, 7).Draw(f.t, field+"?") == 0 {
		return ""
	}
	return types.UID(fmt.Sprint("uid-", rapid.IntRange(0, 9).Draw(f.t, field)))
}

// meta fills metadata as an API server leaves it.
func (f filler) meta(m *metav1.ObjectMeta) {
	m.Namespace, m.Name = f.v.Namespace, rapid.SampledFrom(f.v.Names).Draw(f.t, "name")
	m.UID = f.uid("uid")
	m.ResourceVersion = fmt.Sprint(rapid.IntRange(1, 9).Draw(f.t, "resourceVersion"))
	m.Generation = int64(rapid.IntRange(1, 3).Draw(f.t, "generation"))
	m.CreationTimestamp = olmcore.Timestamp(f.time("creationTimestamp"))
	if rapid.IntRange(0, 5).Draw(f.t, "deleted") == 0 {
		m.DeletionTimestamp = new(olmcore.Timestamp(f.time("deletionTimestamp")))
	}
	f.fillMap(reflect.ValueOf(&m.Labels).Elem(), "Labels", 0)
	f.fillMap(reflect.ValueOf(&m.Annotations).Elem(), "Annotations", 0)
	f.fillSlice(reflect.ValueOf(&m.OwnerReferences).Elem(), "OwnerReferences", 0)
	f.fillSlice(reflect.ValueOf(&m.Finalizers).Elem(), "Finalizers", 0)
	if f.v.Hostile && rapid.IntRange(0, 3).Draw(f.t, "hostile") == 0 {
		m.Namespace, m.Name, m.ResourceVersion = f.word("Namespace"), f.word("Name"), ""
	}
}

// hostileWords are strings that no field expects.
var hostileWords = []string{"", "\xff\xfe", "a/b", "..", strings.Repeat("x", 1<<12), "<&>\x00", "größe", "{}", "[", "-1", "null"}

func (f filler) word(field string) string {
	words := f.v.Words[strings.ToLower(field)]
	if len(words) == 0 {
		words = append(append([]string{""}, f.v.Words[""]...), f.v.Names...)
	}
	if f.v.Hostile {
		words = append(words[:len(words):len(words)], hostileWords...)
	}
	return rapid.SampledFrom(words).Draw(f.t, field)
}
