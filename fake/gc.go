// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// ownerState is what the garbage collector knows about one owner.
type ownerState uint8

const (
	// solid: the owner exists, or its existence is unknown.
	solid ownerState = iota
	// waiting: the owner is being deleted and waits for its dependants to go first.
	waiting
	// dangling: there is no such owner.
	dangling
)

// notifyCollector queues what the garbage collector must look at after a change.
func (c *Cluster) notifyCollector(key olmcore.Key, current, next olmcore.Object) {
	if next == nil {
		for _, d := range c.store.Dependents(current.GetUID()) {
			c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(d))
		}
		c.notifyOwners(current)
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
		c.notifyOwners(current)
	}
}

func (c *Cluster) notifyOwners(o olmcore.Object) {
	for _, ref := range o.GetOwnerReferences() {
		if owner := c.store.ByUID(ref.UID); owner != nil && owner.GetDeletionTimestamp() != nil {
			c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(owner))
		}
	}
}

// collect is the garbage collector's look at one object.
func (c *Cluster) collect(key olmcore.Key) {
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
			c.deleteDependants(t, o)
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
		c.deleteAs(o, metav1.DeletePropagationForeground)
	default:
		c.deleteAs(o, defaultPolicy(o))
	}
}

func (c *Cluster) deleteAs(o olmcore.Object, policy metav1.DeletionPropagation) {
	// Refused only when the object changed, which queues it again.
	_ = c.store.Delete(olmcore.RefOf(o), nil, policy)
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

func (c *Cluster) ownerState(k *store.Kind, dependant olmcore.Object, ref metav1.OwnerReference) ownerState {
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

// orphan takes an owner that is being deleted off its dependants.
func (c *Cluster) orphan(t *store.Table, owner olmcore.Object) {
	for _, d := range c.ownDependants(t.Kind, owner) {
		next := store.Shallow(d)
		next.SetOwnerReferences(slices.DeleteFunc(slices.Clone(d.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }))
		c.store.Commit(c.store.Table(olmcore.GVKOf(d).GroupKind()), d, next)
		c.queue.Add(workqueue.GarbageCollector, olmcore.KeyOf(owner))
		return
	}
	c.store.DropFinalizer(t, owner, metav1.FinalizerOrphanDependents)
}

// deleteDependants lets an owner in foreground deletion go once nothing blocks it, and queues its dependants until
// then.
func (c *Cluster) deleteDependants(t *store.Table, owner olmcore.Object) {
	blocked := false
	for _, d := range c.ownDependants(t.Kind, owner) {
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
		return r.UID == owner && isTrue(r.BlockOwnerDeletion)
	})
}

// ownDependants leaves out what an owner cannot own: objects in other
// namespaces, and cluster-scoped ones when it has a namespace itself.
func (c *Cluster) ownDependants(k *store.Kind, owner olmcore.Object) []olmcore.Object {
	all := c.store.Dependents(owner.GetUID())
	if !k.Namespaced {
		return all
	}
	return slices.DeleteFunc(all, func(d olmcore.Object) bool { return d.GetNamespace() != owner.GetNamespace() })
}

// inCycle reports whether o blocks the foreground deletion of an owner although one of its own dependants is in
// foreground deletion, so that neither could ever go.
func (c *Cluster) inCycle(k *store.Kind, o olmcore.Object) bool {
	blocking := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return isTrue(r.BlockOwnerDeletion) })
	return blocking && slices.ContainsFunc(c.ownDependants(k, o), func(d olmcore.Object) bool {
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
