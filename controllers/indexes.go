// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Indexes makes an olmcore.Indexer of a Reader over a cache that embeds it. Each change that a watch delivers is handed to
// Drop before its keys are queued, so that no index is older than what a key is queued for. It is safe for concurrent use.
type Indexes struct {
	// Watched is what the cache holds: of other objects nothing is kept, as nothing tells when they change.
	Watched Watched

	mu   sync.Mutex
	kept map[indexed]*indexes
}

// indexed are the objects of a kind in a namespace, "" for all.
type indexed struct {
	kind      schema.GroupKind
	namespace string
}

// indexes are those of some objects by their keys, and how often the objects changed.
type indexes struct {
	values  map[string]any
	changes int
}

// Index implements olmcore.Indexer.
func (x *Indexes) Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any {
	if !x.Watched.Holds(gvk, namespace) {
		return build()
	}
	x.mu.Lock()
	of := x.kept[indexed{gvk.GroupKind(), namespace}]
	if of == nil {
		if x.kept == nil {
			x.kept = map[indexed]*indexes{}
		}
		of = &indexes{}
		x.kept[indexed{gvk.GroupKind(), namespace}] = of
	}
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

// Drop drops the indexes that an object is in.
func (x *Indexes) Drop(o olmcore.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kind := olmcore.GVKOf(o).GroupKind()
	for _, namespace := range []string{"", o.GetNamespace()} {
		if of := x.kept[indexed{kind, namespace}]; of != nil {
			of.values = nil
			of.changes++
		}
	}
}
