// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/nilcheck"
)

// Reader reads a cluster: a Snapshot, the fake cluster, an adapter's cache. Objects it returns are shared and must not
// be changed; kinds that the library knows come as their API types, others as *unstructured.Unstructured.
type Reader interface {
	// Get returns one object; namespace is empty for cluster-scoped kinds. An object that a completed read did not find
	// is an error for which apierrors.IsNotFound holds. A Reader that did not read the kind, and so does not know,
	// answers with a *NotReadError.
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (Object, error)
	// List returns the objects of a kind, sorted by namespace and name. An empty namespace means all, a nil selector
	// every object. A read that failed or was cut short is an error, never a shorter list; of what was not read at all
	// it is a *NotReadError.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error)
}

// GetKind is r.Get for callers who may have been handed a nil Reader: then the error is an *InputError. A name that no
// object can have is not asked for: the object is not found. Names come from fields that a tenant writes, and a client
// that cannot make a path of one returns an error, which would stop the work for the objects of others.
func GetKind(ctx context.Context, r Reader, gvk schema.GroupVersionKind, namespace, name string) (Object, error) {
	if nilcheck.IsNil(r) {
		return nil, errNoReader
	}
	if !isName(name) || namespace != "" && !isName(namespace) {
		return nil, notFound(gvk, name)
	}
	return r.Get(ctx, gvk, namespace, name)
}

// maxName is the length from which a name is taken for that of no object. The path of a longer one is refused on the
// way.
const maxName = 4 << 10

// isName reports whether an object can have a name: it is a segment of a path.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && len(content.IsPathSegmentName(name)) == 0
}

func notFound(gvk schema.GroupVersionKind, name string) error {
	kind, _ := KindOf(gvk.GroupKind())
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: cmp.Or(kind.Plural, gvk.Kind)}, name)
}

// ListKind is r.List for callers who may have been handed a nil Reader: then the error is an *InputError.
func ListKind(ctx context.Context, r Reader, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error) {
	if nilcheck.IsNil(r) {
		return nil, errNoReader
	}
	return r.List(ctx, gvk, namespace, selector)
}

var errNoReader = &InputError{Field: "Reader", Problem: "is nil"}

// Get reads one object of type T, a pointer to an API type. It returns nil when a completed read found none.
func Get[T Object](ctx context.Context, r Reader, namespace, name string) (object T, err error) {
	gvk := GVKOf(object)
	o, err := GetKind(ctx, r, gvk, namespace, name)
	if apierrors.IsNotFound(err) {
		return object, nil
	}
	if err != nil {
		return object, fmt.Errorf("get %s: %w", Key{Kind: gvk.Kind, Namespace: namespace, Name: name}, err)
	}
	return typed[T](o)
}

// List reads the objects of type T, a pointer to an API type.
func List[T Object](ctx context.Context, r Reader, namespace string, selector labels.Selector) ([]T, error) {
	var zero T
	gvk := GVKOf(zero)
	objects, err := ListKind(ctx, r, gvk, namespace, selector)
	if err != nil {
		return nil, fmt.Errorf("list %s in %q: %w", gvk.Kind, namespace, err)
	}
	if len(objects) == 0 {
		return nil, nil
	}
	out := make([]T, len(objects))
	for i, o := range objects {
		if out[i], err = typed[T](o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Observe reads a list that a Gather can do without: the objects of type T, a pointer to an API type. What was not read
// (ErrNotRead) is an incomplete Observed; any other read that failed is its error.
func Observe[T Object](ctx context.Context, r Reader, namespace string, selector labels.Selector) (Observed[T], error) {
	return observed(List[T](ctx, r, namespace, selector))
}

// ObserveKind is Observe for a kind that need not have a Go type.
func ObserveKind(ctx context.Context, r Reader, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) (Observed[Object], error) {
	return observed(ListKind(ctx, r, gvk, namespace, selector))
}

// ObserveNamed reads objects by name, each once, in the order of names; empty names are left out. One that was not read
// makes the Observed incomplete; it holds the others. An object that does not fit its type is there with what fits, as
// in Items.
func ObserveNamed[T Object](ctx context.Context, r Reader, namespace string, names ...string) (Observed[T], error) {
	found := Found[T]()
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		o, err := Fitting(Get[T](ctx, r, namespace, name))
		switch {
		case errors.Is(err, ErrNotRead):
			found.Complete = false
		case err != nil:
			return Observed[T]{}, err
		case !nilcheck.IsNil(o):
			found.Items = append(found.Items, o)
		}
	}
	return found, nil
}

func observed[T any](items []T, err error) (Observed[T], error) {
	if errors.Is(err, ErrNotRead) {
		return Observed[T]{}, nil
	}
	if err != nil {
		return Observed[T]{}, err
	}
	return Observed[T]{Complete: true, Items: items}, nil
}

// Require reads one object that a Gather is about: of type T, a pointer to an API type. Where Get returns nil, the
// error says so: apierrors.IsNotFound holds.
func Require[T Object](ctx context.Context, r Reader, namespace, name string) (object T, err error) {
	object, err = Get[T](ctx, r, namespace, name)
	if err == nil && nilcheck.IsNil(object) {
		err = notFound(GVKOf(object), name)
	}
	return object, err
}

// ObserveMetadata is ObserveKind for callers that need only the metadata of the objects. An object of which the Reader
// has no more is a *metav1.PartialObjectMetadata.
func ObserveMetadata(
	ctx context.Context, r Reader, gvk schema.GroupVersionKind, namespace string, selector labels.Selector,
) (Observed[Object], error) {
	return observed(Indexed(r).ListMetadata(ctx, gvk, namespace, selector))
}

func typed[T Object](o Object) (T, error) {
	object, ok := o.(T)
	if !ok {
		return object, fmt.Errorf("read %s: got %T, want %T", KeyOf(o), o, object)
	}
	return object, nil
}

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
