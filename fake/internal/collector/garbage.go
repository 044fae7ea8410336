// SPDX-License-Identifier: Apache-2.0

// Package collector removes objects as the garbage collector and the namespace controller do.
package collector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Collector is the garbage collector.
type Collector struct {
	store *store.Store
	queue *workqueue.Queue
	// outside contains the UIDs of owners that loaded objects reference but that were not loaded. They exist in the
	// cluster where the objects come from.
	outside map[types.UID]bool
}

// New returns the garbage collector of a store.
func New(s *store.Store, q *workqueue.Queue) *Collector {
	return &Collector{store: s, queue: q, outside: map[types.UID]bool{}}
}

// Load makes owners of a loaded object count as existing, unless they are stored.
func (c *Collector) Load(o olmcore.Object) {
	delete(c.outside, o.GetUID())
	for _, ref := range o.GetOwnerReferences() {
		if c.store.ByUID(ref.UID) == nil {
			c.outside[ref.UID] = true
		}
	}
}

// ownerState is the state of one owner of an object.
type ownerState uint8

const (
	// solid means that the owner exists, or that its existence is unknown.
	solid ownerState = iota
	// waiting means that the owner is being deleted once its dependents are removed.
	waiting
	// dangling means that the owner does not exist.
	dangling
)

// Observe queues the objects that the garbage collector should reconcile after a change.
func (c *Collector) Observe(key olmcore.Key, current, next olmcore.Object) {
	if next == nil {
		for _, d := range c.store.Dependents(current.GetUID()) {
			c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(d))
		}
		c.observeOwners(current)
		return
	}
	if next.GetDeletionTimestamp() != nil {
		c.queue.Add(workqueue.GarbageCollector, key)
	}
	switch refs := next.GetOwnerReferences(); {
	case current == nil:
		if len(refs) > 0 {
			c.queue.Add(workqueue.GarbageCollector, key)
		}
	case !slices.EqualFunc(current.GetOwnerReferences(), refs, olmcore.SameOwnerReference):
		c.queue.Add(workqueue.GarbageCollector, key)
		c.observeOwners(current)
	}
}

func (c *Collector) observeOwners(o olmcore.Object) {
	for _, ref := range o.GetOwnerReferences() {
		if owner := c.store.ByUID(ref.UID); owner != nil && owner.GetDeletionTimestamp() != nil {
			c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(owner))
		}
	}
}

// Run reconciles one object.
func (c *Collector) Run(key olmcore.Key) {
	o := c.store.Find(key)
	if o == nil {
		return
	}
	t := c.store.Table(store.GroupKindOf(key))
	if o.GetDeletionTimestamp() != nil {
		switch {
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
			c.orphan(t, o)
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
			c.deleteDependents(t, o)
		}
		return
	}
	refs := o.GetOwnerReferences()
	if len(refs) == 0 {
		return
	}
	var hold []metav1.OwnerReference
	waits := false
	for _, ref := range refs {
		switch c.ownerState(t.Kind, o, ref) {
		case solid:
			hold = append(hold, ref)
		case waiting:
			waits = true
		}
	}
	switch {
	case len(hold) == len(refs):
	case len(hold) > 0:
		next := store.Shallow(o)
		next.SetOwnerReferences(hold)
		c.store.Commit(t, o, next)
	case waits && c.inCycle(t.Kind, o):
		next := store.Shallow(o)
		next.SetOwnerReferences(unblocked(refs))
		c.store.Commit(t, o, next)
	case waits && c.store.HasDependents(o.GetUID()):
		deleteAs(c.store, o, metav1.DeletePropagationForeground)
	default:
		deleteAs(c.store, o, defaultPolicy(o))
	}
}

func deleteAs(s *store.Store, o olmcore.Object, policy metav1.DeletionPropagation) {
	// A delete is rejected only if the object changed, which queues it again.
	_ = s.Delete(olmcore.RefOf(o), nil, policy)
}

func defaultPolicy(o olmcore.Object) metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func (c *Collector) ownerState(k *store.Kind, dependant olmcore.Object, ref metav1.OwnerReference) ownerState {
	if c.outside[ref.UID] {
		return solid
	}
	owners := c.store.Table(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
	if owners == nil {
		return solid // the collector cannot look up a kind that is not served
	}
	if !k.Namespaced && owners.Kind.Namespaced {
		return solid // such an owner cannot be looked up either: it has no namespace
	}
	namespace := ""
	if owners.Kind.Namespaced {
		namespace = dependant.GetNamespace()
	}
	owner := owners.Get(namespace, ref.Name)
	switch {
	case owner == nil || owner.GetUID() != ref.UID:
		return dangling
	case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return waiting
	}
	return solid
}

// orphan removes the references to an owner that is being deleted from its dependents.
func (c *Collector) orphan(t *store.Table, owner olmcore.Object) {
	for _, d := range c.ownDependents(t.Kind, owner) {
		next := store.Shallow(d)
		next.SetOwnerReferences(slices.DeleteFunc(slices.Clone(d.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
			return r.UID == owner.GetUID()
		}))
		c.store.Commit(c.store.Table(olmcore.GVKOf(d).GroupKind()), d, next)
		c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(owner))
		return
	}
	c.store.DropFinalizer(t, owner, metav1.FinalizerOrphanDependents)
}

// deleteDependents removes an owner in foreground deletion once no dependent blocks it. Until then it queues the
// dependents.
func (c *Collector) deleteDependents(t *store.Table, owner olmcore.Object) {
	blocked := false
	for _, d := range c.ownDependents(t.Kind, owner) {
		blocked = blocked || blocks(d, owner.GetUID())
		if d.GetDeletionTimestamp() == nil {
			c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(d))
		}
	}
	if !blocked {
		c.store.DropFinalizer(t, owner, metav1.FinalizerDeleteDependents)
	}
}

func blocks(dependant olmcore.Object, owner types.UID) bool {
	return slices.ContainsFunc(dependant.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.UID == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
}

// ownDependents returns the dependents that an owner can own: a namespaced owner owns only objects of its namespace.
func (c *Collector) ownDependents(k *store.Kind, owner olmcore.Object) []olmcore.Object {
	all := c.store.Dependents(owner.GetUID())
	if !k.Namespaced {
		return all
	}
	return slices.DeleteFunc(all, func(d olmcore.Object) bool { return d.GetNamespace() != owner.GetNamespace() })
}

// inCycle reports whether o blocks the foreground deletion of an owner although one of its own dependents is in
// foreground deletion, so that neither could be removed.
func (c *Collector) inCycle(k *store.Kind, o olmcore.Object) bool {
	blocking := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
	return blocking && slices.ContainsFunc(c.ownDependents(k, o), func(d olmcore.Object) bool {
		return d.GetDeletionTimestamp() != nil && slices.Contains(d.GetFinalizers(), metav1.FinalizerDeleteDependents)
	})
}

func unblocked(refs []metav1.OwnerReference) []metav1.OwnerReference {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].BlockOwnerDeletion = new(false)
	}
	return refs
}
