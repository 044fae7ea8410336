// SPDX-License-Identifier: Apache-2.0

package fake

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// runNamespace empties a namespace that is being deleted, one object a run, and removes it once it is empty.
func (c *Cluster) runNamespace(key olmcore.Key) {
	namespace := store.Get[*corev1.Namespace](c.store, store.NamespaceKind, "", key.Name)
	if namespace == nil || namespace.DeletionTimestamp == nil {
		return
	}
	left := false
	for _, k := range c.store.SortedKinds() {
		t := c.store.Table(k)
		if !t.Kind.Namespaced {
			continue
		}
		for _, o := range t.List(key.Name) {
			left = true
			if o.GetDeletionTimestamp() == nil {
				c.queue.Add(workqueue.Namespaces, key)
				c.deleteAs(o, metav1.DeletePropagationBackground)
				return
			}
		}
	}
	if left {
		return
	}
	t := c.store.Table(store.NamespaceKind)
	if len(namespace.Finalizers) == 0 {
		c.store.Commit(t, namespace, nil)
		return
	}
	if len(namespace.Spec.Finalizers) > 0 {
		next := store.Shallow(namespace).(*corev1.Namespace)
		next.Spec.Finalizers = nil
		c.store.Commit(t, namespace, next)
	}
}
