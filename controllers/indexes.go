// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/late"
	"github.com/olmcore/olm/olmcore"
)

// Indexes has the methods Index and Find of an olmcore.IndexedReader. A Reader over a cache embeds it. Before the keys
// of a change are queued, the change must be passed to Drop, so that no index is older than the change. Indexes is safe
// for concurrent use.
type Indexes struct {
	// Watched is what the cache holds: of other objects nothing is kept, as nothing tells when they change.
	Watched Watched

	mu sync.Mutex
	// wide are those of the whole cluster by kind. Of namespaces there may be many, whose indexes are soon made anew: only
	// those that were asked for last are kept.
	wide  map[schema.GroupKind]*indexes
	local late.Values[indexed, *indexes]
}

// manyIndexes is how many indexes of namespaces are kept at least: those of some fifteen namespaces.
const manyIndexes = 64

// indexed are the objects of a kind in a namespace.
type indexed struct {
	kind      schema.GroupKind
	namespace string
}

// indexes are those of some objects by their keys, and how often the objects changed.
type indexes struct {
	values  map[string]any
	changes int
}

// Index implements olmcore.IndexedReader.
func (x *Indexes) Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any {
	if !x.Watched.Holds(gvk, namespace) {
		return build()
	}
	x.mu.Lock()
	of := x.of(gvk.GroupKind(), namespace)
	value, changes := of.values[key], of.changes
	x.mu.Unlock()
	if value != nil {
		return value
	}
	value = build()
	x.mu.Lock()
	defer x.mu.Unlock()
	if value != nil && of.changes == changes { // else it may be older than the change
		if of.values == nil {
			of.values = map[string]any{}
		}
		of.values[key] = value
	}
	return value
}

// find returns the indexes of the objects of a kind in a namespace, "" for all, if they are kept.
func (x *Indexes) find(kind schema.GroupKind, namespace string) (of *indexes, ok bool) {
	if namespace == "" {
		of, ok = x.wide[kind]
		return of, ok
	}
	return x.local.Get(indexed{kind, namespace})
}

// of returns the indexes of such objects, which are kept from now on.
func (x *Indexes) of(kind schema.GroupKind, namespace string) *indexes {
	of, ok := x.find(kind, namespace)
	if ok {
		return of
	}
	of = &indexes{}
	if namespace != "" {
		x.local.Many = manyIndexes
		x.local.Put(indexed{kind, namespace}, of)
		return of
	}
	if x.wide == nil {
		x.wide = map[schema.GroupKind]*indexes{}
	}
	x.wide[kind] = of
	return of
}

// Drop drops the indexes that an object is in; those of Find take the change in.
func (x *Indexes) Drop(o olmcore.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kind := olmcore.GVKOf(o).GroupKind()
	for _, namespace := range []string{"", o.GetNamespace()} {
		if of, ok := x.find(kind, namespace); ok {
			maps.DeleteFunc(of.values, func(_ string, value any) bool {
				index, takesItIn := value.(*found)
				if takesItIn {
					index.outdate(o)
				}
				return !takesItIn
			})
			of.changes++
		}
	}
}
