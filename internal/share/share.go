// SPDX-License-Identifier: Apache-2.0

// Package share keeps what objects in caches have in common once: the same bundle is installed in many namespaces.
package share

import (
	"encoding/binary"
	"hash/maphash"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/internal/late"
	"github.com/olmcore/olm/olmcore"
)

const (
	// largePart is what a part takes, in bytes with all that is below, from on which it is looked for among those of all
	// objects. Smaller ones are looked for among those of late: to know for each whether an object still has it would take
	// more than most of them do.
	largePart = 1 << 10
	// manyParts is how many smaller parts, and as many texts, are of late: those of some thousand objects.
	manyParts = 1 << 14
	// shortText is the length up to which a text takes no more memory than what is known of it.
	shortText = 8
)

// InCommon are the parts of the objects in all caches of a process.
var InCommon = New()

// Parts are texts, slices, maps and what pointers point to, of objects. A large one is known as long as an object that
// has it is reachable. It is safe for concurrent use.
type Parts struct {
	seed  maphash.Seed
	mu    sync.Mutex
	large map[uint64]*part // by hash
	small late.Values[uint64, reflect.Value]
	texts late.Values[string, string]
}

type part struct {
	value reflect.Value
	hash  uint64
	users int
}

// New returns Parts that know none.
func New() *Parts {
	p := &Parts{seed: maphash.MakeSeed(), large: map[uint64]*part{}}
	p.small.Many, p.texts.Many = manyParts, manyParts
	return p
}

// Object replaces the parts of an object by equal ones that others have. Whoever reads objects changes nothing in them:
// see olmcore.Reader.
func (p *Parts) Object(o olmcore.Object) {
	of, ok := o.(metav1.ObjectMetaAccessor)
	_, isMetadata := o.(*metav1.PartialObjectMetadata)
	if !ok || !isMetadata && reflect.TypeOf(o) != reflect.TypeOf(olmcore.NewObject(olmcore.GVKOf(o))) {
		return // it may be a type whose values are not trees
	}
	metadata, ok := of.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok || metadata == nil {
		return
	}
	if has := p.within(reflect.ValueOf(o).Elem(), nil); len(has) > 0 {
		runtime.AddCleanup(metadata, p.release, slices.Clip(has)) // the metadata is a part of the object
	}
}

// Map replaces the texts of a map, as JSON has it, by equal ones that others have.
func (p *Parts) Map(u *unstructured.Unstructured) {
	if has := p.textsOf(u.Object, nil); len(has) > 0 {
		runtime.AddCleanup(u, p.release, slices.Clip(has))
	}
}

func (p *Parts) textsOf(value any, has []*part) []*part {
	replaced := func(value any, set func(any)) {
		if text, is := value.(string); is {
			v := reflect.New(reflect.TypeFor[string]()).Elem()
			v.SetString(text)
			has = p.text(v, has)
			set(v.String())
			return
		}
		has = p.textsOf(value, has)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			replaced(v, func(next any) { value[key] = next })
		}
	case []any:
		for i, v := range value {
			replaced(v, func(next any) { value[i] = next })
		}
	}
	return has
}

// Forget forgets the parts that are only known because they are of late, so that what a cache holds from now on can be
// told from what others held.
func (p *Parts) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.small.Forget()
	p.texts.Forget()
}

// within shares what is in a value that can be set, and returns has with the large parts that the value has from now
// on.
func (p *Parts) within(v reflect.Value, has []*part) []*part {
	switch v.Kind() {
	case reflect.String:
		return p.text(v, has)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				has = p.within(v.Field(i), has)
			}
		}
		return has
	case reflect.Pointer:
		if v.IsNil() {
			return has
		}
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
			return has
		}
	default:
		return has
	}
	hash, size := p.sum(v)
	known, taken := p.take(v, hash, size, false)
	if !taken {
		has = p.below(v, has) // first, as it is not changed once it is known
		known, _ = p.take(v, hash, size, true)
	}
	if known != nil {
		has = append(has, known)
	}
	return has
}

