// SPDX-License-Identifier: Apache-2.0

// Package store contains the objects of a simulated cluster and the kinds that its API server serves. Every change of
// an object goes through Store.Commit, which assigns the resourceVersion.
package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Store contains the objects of all kinds.
type Store struct {
	Tables

	// OnChange is called after each change. current is nil for a new object, next for a removed one.
	OnChange func(t *Table, current, next olmcore.Object)

	now     func() time.Time
	version uint64 // the resourceVersion of the last write
	lastUID uint64
	lastIP  uint64

	uids  map[types.UID]olmcore.Object
	owned map[types.UID]map[olmcore.Key]bool // dependents by the UID of their owner
	// twins contains a private copy of every stored object, for Verify. Nil means that Watch was not called.
	twins map[olmcore.Object]olmcore.Object
}

// New returns an empty store that serves the kinds of Kubernetes and OLM.
func New(now func() time.Time) *Store {
	s := &Store{
		now:    now,
		Tables: Tables{tables: map[schema.GroupKind]*Table{}},
		uids:   map[types.UID]olmcore.Object{},
		owned:  map[types.UID]map[olmcore.Key]bool{},
	}
	for _, k := range builtinKinds() {
		s.tables[k.GroupKind()] = NewTable(k)
	}
	return s
}

// Version returns the resourceVersion of the last write.
func (s *Store) Version() uint64 { return s.version }

// Len returns the number of objects.
func (s *Store) Len() int { return len(s.uids) }

// ByUID returns the object of a UID, or nil.
func (s *Store) ByUID(uid types.UID) olmcore.Object { return s.uids[uid] }

// HasDependents reports whether an object has an owner reference to a UID.
func (s *Store) HasDependents(uid types.UID) bool { return len(s.owned[uid]) > 0 }

// CountPast makes new resourceVersions and UIDs greater than those of an object, if they are numbers.
func (s *Store) CountPast(o olmcore.Object) {
	if n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil {
		s.version = max(s.version, n)
	}
	if n, err := strconv.ParseUint(string(o.GetUID()), 10, 64); err == nil {
		s.lastUID = max(s.lastUID, n)
	}
}

// NextIP returns an address in a range such as "10.96" that was not returned before.
func (s *Store) NextIP(prefix string) string {
	s.lastIP++
	return fmt.Sprintf("%s.%d.%d", prefix, s.lastIP/250%250, s.lastIP%250+1)
}

// HasServiceAccount reports whether a ServiceAccount exists. The account "default", which the empty name stands for,
// always exists.
func (s *Store) HasServiceAccount(namespace, name string) bool {
	return name == "" || name == "default" || s.tables[ServiceAccountKind].Get(namespace, name) != nil
}

// Objects returns every object, sorted by kind, group, namespace and name.
func (s *Store) Objects() []olmcore.Object {
	objects := make([]olmcore.Object, 0, len(s.uids))
	for _, k := range s.SortedKinds() {
		objects = append(objects, s.tables[k].List("")...)
	}
	return objects
}

// Commit stores next as the newest version of an object, or removes current if next is nil. current is nil for a new
// object. Only Commit changes the resourceVersion.
func (s *Store) Commit(t *Table, current, next olmcore.Object) {
	s.version++
	if next != nil {
		next.SetResourceVersion(formatCounter(s.version))
	}
	s.Install(t, current, next)
}

// Install is Commit without a new resourceVersion.
func (s *Store) Install(t *Table, current, next olmcore.Object) {
	if current != nil {
		delete(s.twins, current)
	}
	if next == nil {
		t.Remove(current.GetNamespace(), current.GetName())
		delete(s.uids, current.GetUID())
	} else {
		t.Put(next)
		s.uids[next.GetUID()] = next
		if s.twins != nil {
			s.twins[next] = next.DeepCopyObject().(olmcore.Object)
		}
	}
	s.indexOwners(current, next)
	s.OnChange(t, current, next)
}

func (s *Store) indexOwners(current, next olmcore.Object) {
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
		delete(s.owned[ref.UID], key)
		if len(s.owned[ref.UID]) == 0 {
			delete(s.owned, ref.UID)
		}
	}
	for _, ref := range after {
		if s.owned[ref.UID] == nil {
			s.owned[ref.UID] = map[olmcore.Key]bool{}
		}
		s.owned[ref.UID][key] = true
	}
}

func sameUIDs(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

// Dependents returns the objects with an owner reference to a UID, sorted.
func (s *Store) Dependents(uid types.UID) []olmcore.Object {
	keys := slices.SortedFunc(maps.Keys(s.owned[uid]), olmcore.Key.Compare)
	objects := make([]olmcore.Object, 0, len(keys))
	for _, key := range keys {
		if o := s.Find(key); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// Find returns a stored object, or nil.
func (s *Store) Find(key olmcore.Key) olmcore.Object {
	if t := s.tables[GroupKindOf(key)]; t != nil {
		return t.Get(key.Namespace, key.Name)
	}
	return nil
}

// Shallow returns a new object that shares everything below the top level with o. Fields of its metadata, its spec and
// its status can be replaced, but not changed.
func Shallow(o olmcore.Object) olmcore.Object {
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

func formatCounter(n uint64) string { return strconv.FormatUint(n, 10) }

// GroupKindOf returns the group and kind of a key.
func GroupKindOf(key olmcore.Key) schema.GroupKind {
	return schema.GroupKind{Group: key.Group, Kind: key.Kind}
}

// Get returns a stored object of type T, or nil.
func Get[T olmcore.Object](s *Store, k schema.GroupKind, namespace, name string) T {
	var none T
	if t := s.tables[k]; t != nil {
		if o, ok := t.Get(namespace, name).(T); ok {
			return o
		}
	}
	return none
}

// ConditionStatus returns the status of a condition.
func ConditionStatus[T ~string](is bool) T {
	if is {
		return "True"
	}
	return "False"
}
