// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Table contains the objects of one kind. An object in it is never changed: a write stores a new object. So readers
// share the objects.
type Table struct {
	Kind   *Kind
	spaces map[string]*space
	// all caches the list of all namespaces. Nil means that it is stale.
	all   []olmcore.Object
	count int
}

// space holds the objects of one kind in one namespace.
type space struct {
	byName map[string]olmcore.Object
	sorted []olmcore.Object // by name
	shared bool             // sorted was handed out and must be copied before a change
}

// NewTable returns an empty table.
func NewTable(k *Kind) *Table { return &Table{Kind: k, spaces: map[string]*space{}} }

// Count returns the number of objects.
func (t *Table) Count() int { return t.count }

// Get returns an object, or nil.
func (t *Table) Get(namespace, name string) olmcore.Object {
	if s := t.spaces[namespace]; s != nil {
		return s.byName[name]
	}
	return nil
}

// Put adds or replaces an object.
func (t *Table) Put(o olmcore.Object) {
	s := t.spaces[o.GetNamespace()]
	if s == nil {
		s = &space{byName: map[string]olmcore.Object{}}
		t.spaces[o.GetNamespace()] = s
	}
	t.all = nil
	i, found := s.find(o.GetName())
	s.byName[o.GetName()] = o
	s.own()
	if found {
		s.sorted[i] = o
		return
	}
	s.sorted = slices.Insert(s.sorted, i, o)
	t.count++
}

// Remove removes an object, if it exists.
func (t *Table) Remove(namespace, name string) {
	s := t.spaces[namespace]
	if s == nil {
		return
	}
	i, found := s.find(name)
	if !found {
		return
	}
	t.all = nil
	t.count--
	delete(s.byName, name)
	if len(s.byName) == 0 {
		delete(t.spaces, namespace)
		return
	}
	s.own()
	s.sorted = slices.Delete(s.sorted, i, i+1)
}

func (s *space) own() {
	if s.shared {
		s.sorted = slices.Clone(s.sorted)
		s.shared = false
	}
}

func (s *space) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.sorted, name, func(o olmcore.Object, name string) int {
		return strings.Compare(o.GetName(), name)
	})
}

// List returns the objects of a namespace, or of all namespaces, sorted by namespace and name. The slice is shared.
func (t *Table) List(namespace string) []olmcore.Object {
	if namespace != "" || !t.Kind.Namespaced {
		s := t.spaces[namespace]
		if s == nil {
			return nil
		}
		s.shared = true
		return s.sorted[:len(s.sorted):len(s.sorted)]
	}
	if t.all == nil && t.count > 0 {
		t.all = make([]olmcore.Object, 0, t.count)
		for _, name := range slices.Sorted(maps.Keys(t.spaces)) {
			t.all = append(t.all, t.spaces[name].sorted...)
		}
	}
	return t.all[:len(t.all):len(t.all)]
}

// Selected returns the objects that match a selector.
func Selected(objects []olmcore.Object, selector labels.Selector) []olmcore.Object {
	if selector == nil || selector.Empty() {
		return objects
	}
	var found []olmcore.Object
	for _, o := range objects {
		if selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	return found
}

// Clone returns a copy that shares the objects.
func (t *Table) Clone() *Table {
	n := &Table{Kind: t.Kind, spaces: make(map[string]*space, len(t.spaces)), count: t.count}
	for name, s := range t.spaces {
		n.spaces[name] = &space{byName: maps.Clone(s.byName), sorted: slices.Clone(s.sorted)}
	}
	return n
}

// Read returns an object in a version, or a NotFound error.
func (t *Table) Read(gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o := t.Get(namespace, name)
	if o == nil {
		return nil, apierrors.NewNotFound(t.Kind.GroupResource(), name)
	}
	return t.Kind.InVersion(o, gvk.Version), nil
}

// ReadAll returns the objects that match a selector, in a version. The slice is shared.
func (t *Table) ReadAll(gvk schema.GroupVersionKind, namespace string, selector labels.Selector) []olmcore.Object {
	objects := Selected(t.List(namespace), selector)
	if t.Kind.goType != nil || gvk.Version == "" || gvk.Version == t.Kind.GVK.Version {
		return objects
	}
	converted := make([]olmcore.Object, len(objects))
	for i, o := range objects {
		converted[i] = t.Kind.InVersion(o, gvk.Version)
	}
	return converted
}
