// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// cache holds what informers and their indexes hold: each object decoded from the text that an API server sends, so
// that nothing is shared with that, and transformed. What it does not hold is read from the API server, and counted.
type cache struct {
	controllers.Indexes
	watched controllers.Watched
	kinds   map[schema.GroupKind]*informer
	live    olmcore.Reader
	reads   int
	// shared: it holds the objects of the store themselves. It is for the manager that fills a world, which is not
	// measured.
	shared bool
}

// informer holds the objects of one kind by namespace/name. The index has a set of names for each namespace, and for
// each of olmcore.IndexTerms with and without the namespace, as those of controller-runtime.
type informer struct {
	objects map[string]olmcore.Object
	index   map[string]map[string]struct{}
}

func newCache(watched controllers.Watched, live olmcore.Reader) *cache {
	c := &cache{Indexes: controllers.Indexes{Watched: watched}, watched: watched, kinds: map[schema.GroupKind]*informer{}, live: live}
	for gvk := range watched {
		c.kinds[gvk.GroupKind()] = &informer{objects: map[string]olmcore.Object{}, index: map[string]map[string]struct{}{}}
	}
	return c
}

// sent is what an API server sends of an object.
type sent struct {
	kind schema.GroupVersionKind
	data []byte
}

// received is the object as a client decodes and transforms it.
func (c *cache) received(t sent) (olmcore.Object, error) {
	o, err := decode.Blank(t.kind), error(nil)
	if u, isMap := o.(*unstructured.Unstructured); isMap {
		err = u.UnmarshalJSON(t.data)
	} else {
		err = json.Unmarshal(t.data, o)
	}
	if err != nil {
		return nil, err
	}
	kept, err := c.watched.Transform(o)
	if err != nil {
		return nil, err
	}
	return kept.(olmcore.Object), nil
}

func nameOf(o olmcore.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func terms(o olmcore.Object) []string {
	all := []string{"ns:" + o.GetNamespace()}
	for _, term := range olmcore.IndexTerms(o) {
		all = append(all, o.GetNamespace()+"/"+term, "/"+term)
	}
	return all
}

// put stores an object, and returns the one that it takes the place of.
func (c *cache) put(o olmcore.Object) olmcore.Object {
	i := c.kinds[olmcore.GVKOf(o).GroupKind()]
	c.Drop(o)
	name := nameOf(o)
	old := i.objects[name]
	if old != nil {
		i.forget(old)
	}
	i.objects[name] = o
	for _, term := range terms(o) {
		names := i.index[term]
		if names == nil {
			names = map[string]struct{}{}
			i.index[term] = names
		}
		names[name] = struct{}{}
	}
	return old
}

func (c *cache) remove(o olmcore.Object) olmcore.Object {
	i := c.kinds[olmcore.GVKOf(o).GroupKind()]
	c.Drop(o)
	name := nameOf(o)
	old := i.objects[name]
	if old != nil {
		i.forget(old)
		delete(i.objects, name)
	}
	return old
}

func (i *informer) forget(o olmcore.Object) {
	name := nameOf(o)
	for _, term := range terms(o) {
		delete(i.index[term], name)
		if len(i.index[term]) == 0 {
			delete(i.index, term)
		}
	}
}

// whole reads what the cache holds, and from the API server what that has not whole.
func (c *cache) whole() controllers.Whole {
	return controllers.Whole{Cached: stored{c}, Live: counted{c}}
}

// counted reads from the API server.
type counted struct{ *cache }

func (c counted) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	c.reads++
	return c.live.Get(ctx, gvk, namespace, name)
}

func (c counted) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	c.reads++
	return c.live.List(ctx, gvk, namespace, selector)
}

// stored reads what informers hold.
type stored struct{ *cache }

// Get implements olmcore.Reader.
func (c *cache) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if !c.watched.Holds(gvk, namespace) {
		return counted{c}.Get(ctx, gvk, namespace, name)
	}
	return c.whole().Get(ctx, gvk, namespace, name)
}

// List implements olmcore.Reader.
func (c *cache) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if !c.watched.Holds(gvk, namespace) {
		return counted{c}.List(ctx, gvk, namespace, selector)
	}
	return c.whole().List(ctx, gvk, namespace, selector)
}

// ListMetadata implements olmcore.IndexedReader.
func (c *cache) ListMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if !c.watched.Holds(gvk, namespace) {
		return counted{c}.List(ctx, gvk, namespace, selector)
	}
	return c.whole().ListMetadata(ctx, gvk, namespace, selector)
}

func (c stored) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o := c.kinds[gvk.GroupKind()].objects[namespace+"/"+name]
	if o == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
	}
	return decode.Typed(o)
}

func (c stored) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	i := c.kinds[gvk.GroupKind()]
	var found []olmcore.Object
	keep := func(o olmcore.Object) {
		if selector == nil || selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	term := ""
	switch label := olmcore.IndexTerm(gvk, selector); {
	case label != "":
		term = namespace + "/" + label
	case namespace != "":
		term = "ns:" + namespace
	}
	if term == "" {
		for _, o := range i.objects {
			keep(o)
		}
	}
	for name := range i.index[term] {
		keep(i.objects[name])
	}
	for n, o := range found {
		var err error
		if found[n], err = olmcore.Fitting(decode.Typed(o)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b olmcore.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}

func gvkOf(values map[string]any) schema.GroupVersionKind {
	return (&unstructured.Unstructured{Object: values}).GroupVersionKind()
}
