// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// labelIndex is the name of the index of labels.
const labelIndex = "olm.labels"

// NewCache is cache.New for a manager that shares its cache with the controllers: a value for ctrl.Options.NewCache. Of
// any other cache it is not known what it leaves out, and nothing is read from it.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	return &knownCache{Cache: c, options: options, indexed: map[schema.GroupVersionKind]error{}}, nil
}

// CacheOptions returns c, with entries in ByObject for those of the controllers' kinds that c has none for, where its
// defaults would leave out what they need, or hold more than a shard needs; and with controllers.Transform as
// DefaultTransform, where it has none. What c says stays: a kind that it restricts is cached apart. OLM's own kinds,
// ConfigMaps, Secrets and Pods, which the library keeps for itself, are as c says.
func CacheOptions(o controllers.Options, c cache.Options) cache.Options {
	watched := o.Watched()
	maps.DeleteFunc(watched, func(gvk schema.GroupVersionKind, _ []string) bool { return watched.Reduces(gvk) })
	return holding(watched, c)
}

// holding returns c with what a cache needs to hold objects of kinds in their namespaces.
func holding(watched controllers.Watched, c cache.Options) cache.Options {
	c.ByObject = maps.Clone(c.ByObject)
	if c.ByObject == nil {
		c.ByObject = map[client.Object]cache.ByObject{}
	}
	var transform toolscache.TransformFunc
	if c.DefaultTransform != nil {
		transform = controllers.Transform
	} else {
		c.DefaultTransform = controllers.Transform
	}
	for gvk, namespaces := range watched {
		if len(entries(c, gvk)) > 0 {
			continue
		}
		by := cache.ByObject{Transform: transform}
		if kind, _ := olmcore.KindOf(gvk.GroupKind()); kind.Namespaced && (namespaces != nil || len(c.DefaultNamespaces) > 0) {
			by.Namespaces = map[string]cache.Config{} // all, unless there are some
			for _, name := range namespaces {
				by.Namespaces[name] = cache.Config{}
			}
		}
		if len(c.DefaultNamespaces) > 0 || c.DefaultLabelSelector != nil {
			by.Label = labels.Everything()
		}
		if len(c.DefaultNamespaces) > 0 || c.DefaultFieldSelector != nil {
			by.Field = fields.Everything()
		}
		if !reflect.ValueOf(by).IsZero() {
			kind := &unstructured.Unstructured{} // a scheme need not know it
			kind.SetGroupVersionKind(gvk)
			c.ByObject[kind] = by
		}
	}
	return c
}

// entries are those of ByObject that are of a kind.
func entries(c cache.Options, gvk schema.GroupVersionKind) (found []cache.ByObject) {
	for o, by := range c.ByObject {
		kind := olmcore.GVKOf(o)
		if c.Scheme != nil {
			if known, err := apiutil.GVKForObject(o, c.Scheme); err == nil {
				kind = known
			}
		}
		if kind == gvk {
			found = append(found, by)
		}
	}
	return found
}

// chooseCaches finds out where each kind is read from.
func (m *Manager) chooseCaches() error {
	m.caches, m.Apart = map[schema.GroupVersionKind]cache.Cache{}, map[schema.GroupVersionKind]string{}
	options := holding(m.watched, cache.Options{Scheme: m.scheme, Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient()})
	options.DefaultTransform = m.transform
	made, err := NewCache(m.GetConfig(), options)
	if err != nil {
		return err
	}
	own := made.(*knownCache)
	shared, known := m.GetCache().(*knownCache)
	for gvk, namespaces := range m.watched {
		if m.isKept(gvk) {
			m.caches[gvk] = own
			if err := indexKept(own, gvk); err != nil {
				return fmt.Errorf("%s: %w", gvk.Kind, err)
			}
			continue
		}
		why := "the manager's cache was not made by olmruntime.NewCache"
		if known {
			why = shared.lacks(gvk, namespaces)
		}
		if why == "" {
			why = shared.index(gvk)
		}
		if why == "" {
			m.caches[gvk] = shared
		} else {
			m.Apart[gvk] = why
		}
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(m.Apart), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }) {
		m.caches[gvk] = own
		if problem := own.index(gvk); problem != "" {
			return fmt.Errorf("%s: %s", gvk.Kind, problem)
		}
		m.GetLogger().V(1).Info("The controllers have a cache of their own", "kind", gvk.Kind, "because", m.Apart[gvk])
	}
	return m.Add(ownCache{own})
}

// ownCache is a cache that a manager starts before controllers, as its own.
type ownCache struct{ cache.Cache }

// GetCache makes a manager start it with the caches.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

