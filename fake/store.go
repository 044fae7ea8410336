// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// table holds the objects of one kind. Objects in it are never written to: a
// write stores a new object. So readers share them.
type table struct {
	kind   *kind
	spaces map[string]*space
	// all caches the list over all namespaces; nil when it is out of date.
	all   []olmcore.Object
	count int
}

// space holds the objects of one kind in one namespace.
type space struct {
	byName map[string]olmcore.Object
	sorted []olmcore.Object // by name
	shared bool             // sorted was handed out and must be copied before a change
}

func newTable(k *kind) *table { return &table{kind: k, spaces: map[string]*space{}} }

func (t *table) get(namespace, name string) olmcore.Object {
	if s := t.spaces[namespace]; s != nil {
		return s.byName[name]
	}
	return nil
}

func (t *table) put(o olmcore.Object) {
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

func (t *table) remove(namespace, name string) {
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

// list returns objects sorted by namespace and name; the slice is shared.
func (t *table) list(namespace string) []olmcore.Object {
	if namespace != "" || !t.kind.namespaced {
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

func selected(objects []olmcore.Object, selector labels.Selector) []olmcore.Object {
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

func (t *table) clone() *table {
	n := &table{kind: t.kind, spaces: make(map[string]*space, len(t.spaces)), count: t.count}
	for name, s := range t.spaces {
		n.spaces[name] = &space{byName: maps.Clone(s.byName), sorted: slices.Clone(s.sorted)}
	}
	return n
}

// commit stores next as the newest version of an object (current is nil for a new one), or removes current when next is
// nil. It is the only place where the cluster's contents and the resourceVersion change.
func (c *Cluster) commit(t *table, current, next olmcore.Object) {
	c.version++
	if next != nil {
		next.SetResourceVersion(formatCounter(c.version))
	}
	c.install(t, current, next)
}

// install is commit without a new resourceVersion.
func (c *Cluster) install(t *table, current, next olmcore.Object) {
	if current != nil {
		delete(c.twins, current)
	}
	if next == nil {
		t.remove(current.GetNamespace(), current.GetName())
		delete(c.uids, current.GetUID())
	} else {
		t.put(next)
		c.uids[next.GetUID()] = next
		if c.twins != nil {
			c.twins[next] = next.DeepCopyObject().(olmcore.Object)
		}
	}
	c.indexOwners(current, next)
	c.record(t, current, next)
	c.notify(t, current, next)
}

func (c *Cluster) indexOwners(current, next olmcore.Object) {
	var before, after []metav1.OwnerReference
	if current != nil {
		before = current.GetOwnerReferences()
	}
	if next != nil {
		after = next.GetOwnerReferences()
	}
	if len(before) == 0 && len(after) == 0 || sameUIDs(before, after) {
		return
	}
	o := next
	if o == nil {
		o = current
	}
	key := olmcore.KeyOf(o)
	for _, ref := range before {
		delete(c.owned[ref.UID], key)
		if len(c.owned[ref.UID]) == 0 {
			delete(c.owned, ref.UID)
		}
	}
	for _, ref := range after {
		if c.owned[ref.UID] == nil {
			c.owned[ref.UID] = map[olmcore.Key]bool{}
		}
		c.owned[ref.UID][key] = true
	}
}

func sameUIDs(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

// dependants returns the objects with an owner reference to a UID, sorted.
func (c *Cluster) dependants(uid types.UID) []olmcore.Object {
	keys := slices.SortedFunc(maps.Keys(c.owned[uid]), olmcore.Key.Compare)
	objects := make([]olmcore.Object, 0, len(keys))
	for _, key := range keys {
		if o := c.find(key); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// find returns the stored object, nil when there is none.
func (c *Cluster) find(key olmcore.Key) olmcore.Object {
	if t := c.tables[groupKind(key)]; t != nil {
		return t.get(key.Namespace, key.Name)
	}
	return nil
}

// shallow returns a new object that shares everything below the top level with
// o: metadata fields, spec and status can then be replaced, not changed.
func shallow(o olmcore.Object) olmcore.Object {
	if u, ok := o.(*unstructured.Unstructured); ok {
		m := maps.Clone(u.Object)
		if metadata, ok := m["metadata"].(map[string]any); ok {
			m["metadata"] = maps.Clone(metadata)
		}
		return &unstructured.Unstructured{Object: m}
	}
	v := reflect.ValueOf(o).Elem()
	n := reflect.New(v.Type())
	n.Elem().Set(v)
	return n.Interface().(olmcore.Object)
}
