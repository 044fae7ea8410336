// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// isKept reports whether a kind is kept by the library for itself, as controllers.Watched.Transform makes it. OLM's own
// kinds a client decodes into maps, as their API types cannot hold every stored object; the types are a fifth of the
// size. Of ConfigMaps, Secrets and Pods that are not OLM's the metadata is enough. Reads of controller-runtime's cache
// want the type that was decoded, so these kinds are read from the informers' stores.
func (m *Manager) isKept(gvk schema.GroupVersionKind) bool { return m.watched.Reduces(gvk) }

// transform is what the library's own cache does to each object.
func (m *Manager) transform(o any) (any, error) {
	if object, ok := o.(olmcore.Object); ok && m.entire.Has(olmcore.GVKOf(object)) {
		return controllers.Transform(o)
	}
	return m.watched.Transform(o)
}

// whole reads what is kept, and from the API server what is not kept whole.
func (m *Manager) whole() controllers.Whole {
	return controllers.Whole{Cached: kept{m}, Live: m.Cluster}
}

// kept reads what is in the informers' stores.
type kept struct{ *Manager }

// indexKept gives the store of a kind the index of labels.
func indexKept(own cache.Cache, gvk schema.GroupVersionKind) error {
	informer, err := own.GetInformer(context.Background(), decode.Blank(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return informer.AddIndexers(toolscache.Indexers{labelIndex: func(o any) (terms []string, err error) {
		object := o.(olmcore.Object)
		for _, term := range olmcore.IndexTerms(object) {
			terms = append(terms, object.GetNamespace()+"/"+term, "/"+term)
		}
		return terms, nil
	}})
}

// store is that of a kind, once it holds what there is.
func (m *Manager) store(ctx context.Context, gvk schema.GroupVersionKind) (toolscache.Indexer, error) {
	informer, err := m.caches[gvk].GetInformer(ctx, decode.Blank(gvk))
	if err != nil {
		return nil, err
	}
	if !informer.HasSynced() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	return informer.(toolscache.SharedIndexInformer).GetIndexer(), nil
}

// Get implements olmcore.Reader.
func (m kept) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	store, err := m.store(ctx, gvk)
	if err != nil {
		return nil, err
	}
	o, found, err := store.GetByKey(toolscache.NewObjectName(namespace, name).String())
	if err != nil {
		return nil, err
	}
	if !found {
		kind, _ := olmcore.KindOf(gvk.GroupKind())
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: kind.Plural}, name)
	}
	return decode.Typed(o.(olmcore.Object))
}

// List implements olmcore.Reader.
func (m kept) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	store, err := m.store(ctx, gvk)
	if err != nil {
		return nil, err
	}
	var found []any
	switch term := olmcore.IndexTerm(gvk, selector); {
	case term != "":
		found, err = store.ByIndex(labelIndex, namespace+"/"+term)
	case namespace != "":
		found, err = store.ByIndex(toolscache.NamespaceIndex, namespace)
	default:
		found = store.List()
	}
	if err != nil {
		return nil, err
	}
	var list metav1.List
	for _, o := range found {
		object := o.(olmcore.Object)
		if selector == nil || selector.Matches(labels.Set(object.GetLabels())) {
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
	}
	return decode.Items(&list)
}

// delivered asks a predicate about what a cache keeps of an object as about its API type.
type delivered struct{ predicate.Predicate }

// Create implements predicate.Predicate.
func (p delivered) Create(e event.CreateEvent) bool {
	e.Object = deliver(e.Object)
	return p.Predicate.Create(e)
}

// Update implements predicate.Predicate.
func (p delivered) Update(e event.UpdateEvent) bool {
	e.ObjectOld, e.ObjectNew = deliver(e.ObjectOld), deliver(e.ObjectNew)
	return p.Predicate.Update(e)
}

// Delete implements predicate.Predicate.
func (p delivered) Delete(e event.DeleteEvent) bool {
	e.Object = deliver(e.Object)
	return p.Predicate.Delete(e)
}

// Generic implements predicate.Predicate.
func (p delivered) Generic(e event.GenericEvent) bool {
	e.Object = deliver(e.Object)
	return p.Predicate.Generic(e)
}

func deliver(o client.Object) client.Object {
	if o == nil {
		return nil
	}
	if typed, err := controller.Delivered(o); err == nil {
		return typed
	}
	return o
}