// knownCache is a cache of which it is known what it leaves out.
type knownCache struct {
	cache.Cache
	options cache.Options

	mu sync.Mutex
	// indexed are the kinds that have the index of labels, or that failed to.
	indexed map[schema.GroupVersionKind]error
}

// index gives a kind the index of labels, once. It returns what is wrong, "" for nothing.
func (c *knownCache) index(gvk schema.GroupVersionKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, done := c.indexed[gvk]
	if !done {
		terms := func(o client.Object) []string { return olmcore.IndexTerms(o) }
		err = c.IndexField(context.Background(), decode.Blank(gvk), labelIndex, terms)
		c.indexed[gvk] = err
	}
	if err != nil {
		return fmt.Sprintf("its index %s: %v", labelIndex, err)
	}
	return ""
}

// lacks says why the objects of a kind in some namespaces, nil for all, are not all in the cache as they are; "" where
// they are.
func (c *knownCache) lacks(gvk schema.GroupVersionKind, namespaces []string) string {
	blank := decode.Blank(gvk)
	if !hasType(c.options.Scheme, gvk, blank) {
		return fmt.Sprintf("the manager's scheme lacks %T", blank)
	}
	if len(entries(c.options, gvk)) > 1 {
		return "ByObject of the cache's options has several entries for it"
	}
	held := configs(c.options, gvk)
	if namespaces == nil {
		namespaces = append(slices.Sorted(maps.Keys(held)), cache.AllNamespaces)
	}
	for _, name := range namespaces {
		config, ok := held[name]
		if !ok {
			config, ok = held[cache.AllNamespaces]
		}
		switch {
		case !ok:
			return "the cache's options restrict it to the namespaces " + strings.Join(slices.Sorted(maps.Keys(held)), ", ")
		case config.LabelSelector != nil && !config.LabelSelector.Empty():
			return fmt.Sprintf("the cache's options restrict it to the labels %s", config.LabelSelector)
		case config.FieldSelector != nil && !config.FieldSelector.Empty():
			return fmt.Sprintf("the cache's options restrict it to the fields %s", config.FieldSelector)
		case !keeps(config.Transform, gvk):
			return "a transform of the cache's options changes more than managed fields"
		}
	}
	return ""
}

// hasType reports whether a scheme has the library's Go type for a kind, and a list of it.
func hasType(s *runtime.Scheme, gvk schema.GroupVersionKind, o runtime.Object) bool {
	if s == nil || !s.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
		return false
	}
	kinds, _, err := s.ObjectKinds(o)
	return err == nil && slices.Contains(kinds, gvk)
}

// configs returns what a cache of these options holds of a kind, by namespace, AllNamespaces for those without an
// entry: what is said first counts, from ByObject to the defaults.
func configs(c cache.Options, gvk schema.GroupVersionKind) map[string]cache.Config {
	var by cache.ByObject
	if found := entries(c, gvk); len(found) > 0 {
		by = found[0]
	}
	kind, _ := olmcore.KindOf(gvk.GroupKind())
	namespaces := by.Namespaces
	if namespaces == nil {
		namespaces = c.DefaultNamespaces
	}
	if !kind.Namespaced || len(namespaces) == 0 {
		namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
	}
	all := map[string]cache.Config{}
	for name, config := range namespaces {
		for _, next := range []cache.Config{
			{LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform},
			c.DefaultNamespaces[name],
			{LabelSelector: c.DefaultLabelSelector, FieldSelector: c.DefaultFieldSelector, Transform: c.DefaultTransform},
		} {
			if config.LabelSelector == nil {
				config.LabelSelector = next.LabelSelector
			}
			if config.FieldSelector == nil {
				config.FieldSelector = next.FieldSelector
			}
			if config.Transform == nil {
				config.Transform = next.Transform
			}
		}
		all[name] = config
	}
	return all
}

// keeps reports whether a transform leaves an object of a kind as it is, but for its managed fields: one with all its
// fields filled in.
func keeps(transform toolscache.TransformFunc, gvk schema.GroupVersionKind) bool {
	if transform == nil {
		return true
	}
	var example client.Object = decode.Blank(gvk)
	fill(reflect.ValueOf(example).Elem(), exampleDepth)
	example.SetManagedFields(nil)
	got, err := transform(example.DeepCopyObject())
	kept, ok := got.(client.Object)
	if err != nil || !ok {
		return false
	}
	kept.SetManagedFields(nil)
	return equality.Semantic.DeepEqual(example, kept)
}

// exampleDepth is how deep an example is filled: below it is what a Pod's containers hold.
const exampleDepth = 8

// fill gives each field of a value some content.
func fill(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth-1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	}
}
