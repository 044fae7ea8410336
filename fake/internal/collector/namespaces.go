// SPDX-License-Identifier: Apache-2.0

package collector

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Namespaces is the namespace controller.
type Namespaces struct {
	store *store.Store
	queue *workqueue.Queue
}

// NewNamespaces returns the namespace controller of a store.
func NewNamespaces(s *store.Store, q *workqueue.Queue) *Namespaces { return &Namespaces{s, q} }

// Run deletes one object of a namespace that is being deleted, or removes the namespace once it is empty.
func (n *Namespaces) Run(key olmcore.Key) {
	namespace := store.Get[*corev1.Namespace](n.store, store.NamespaceKind, "", key.Name)
	if namespace == nil || namespace.DeletionTimestamp == nil {
		return
	}
	left := false
	for _, k := range n.store.SortedKinds() {
		t := n.store.Table(k)
		if !t.Kind.Namespaced {
			continue
		}
		for _, o := range t.List(key.Name) {
			left = true
			if o.GetDeletionTimestamp() == nil {
				n.queue.Add(workqueue.Namespaces, key)
				deleteAs(n.store, o, metav1.DeletePropagationBackground)
				return
			}
		}
	}
	if left {
		return
	}
	t := n.store.Table(store.NamespaceKind)
	if len(namespace.Finalizers) == 0 {
		n.store.Commit(t, namespace, nil)
		return
	}
	if len(namespace.Spec.Finalizers) > 0 {
		next := store.Shallow(namespace).(*corev1.Namespace)
		next.Spec.Finalizers = nil
		n.store.Commit(t, namespace, next)
	}
}

// Observe queues the namespace of an object if it is being deleted.
func (n *Namespaces) Observe(key olmcore.Key) {
	if key.Namespace == "" {
		return
	}
	namespace := store.Get[*corev1.Namespace](n.store, store.NamespaceKind, "", key.Namespace)
	if namespace != nil && namespace.DeletionTimestamp != nil {
		n.queue.Add(workqueue.Namespaces, olmcore.Key{Kind: "Namespace", Name: key.Namespace})
	}
}
