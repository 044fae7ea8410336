// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"encoding/json"
	"maps"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Annotations of slim copies. They exist only in memory. An API server rejects such keys, so they cannot come from a
// cluster, and a slim copy that is written by mistake is rejected.
const (
	annotationSpecHash   = "$copyhash-spec"
	annotationStatusHash = "$copyhash-status"
	// annotationKeys contains the keys of the maps that Slim removes. See mapKeys.
	annotationKeys = "$copy-keys"
)

// Slim returns the part of a copied ClusterServiceVersion that a cache should keep: metadata without most annotation
// values, the phase, and hashes of the content. All packages of this library need only this part. Copies are compared
// exactly, even if they are slim. The result shares no memory with o. An object that is not a copy is returned
// unchanged.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, which caches copies as metadata.
func Slim(o olmcore.Object) olmcore.Object {
	if o == nil || olmcore.GVKOf(o) != v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind) ||
		model.OriginalKey(o).Namespace == o.GetNamespace() {
		return o
	}
	read, err := decode.Typed(o)
	if err != nil {
		return o // a copy that does not fit its type cannot be compared
	}
	c, ok := read.(*v1alpha1.ClusterServiceVersion)
	if !ok {
		return o
	}
	if _, slim := slimContent(c); slim {
		return o
	}
	holds, err := contentOf(c)
	if err != nil {
		return o
	}
	slim := slimOf(c, holds)
	if _, isMap := o.(*unstructured.Unstructured); isMap {
		return untyped(slim)
	}
	return slim
}

// slimOf returns the slim form of a copy.
func slimOf(c *v1alpha1.ClusterServiceVersion, holds content) *v1alpha1.ClusterServiceVersion {
	slim := &v1alpha1.ClusterServiceVersion{TypeMeta: c.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: c.Name, Namespace: c.Namespace, UID: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation,
		CreationTimestamp: c.CreationTimestamp, DeletionTimestamp: c.DeletionTimestamp.DeepCopy(),
		Labels: make(map[string]string, len(c.Labels)), Annotations: map[string]string{},
	}}
	maps.Copy(slim.Labels, c.Labels)
	slim.Finalizers = slices.Clone(c.Finalizers)
	for _, r := range c.OwnerReferences {
		slim.OwnerReferences = append(slim.OwnerReferences, *r.DeepCopy())
	}
	for _, key := range []string{operatorsv1.OperatorGroupAnnotationKey, operatorsv1.OperatorGroupNamespaceAnnotationKey} {
		if value, ok := c.Annotations[key]; ok {
			slim.Annotations[key] = value
		}
	}
	slim.Annotations[annotationSpecHash], slim.Annotations[annotationStatusHash] = holds.spec, holds.status
	slim.Annotations[annotationKeys] = keysOf(c)
	slim.Status.Phase, slim.Status.Reason = c.Status.Phase, c.Status.Reason
	return slim
}

// untyped returns a slim copy as a map. Unlike olmcore.ToMap, it shares the strings with c.
func untyped(c *v1alpha1.ClusterServiceVersion) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"phase": string(c.Status.Phase), "reason": string(c.Status.Reason)},
	}}
	u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind))
	u.SetName(c.Name)
	u.SetNamespace(c.Namespace)
	u.SetUID(c.UID)
	u.SetResourceVersion(c.ResourceVersion)
	u.SetGeneration(c.Generation)
	u.SetCreationTimestamp(c.CreationTimestamp)
	u.SetDeletionTimestamp(c.DeletionTimestamp)
	u.SetLabels(c.Labels)
	u.SetAnnotations(c.Annotations)
	if len(c.Finalizers) > 0 {
		u.SetFinalizers(c.Finalizers)
	}
	if len(c.OwnerReferences) > 0 {
		u.SetOwnerReferences(c.OwnerReferences)
	}
	return u
}

// content contains the hashes of the content of a copy. For a slim copy, keys contains the keys of its maps. See
// mapKeys.
type content struct{ spec, status, keys string }

// slimContent returns the content in the annotations of a slim copy. ok is false for a whole copy.
func slimContent(c *v1alpha1.ClusterServiceVersion) (holds content, ok bool) {
	if holds.spec, ok = c.Annotations[annotationSpecHash]; ok {
		holds.status, holds.keys = c.Annotations[annotationStatusHash], c.Annotations[annotationKeys]
	}
	return holds, ok
}

// contentOf returns the hashes of a whole copy: one of its name, labels, annotations and spec, and one of its status.
func contentOf(c *v1alpha1.ClusterServiceVersion) (holds content, err error) {
	holds.spec, err = objecthash.Hash(struct {
		Name                string
		Labels, Annotations map[string]string
		Spec                *v1alpha1.ClusterServiceVersionSpec
	}{c.Name, c.Labels, c.Annotations, &c.Spec})
	if err != nil {
		return content{}, err
	}
	holds.status, err = objecthash.Hash(&c.Status)
	return holds, err
}

// mapKeys contains the keys of the maps of a ClusterServiceVersion, except its labels. A merge patch removes only keys
// that it names.
type mapKeys struct {
	Annotations     []string `json:"annotations,omitempty"`
	SpecLabels      []string `json:"specLabels,omitempty"`
	SpecAnnotations []string `json:"specAnnotations,omitempty"`
	MatchLabels     []string `json:"matchLabels,omitempty"`
}

// keysOf returns the value of annotationKeys for a copy.
func keysOf(c *v1alpha1.ClusterServiceVersion) string {
	keys := mapKeys{
		Annotations: slices.Sorted(maps.Keys(c.Annotations)), SpecLabels: slices.Sorted(maps.Keys(c.Spec.Labels)),
		SpecAnnotations: slices.Sorted(maps.Keys(c.Spec.Annotations)),
	}
	if c.Spec.Selector != nil {
		keys.MatchLabels = slices.Sorted(maps.Keys(c.Spec.Selector.MatchLabels))
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return ""
	}
	return string(text)
}
