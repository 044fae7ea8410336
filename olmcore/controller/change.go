// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Change is an event of a watch about one object. Its objects may be kept and must not be modified. They may be maps
// instead of API types, or metadata alone.
type Change struct {
	// Old is the object before the change, or nil if that is not known. New is the object after it, or its last state if
	// it was deleted.
	Old, New olmcore.Object
	// Deleted is true if the object was deleted. Initial is true if the object existed before the watch started.
	Deleted, Initial bool
	// At is when the change was observed.
	At time.Time
}

// Changed returns the keys to reconcile after a change, sorted, and calls OnChange. If an object does not fit its API
// type, only the fields that fit are used. The error is that of reading the objects of a wildcard key, or says that the
// change has no object.
func (c Controller) Changed(ctx context.Context, r olmcore.Reader, change Change) ([]types.NamespacedName, error) {
	if change.New == nil {
		return nil, &olmcore.InputError{Field: "change.New", Problem: "is nil"}
	}
	isOwn := slices.Contains(c.Kinds, olmcore.GVKOf(change.New))
	if change.Initial && !isOwn {
		return nil, nil // at the start, the objects of Kinds alone yield every key
	}
	next, err := Delivered(change.New)
	if err != nil {
		return nil, err
	}
	delivered := change
	delivered.Old, delivered.New = nil, next
	if change.Initial {
		c.onChange(delivered)
		return c.inNamespaces(c.keysOf(next)), nil
	}
	keys := c.affected(next)
	if change.Old != nil {
		old, err := Delivered(change.Old)
		if err == nil {
			keys = append(keys, c.affected(old)...)
		}
		delivered.Old = old
	}
	c.onChange(delivered)
	var known []types.NamespacedName
	if isOwn {
		known = c.keysOf(next) // the object may be deleted, so that no list contains it
	}
	if wide := c.wildcards(keys); len(wide) > 0 {
		all, err := c.concerned(ctx, r, delivered, wide)
		if err != nil {
			return nil, err
		}
		known = append(known, all...)
	}
	return c.inNamespaces(olmcore.ExpandKeys(keys, known)), nil
}

func (c Controller) onChange(change Change) {
	if c.OnChange != nil {
		c.OnChange(change)
	}
}

// wildcards returns the namespaces to list in order to resolve the wildcards among keys, or "" alone for all
// namespaces.
func (c Controller) wildcards(keys []types.NamespacedName) []string {
	namespaces := sets.New[string]()
	for _, k := range keys {
		switch {
		case k.Name != "":
		case k.Namespace == "" || !c.SameNamespace:
			return []string{""}
		default:
			namespaces.Insert(k.Namespace)
		}
	}
	return sets.List(namespaces)
}

// concerned returns the keys of the objects in some namespaces, "" for all, that a change concerns.
func (c Controller) concerned(ctx context.Context, r olmcore.Reader, change Change, namespaces []string) ([]types.NamespacedName, error) {
	return c.keys(namespaces, func(kind schema.GroupVersionKind, namespace string) ([]olmcore.Object, error) {
		if c.Concerned == nil {
			return r.List(ctx, kind, namespace, nil)
		}
		return c.Concerned(ctx, r, change, kind, namespace)
	})
}

// Delivered returns the object of a change as its API type. Fields that do not fit the type are left out. If a cache
// holds only the metadata of the object, the result has only metadata. The error is that of decode.Typed.
func Delivered(o olmcore.Object) (olmcore.Object, error) {
	m, is := o.(*metav1.PartialObjectMetadata)
	if !is {
		return olmcore.Fitting(decode.Typed(o))
	}
	object := olmcore.NewObject(m.GroupVersionKind())
	if has, ok := object.(metav1.ObjectMetaAccessor); ok {
		if metadata, ok := has.GetObjectMeta().(*metav1.ObjectMeta); ok {
			*metadata = m.ObjectMeta
			return object, nil
		}
	}
	return o, nil
}
