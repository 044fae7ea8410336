// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/binary"
	"hash/maphash"
	"reflect"
	"runtime"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// longText is the length from which on a text is worth to be looked for: the search costs some words.
	longText = 64
	// largePart is that for a slice or a map, in bytes with all that is below.
	largePart = 512
)

// inCommon are the parts that objects in caches have in common: the same bundle is installed in many namespaces.
var inCommon = newParts()

// parts are slices and maps of objects, each as long as one that has it is reachable.
type parts struct {
	seed  maphash.Seed
	mu    sync.Mutex
	known map[uint64]*part // by hash
}

type part struct {
	value reflect.Value
	hash  uint64
	users int
}

func newParts() *parts { return &parts{seed: maphash.MakeSeed(), known: map[uint64]*part{}} }

// share replaces large slices and maps of an object by equal ones that others have, and long texts. Whoever reads objects
// changes nothing in them: see olmcore.Reader.
func (p *parts) share(o olmcore.Object) {
	of, ok := o.(metav1.ObjectMetaAccessor)
	if !ok || reflect.TypeOf(o) != reflect.TypeOf(olmcore.NewObject(olmcore.GVKOf(o))) {
		return // it may be a type whose values are not trees
	}
	metadata, ok := of.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok || metadata == nil {
		return
	}
	if has := p.within(reflect.ValueOf(o).Elem(), longText, nil); len(has) > 0 {
		runtime.AddCleanup(metadata, p.release, has) // the metadata is a part of the object
	}
}

// within shares what is in a value that can be set, of texts those of a length, and returns has with the parts that the
// value has from now on.
func (p *parts) within(v reflect.Value, length int, has []*part) []*part {
	switch v.Kind() {
	case reflect.String:
		if v.Len() >= length {
			v.SetString(unique.Make(v.String()).Value())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			has = p.within(v.Elem(), length, has)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				has = p.within(v.Field(i), length, has)
			}
		}
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
			return has
		}
		hash, size := p.sum(v)
		if size < largePart {
			return p.below(v, has)
		}
		known := p.take(v, hash, false)
		if known == nil {
			has = p.below(v, has) // first, as it is not changed once it is known
			known = p.take(v, hash, true)
		}
		if known != nil {
			has = append(has, known)
		}
	}
	return has
}

// below shares what is in a slice or a map, all texts among it: labels, the owners of objects and the steps of plans have
// most in common.
func (p *parts) below(v reflect.Value, has []*part) []*part {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			has = p.within(v.Index(i), 1, has)
		}
		return has
	}
	next := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, key := range v.MapKeys() {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		has = p.within(value, 1, has)
		if key.Kind() == reflect.String {
			text := reflect.New(key.Type()).Elem()
			text.SetString(unique.Make(key.String()).Value())
			key = text
		}
		next.SetMapIndex(key, value)
	}
	v.Set(next)
	return has
}

// take sets a slice or a map to an equal one that is known, or makes it known itself where add says so. It returns nil for
// one that is not known then.
func (p *parts) take(v reflect.Value, hash uint64, add bool) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.known[hash]
	switch {
	case of == nil && add:
		held := reflect.New(v.Type()).Elem() // not v, which is a field of the object
		held.Set(v)
		of = &part{value: held, hash: hash}
		p.known[hash] = of
	case of == nil || of.value.Type() != v.Type() || !reflect.DeepEqual(of.value.Interface(), v.Interface()):
		return nil
	default:
		v.Set(of.value)
	}
	of.users++
	return of
}

// release forgets the parts of an object that is gone, where no other has them.
func (p *parts) release(of []*part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range of {
		if o.users--; o.users == 0 {
			delete(p.known, o.hash)
		}
	}
}

// sum returns a hash, the same for equal values, and about how much memory a value takes besides itself.
func (p *parts) sum(v reflect.Value) (hash uint64, size int) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	size = p.write(&h, v)
	return h.Sum64(), size
}

func (p *parts) write(h *maphash.Hash, v reflect.Value) (size int) {
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
