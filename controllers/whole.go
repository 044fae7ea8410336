// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Transform is the function Transform for a cache of what is watched that only a Whole reads: it takes maps of the
// kinds that the library knows and keeps their API types, which decode.Kept makes. Of ConfigMaps, Secrets and Pods of
// all namespaces that belong neither to OLM nor to an operator it keeps the metadata alone, without annotations, as
// *metav1.PartialObjectMetadata.
func (w Watched) Transform(o any) (any, error) {
	if object, ok := o.(olmcore.Object); ok {
		object = decode.Kept(object)
		if w.Reduces(olmcore.GVKOf(object)) && isUnmanaged(object) {
			object = metadataOf(object)
		}
		o = object
	}
	return Transform(o)
}

// Reduces reports whether Transform makes of objects of a kind something else than a client returns, so that only a
// Whole may read them: of OLM's own kinds, and of ConfigMaps, Secrets and Pods where those of all namespaces are
// watched. A shard has few of these.
func (w Watched) Reduces(gvk schema.GroupVersionKind) bool {
	namespaces, is := w[gvk]
	return is && namespaces == nil && (gvk.Group == v1alpha1.GroupName || slices.Contains(unmanagedKinds, gvk))
}

// Whole is an olmcore.Reader over a cache whose objects Watched.Transform reduced. If an object was reduced, it is read
// from the API server.
type Whole struct {
	// Cached returns objects as the cache holds them, Live those of the API server.
	Cached, Live olmcore.Reader
}

// Get implements olmcore.Reader.
func (w Whole) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := w.Cached.Get(ctx, gvk, namespace, name)
	if err == nil && isMetadata(o) {
		return w.Live.Get(ctx, gvk, namespace, name)
	}
	return o, err
}

// List implements olmcore.Reader.
func (w Whole) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	all, err := w.Cached.List(ctx, gvk, namespace, selector)
	if err == nil && slices.ContainsFunc(all, isMetadata) {
		return w.Live.List(ctx, gvk, namespace, selector)
	}
	return all, err
}

// ListMetadata returns the objects as the cache holds them. With Indexes, it implements olmcore.IndexedReader.
func (w Whole) ListMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	return w.Cached.List(ctx, gvk, namespace, selector)
}

// unmanagedKinds are those of which clusters have many objects that are not OLM's, with content that takes memory.
var unmanagedKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Secret"),
}

// isUnmanaged reports whether an object of these kinds has none of the labels that OLM or a Gather function uses, and
// no owner that belongs to OLM. If a user adds such a label or owner, the cache keeps the whole object.
func isUnmanaged(o olmcore.Object) bool {
	labels := o.GetLabels()
	isOLMs := func(owner metav1.OwnerReference) bool {
		return strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/")
	}
	return slices.Contains(unmanagedKinds, olmcore.GVKOf(o)) && labels[olmcore.LabelManaged] == "" && labels[olmcore.LabelOwner] == "" &&
		len(olmcore.IndexTerms(o)) == 0 && !slices.ContainsFunc(o.GetOwnerReferences(), isOLMs)
}

// metadataOf returns what selectors and Affected functions look at.
func metadataOf(o olmcore.Object) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
		Labels: o.GetLabels(), Finalizers: o.GetFinalizers(), OwnerReferences: o.GetOwnerReferences(),
	}}
	m.SetGroupVersionKind(olmcore.GVKOf(o))
	return m
}

func isMetadata(o olmcore.Object) bool {
	_, is := o.(*metav1.PartialObjectMetadata)
	return is
}