// text shares a text.
func (p *Parts) text(v reflect.Value, has []*part) []*part {
	text := v.String()
	switch {
	case len(text) <= shortText:
	case len(text) < largePart:
		p.mu.Lock()
		defer p.mu.Unlock()
		known, ok := p.texts.Get(text)
		if !ok {
			known = strings.Clone(text) // of its own: it may be cut from a larger one
			p.texts.Put(known, known)
		}
		v.SetString(known)
	default:
		hash, size := p.sum(v)
		if known, _ := p.take(v, hash, size, true); known != nil {
			has = append(has, known)
		}
	}
	return has
}

// below shares what is in a slice, in a map or behind a pointer.
func (p *Parts) below(v reflect.Value, has []*part) []*part {
	switch v.Kind() {
	case reflect.Pointer:
		return p.within(v.Elem(), has)
	case reflect.Slice:
		for i := range v.Len() {
			has = p.within(v.Index(i), has)
		}
		return has
	}
	next := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, old := range v.MapKeys() {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(old)
		value.Set(v.MapIndex(old))
		has = p.within(value, p.within(key, has))
		next.SetMapIndex(key, value)
	}
	v.Set(next)
	return has
}

// take sets a part to an equal one that is known, or makes it known itself where add says so. It returns whether it is
// known then, and what is known of a large one.
func (p *Parts) take(v reflect.Value, hash uint64, size int, add bool) (*part, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size < largePart {
		value, ok := p.small.Get(hash)
		if !ok && add {
			p.small.Put(hash, held(v))
			return nil, true
		}
		return nil, ok && same(v, value)
	}
	of := p.large[hash]
	switch {
	case of == nil && add:
		of = &part{value: held(v), hash: hash}
		p.large[hash] = of
	case of == nil || !same(v, of.value):
		return nil, false
	}
	of.users++
	return of, true
}

// held is a value of its own, not a field of an object.
func held(v reflect.Value) reflect.Value {
	value := reflect.New(v.Type()).Elem()
	value.Set(v)
	return value
}

// same sets a value to an equal one, and reports whether it is equal.
func same(v, known reflect.Value) bool {
	equal := known.Type() == v.Type() && reflect.DeepEqual(known.Interface(), v.Interface())
	if equal {
		v.Set(known)
	}
	return equal
}

// release forgets the parts of an object that is gone, where no other has them.
func (p *Parts) release(of []*part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range of {
		if o.users--; o.users == 0 {
			delete(p.large, o.hash)
		}
	}
}

// sum returns a hash, the same for equal values, and about how much memory a value takes besides itself.
func (p *Parts) sum(v reflect.Value) (hash uint64, size int) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	size = p.write(&h, v)
	return h.Sum64(), size
}

func (p *Parts) write(h *maphash.Hash, v reflect.Value) (size int) {
	number := func(n uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	switch v.Kind() {
	case reflect.String:
		number(uint64(v.Len()))
		h.WriteString(v.String())
		return v.Len()
	case reflect.Bool:
		if v.Bool() {
			number(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint8, reflect.Uint, reflect.Uint32, reflect.Uint64:
		number(v.Uint())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			number(0)
			return 0
		}
		return int(v.Elem().Type().Size()) + p.write(h, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // equal ones may differ in their fields
		}
		for i := range v.NumField() {
			size += p.write(h, v.Field(i))
		}
	case reflect.Slice:
		number(uint64(v.Len()))
		size = v.Len() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			size += p.write(h, v.Index(i))
		}
	case reflect.Map:
		var all uint64 // in no order
		size = v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size())
		for entries := v.MapRange(); entries.Next(); {
			var entry maphash.Hash
			entry.SetSeed(p.seed)
			size += p.write(&entry, entries.Key()) + p.write(&entry, entries.Value())
			all += entry.Sum64()
		}
		number(all)
	}
	return size
}
