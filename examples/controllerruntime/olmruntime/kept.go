// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/olmcore/olm/olmcore"
)

// isKept reports whether a kind is one of OLM's. A client decodes these into maps, as their API types cannot hold every
// stored object, and controllers.TransformTyped turns the maps into API types, which are a fifth of the size. Reads of
// controller-runtime's cache want the type that was decoded, so these kinds are read from the informers' stores.
func isKept(gvk schema.GroupVersionKind) bool {
	_, known := olmcore.KindOf(gvk.GroupKind())
	return known && gvk.Group == v1alpha1.GroupName
}

// indexKept gives the store of a kind the index of labels.
func indexKept(own cache.Cache, gvk schema.GroupVersionKind) error {
	informer, err := own.GetInformer(context.Background(), olmcore.Blank(gvk), cache.BlockUntilSynced(false))
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
	informer, err := m.caches[gvk].GetInformer(ctx, olmcore.Blank(gvk))
	if err != nil {
		return nil, err
	}
	if !informer.HasSynced() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	return informer.(toolscache.SharedIndexInformer).GetIndexer(), nil
}

func (m *Manager) kept(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
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
	return olmcore.Typed(o.(olmcore.Object))
}

func (m *Manager) listKept(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	store, err := m.store(ctx, gvk)
	if err != nil {
		return nil, err
	}
	var found []any
	switch term := olmcore.IndexTerm(selector); {
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
	return olmcore.Items(&list)
}
