// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// AddController runs a controller of the caller beside those of the library, in the same way: with a queue, watches of
// c.Kinds and of the kinds in also, a wait for the cache after writes, Events, and the Options of the Manager.
//
// Objects of kinds that the library watches are read from its cache. In a shard these are only the objects that the
// shard needs. Kinds that c watches are cached entirely. Other kinds, such as those of a CustomResourceDefinition of
// the caller, are read from the cache of the manager, whose options decide what it contains. If the library does not
// know the Go type of a kind, its objects are maps (*unstructured.Unstructured). The ServiceAccount of the process must
// be allowed to list and watch these kinds.
//
// AddController must be called before the manager starts. The error is an *olmcore.InputError if c lacks a field or the
// manager has started, or that of the manager: its scheme lacks the Go type of a kind, or a kind is not served.
func (m *Manager) AddController(c controller.Controller, also ...schema.GroupVersionKind) error {
	if c.Reconcile == nil {
		return &olmcore.InputError{Field: "c", Problem: "needs Reconcile"}
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
	r := &controller.Runner{Controller: c, Reader: m, Executor: m, Cached: m.watched.Holds, OnReport: m.tell(c.Name)}
	return m.add(c.Name, r, kinds)
}

// hold makes reads of a kind come from a cache.
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
