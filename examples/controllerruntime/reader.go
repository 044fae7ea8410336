// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmcore/olm/olmcore"
)

// Reader is an olmcore.Reader over the cache of a manager. What the cache does
// not hold is read from the API server: kinds that nobody watches, and namespaces
// outside of a shard. Objects are shared with the cache.
type Reader struct {
	// Cache may be nil: then everything is read from the API server.
	Cache, Live client.Reader
	// Scheme knows the kinds that the cache holds with their Go types.
	Scheme *runtime.Scheme
	// Namespaces bound what the cache holds of the kinds in Bounded; nil: nothing is
	// bounded.
	Namespaces []string
}

// Get implements olmcore.Reader.
func (r *Reader) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o := prototype(gvk)
	source, _ := r.source(gvk, namespace)
	if err := source.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return typed(o)
}

// List implements olmcore.Reader.
func (r *Reader) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	source, cached := r.source(gvk, namespace)
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if selector != nil {
		if _, some := selector.Requirements(); !some {
			return nil, nil // on the wire it would look like one that takes everything
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
		if value := indexed(selector); value != "" && cached && gvk != catalogSource {
			options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(labelIndex, value)})
		}
	}
	list, err := r.newList(gvk)
	if err != nil {
		return nil, err
	}
	if err := source.List(ctx, list, options...); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objects := make([]olmcore.Object, len(items))
	for i, item := range items {
		if objects[i], err = typed(item.(client.Object)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(objects, func(a, b olmcore.Object) int {
		if n := strings.Compare(a.GetNamespace(), b.GetNamespace()); n != 0 {
			return n
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return objects, nil
}

func (r *Reader) source(gvk schema.GroupVersionKind, namespace string) (source client.Reader, cached bool) {
	bounded, watched := watchedKinds[gvk]
	if r.Cache == nil || r.Cache == r.Live || !watched || bounded && r.Namespaces != nil && !slices.Contains(r.Namespaces, namespace) {
		return r.Live, false
	}
	return r.Cache, true
}

func (r *Reader) newList(gvk schema.GroupVersionKind) (client.ObjectList, error) {
	gvk.Kind += "List"
	if _, untyped := prototype(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List"))).(*unstructured.Unstructured); untyped {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	list, err := r.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

var catalogSource = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)

// prototype is an empty object to read into. CatalogSources are read as maps: the
// decoder of their Go type panics on an empty spec.updateStrategy.
func prototype(gvk schema.GroupVersionKind) client.Object {
	if gvk != catalogSource {
		return olmcore.NewObject(gvk)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// typed turns what was read into what Readers promise.
func typed(o client.Object) (olmcore.Object, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GroupVersionKind() != catalogSource {
		return o, nil
	}
	cs := &v1alpha1.CatalogSource{}
	return cs, olmcore.FromMap(u.Object, cs)
}

// labelIndex finds objects by "key=value" or "key" of their labels.
const labelIndex = "labels"

func labelValues(o client.Object) []string {
	values := make([]string, 0, 2*len(o.GetLabels()))
	for key, value := range o.GetLabels() {
		values = append(values, key, key+"="+value)
	}
	return values
}

// indexed returns a value of the index that every object which a selector takes
// has; empty when there is none.
func indexed(selector labels.Selector) (value string) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch values := r.ValuesUnsorted(); r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if len(values) == 1 {
				return r.Key() + "=" + values[0]
			}
		case selection.Exists:
			value = r.Key()
		}
	}
	return value
}
