// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IndexedReader is an optional interface of a Reader that keeps indexes of its objects. Gather functions share these
// indexes, so their cost does not depend on the number of objects. Without it, a Gather function reads the whole list.
type IndexedReader interface {
	Reader
	// Index returns the value that is kept under a key for the objects of a kind in a namespace. An empty namespace means
	// all namespaces. If no value is kept, or one of the objects changed since, the value is the result of build: a
	// pointer or a map that is not changed afterwards. A nil result is not kept.
	Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any
	// Find returns the objects that have one of the terms, sorted by namespace and name. It reads objects from r, which is
	// the IndexedReader itself or a Reader that wraps it. Any error is an error of r.
	Find(ctx context.Context, r Reader, l Lookup, terms ...Term) ([]Object, error)
	// ListMetadata is List for callers that need only the metadata of the objects. An object of which the Reader has no
	// more is a *metav1.PartialObjectMetadata.
	ListMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error)
}

// Term is a value by which an index finds objects. Of is the kind of the value.
type Term struct{ Of, Value string }

// Lookup is an index of the objects of a kind in a namespace. An empty Namespace means all namespaces. TermsOf calls
// add with each Term of an object. Lookups with the same Kind, Namespace and Key must have the same TermsOf.
type Lookup struct {
	Kind           schema.GroupVersionKind
	Namespace, Key string
	TermsOf        func(o Object, add func(Term))
}

// Indexed returns r if it is an IndexedReader. Otherwise it returns an IndexedReader that reads each list once, and
// keeps its indexes although objects may change. So the result may be used for one call of a Gather function only.
func Indexed(r Reader) IndexedReader {
	if indexed, ok := r.(IndexedReader); ok {
		return indexed
	}
	return &listed{Reader: r, indexes: map[listKey]any{}}
}

// listed is an IndexedReader for a Reader without indexes.
type listed struct {
	Reader
	indexes map[listKey]any
}

// listKey identifies an index.
type listKey struct {
	gvk            schema.GroupVersionKind
	namespace, key string
}

// Index implements IndexedReader.
func (x *listed) Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any {
	k := listKey{gvk, namespace, key}
	if x.indexes[k] == nil {
		x.indexes[k] = build()
	}
	return x.indexes[k]
}

// listIndex is an index of a list. err is the error of the read.
type listIndex struct {
	objects []Object
	byTerm  map[Term][]int // positions in objects
	err     error
}

// Find implements IndexedReader.
func (x *listed) Find(ctx context.Context, _ Reader, l Lookup, terms ...Term) ([]Object, error) {
	index := x.Index(l.Kind, l.Namespace, l.Key, func() any {
		index := &listIndex{byTerm: map[Term][]int{}}
		index.objects, index.err = ListKind(ctx, x.Reader, l.Kind, l.Namespace, nil)
		for i, o := range index.objects {
			l.TermsOf(o, func(term Term) { index.byTerm[term] = append(index.byTerm[term], i) })
		}
		return index
	}).(*listIndex)
	positions := map[int]bool{}
	for _, term := range terms {
		for _, i := range index.byTerm[term] {
			positions[i] = true
		}
	}
	var found []Object
	for _, i := range slices.Sorted(maps.Keys(positions)) {
		found = append(found, index.objects[i])
	}
	return found, index.err
}

// ListMetadata implements IndexedReader.
func (x *listed) ListMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error) {
	return ListKind(ctx, x.Reader, gvk, namespace, selector)
}
