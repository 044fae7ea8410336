// SPDX-License-Identifier: Apache-2.0

package copies

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Source returns the key of the original of a copied ClusterServiceVersion, according to its label olm.copiedFrom. For
// an object without the label, Source returns the object's own key. Reconcile is called with this key.
func Source(c *v1alpha1.ClusterServiceVersion) types.NamespacedName { return model.OriginalKey(c) }

// Affected returns the keys of the originals whose outcome may change when o is added, updated or deleted. A key with
// an empty Name means all originals of the Namespace. The zero key means all originals. See olmcore.ExpandKeys. For an
// update, call Affected for the old and the new object, and use the keys of both calls. If a key has an empty Name, use
// Concerned to select the originals to reconcile.
//
// If another object has the name of a copy, Reconcile checks that object again after at most a minute.
func Affected(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		return affectedByCSV(o)
	case *operatorsv1.OperatorGroup:
		if o.Namespace != "" {
			return []types.NamespacedName{{Namespace: o.Namespace}}
		}
	case *corev1.Namespace:
		return []types.NamespacedName{{}}
	case *operatorsv1.OLMConfig:
		if o.Name == model.OLMConfigName {
			return []types.NamespacedName{{}}
		}
	case *corev1.Event:
		return affectedByEvent(o)
	}
	return nil
}

// affectedByCSV returns the original of a CSV. An object with the name of a copy may be in the way of the original that
// its annotation names.
func affectedByCSV(c *v1alpha1.ClusterServiceVersion) []types.NamespacedName {
	if c == nil || c.Name == "" || c.Namespace == "" {
		return nil
	}
	keys := []types.NamespacedName{Source(c)}
	annotated := c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey]
	if annotated != "" && annotated != c.Namespace && annotated != keys[0].Namespace {
		keys = append(keys, types.NamespacedName{Namespace: annotated, Name: c.Name})
	}
	return keys
}

// affectedByEvent returns the original that an Event about disabled copies is about.
func affectedByEvent(e *corev1.Event) []types.NamespacedName {
	of := e.InvolvedObject
	if e.Reason != EventDisabledCopiedCSVs || of.Kind != v1alpha1.ClusterServiceVersionKind || of.Name == "" || of.Namespace == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: of.Namespace, Name: of.Name}}
}

// Concerned returns a function that reports whether the change of an object from old to next affects an original. If
// Affected returns a key for several originals, use Concerned to select among them. Concerned returns nil if the change
// affects no original. old is nil if the old object is not known.
func Concerned(old, next olmcore.Object) func(*v1alpha1.ClusterServiceVersion) bool {
	watches := func(namespace string) func(*v1alpha1.ClusterServiceVersion) bool {
		return func(c *v1alpha1.ClusterServiceVersion) bool {
			targets, _ := model.AnnotatedTargets(c)
			return targets.Contains(namespace)
		}
	}
	switch next := next.(type) {
	case *corev1.Namespace:
		before, known := old.(*corev1.Namespace)
		if known && before != nil && model.IsTerminating(before) == model.IsTerminating(next) {
			return nil
		}
		isWatching := watches(next.Name)
		return func(c *v1alpha1.ClusterServiceVersion) bool { return c.Namespace == next.Name || isWatching(c) }
	case *operatorsv1.OLMConfig:
		return watches("")
	case *operatorsv1.OperatorGroup:
		return func(c *v1alpha1.ClusterServiceVersion) bool { return c.Namespace == next.Namespace }
	}
	return func(*v1alpha1.ClusterServiceVersion) bool { return true }
}
