// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader reads a cluster: a Snapshot, the fake cluster, an adapter's cache.
// Objects it returns are shared and must not be changed; kinds that the library
// knows come as their API types, others as *unstructured.Unstructured.
type Reader interface {
	// Get returns one object; namespace is empty for cluster-scoped kinds. An
	// object that a completed read did not find is an error for which
	// apierrors.IsNotFound holds.
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (Object, error)
	// List returns the objects of a kind, sorted by namespace and name. An empty
	// namespace means all, a nil selector every object. A read that failed or was
	// cut short is an error, never a shorter list.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error)
}

// Get reads one object of type T, a pointer to an API type. It returns nil when
// a completed read found none.
func Get[T Object](ctx context.Context, r Reader, namespace, name string) (object T, err error) {
	gvk := GVKOf(object)
	o, err := r.Get(ctx, gvk, namespace, name)
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
	objects, err := r.List(ctx, gvk, namespace, selector)
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

func typed[T Object](o Object) (T, error) {
	object, ok := o.(T)
	if !ok {
		return object, fmt.Errorf("read %s: got %T, want %T", KeyOf(o), o, object)
	}
	return object, nil
}
