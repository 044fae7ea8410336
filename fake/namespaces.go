// SPDX-License-Identifier: Apache-2.0

package fake

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// runNamespace empties a namespace that is being deleted, one object a run, and removes it once it is empty.
func (c *Cluster) runNamespace(key olmcore.Key) {
	namespace := lookup[*corev1.Namespace](c, namespaceKind, "", key.Name)
	if namespace == nil || namespace.DeletionTimestamp == nil {
		return
	}
	left := false
	for _, k := range c.sortedKinds() {
		t := c.tables[k]
		if !t.kind.namespaced {
			continue
		}
		for _, o := range t.list(key.Name) {
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
	t := c.tables[namespaceKind]
	if len(namespace.Finalizers) == 0 {
		c.commit(t, namespace, nil)
		return
	}
	if len(namespace.Spec.Finalizers) > 0 {
		next := shallow(namespace).(*corev1.Namespace)
		next.Spec.Finalizers = nil
		c.commit(t, namespace, next)
	}
}
