// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// AddController runs a controller of one's own beside the library's, as they are run: with a queue, watches of c.Kinds
// and of the kinds in also, waiting for the cache after writes, Events, and the Options of the Manager. Its name is
// c.Name. Objects of kinds that the library watches come from where it reads them: in a shard only those that the shard
// needs; of kinds that c watches all are cached with all that they hold. Other kinds, such as those of a
// CustomResourceDefinition of one's own, come from the manager's cache, which says what it holds of them; those whose
// Go type the library does not know are maps (*unstructured.Unstructured). The account of the process needs list and
// watch of them.
//
// It is called before the manager starts. The error is an *olmcore.InputError of what is missing in c or called too
// late, or that of the manager: its scheme lacks the Go type of a kind, or a kind is not served.
func (m *Manager) AddController(c controllers.Controller, also ...schema.GroupVersionKind) error {
	if c.KeysOf == nil || c.Affected == nil || c.Reconcile == nil {
		return &olmcore.InputError{Field: "c", Problem: "needs KeysOf, Affected and Reconcile"}
	}
	select {
	case <-m.Elected():
		return &olmcore.InputError{Field: "c", Problem: "comes after the start of the manager: add it before"}
	default:
	}
	var kinds []schema.GroupVersionKind
	for _, gvk := range slices.Concat(c.Kinds, also) {
		if slices.Contains(kinds, gvk) {
			continue
		}
		kinds = append(kinds, gvk)
		if err := m.hold(gvk); err != nil {
			return fmt.Errorf("%s: the kind %s cannot be watched: %w", c.Name, gvk.Kind, err)
		}
	}
	r := &controllers.Runner{Controller: c, Reader: m, Executor: m, Cached: m.watched.Holds, Told: m.tell(c.Name)}
	return m.add(c.Name, r, kinds)
}

// hold makes a kind one that is read from a cache.
func (m *Manager) hold(gvk schema.GroupVersionKind) error {
	if _, is := m.watched[gvk]; is {
		if gvk.Group != v1alpha1.GroupName {
			m.entire.Insert(gvk)
		}
		return nil
	}
	blank := decode.Blank(gvk)
	if _, isMap := blank.(*unstructured.Unstructured); !isMap && !hasType(m.GetScheme(), gvk, blank) {
		return fmt.Errorf("the manager's scheme lacks %T", blank)
	}
	c, known := m.GetCache().(*knownCache)
	if !known {
		c = &knownCache{Cache: m.GetCache(), indexed: map[schema.GroupVersionKind]error{}}
	}
	if problem := c.index(gvk); problem != "" {
		return errors.New(problem)
	}
	m.watched[gvk], m.caches[gvk] = nil, c
	return nil
}
