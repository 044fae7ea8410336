// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/internal/share"
	"github.com/olmcore/olm/olmcore"
)

// Watched is the kinds to watch and to keep in a cache, each with the namespaces whose objects are needed, sorted; nil:
// all of them.
type Watched map[schema.GroupVersionKind][]string

// Holds reports whether the objects of a kind in a namespace, "" for all, are among them. What is not is read from the
// API server when it is asked for.
func (w Watched) Holds(kind schema.GroupVersionKind, namespace string) bool {
	namespaces, is := w[kind]
	return is && (namespaces == nil || slices.Contains(namespaces, namespace))
}

// Watched returns the kinds whose changes count for the controllers of these names, which are those that they read;
// without names for all that New returns. Rights allows no other. A shard needs Pods, Secrets and the like of its
// Namespaces, of the global catalogs and of OLM alone.
func (o Options) Watched(only ...string) Watched {
	all, shard, chosen := Watched{}, o.shard(), o.chosen(only)
	for _, k := range olmcore.Kinds() {
		if !isReadBy(k, chosen) {
			continue
		}
		switch k.Watch {
		case olmcore.WatchShard:
			all[k.GroupVersionKind] = shard
		case olmcore.WatchAll:
			all[k.GroupVersionKind] = nil
		}
	}
	return all
}

// shard returns the namespaces that a shard reads from, sorted; nil for all.
func (o *Options) shard() []string {
	if len(o.Namespaces) == 0 {
		return nil
	}
	all := append(slices.Clone(o.Namespaces), o.globalNamespace(), o.olmNamespace())
	slices.Sort(all)
	return slices.Compact(all)
}

// Change is what a watch delivers about one object. The objects are kept and must not be written to; maps of kinds that
// have a Go type will do, and what Watched.Transform made.
type Change struct {
	// Old is the object as it was, nil when that is not known. New is the object as it is, or as it was last.
	Old, New olmcore.Object
	// Deleted: it is gone. Initial: it was there before the watch was.
	Deleted, Initial bool
	At               time.Time
}

// Changed returns the keys to reconcile after a change, sorted, and takes in what the controller remembers of it: of
// InstallPlans the versions, so that Subscriptions report states too short to be met when they are reconciled, and that
// CatalogSources changed. Of an object that does not fit its type what does counts. The error is of reading what a
// change of everything means.
func (c Controller) Changed(ctx context.Context, r olmcore.Reader, change Change) ([]types.NamespacedName, error) {
	if change.New == nil {
		return nil, &olmcore.InputError{Field: "change.New", Problem: "is nil"}
	}
	if change.Initial && !slices.Contains(c.Kinds, olmcore.GVKOf(change.New)) {
		return nil, nil // at the start each object of these kinds asks for its own key, and all together for every key
	}
	next, err := Delivered(change.New)
	if err != nil {
		return nil, err
	}
	if change.Initial {
		if c.notice != nil {
			c.notice(nil, next, change.Deleted, change.At)
		}
		return c.ours(c.KeysOf(next)), nil
	}
	keys := c.Affected(next)
	var old olmcore.Object
	if change.Old != nil {
		if old, err = Delivered(change.Old); err == nil {
			keys = append(keys, c.Affected(old)...)
		}
	}
	if c.notice != nil {
		c.notice(old, next, change.Deleted, change.At)
	}
	var known []types.NamespacedName
	if slices.Contains(c.Kinds, olmcore.GVKOf(next)) {
		known = c.KeysOf(next) // it may be gone
	}
	if wide := c.wildcards(keys); len(wide) > 0 {
		all, err := c.concerned(ctx, r, wide, old, next)
		if err != nil {
			return nil, err
		}
		known = append(known, all...)
	}
	return c.ours(olmcore.ExpandKeys(keys, known)), nil
}

// wildcards returns the namespaces in which keys are to be found that stand for several, "" alone for all of them.
func (c Controller) wildcards(keys []types.NamespacedName) []string {
	namespaces := sets.New[string]()
	for _, k := range keys {
		switch {
		case k.Name != "":
		case k.Namespace == "" || !c.inPlace:
			return []string{""}
		default:
			namespaces.Insert(k.Namespace)
		}
	}
	return sets.List(namespaces)
}

// ours reports whether objects of a namespace are reconciled.
func (o *Options) ours(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}

// ours leaves out the keys of other shards.
func (c Controller) ours(keys []types.NamespacedName) []types.NamespacedName {
	if len(c.namespaces) == 0 {
		return keys
	}
	return slices.DeleteFunc(keys, func(k types.NamespacedName) bool { return !slices.Contains(c.namespaces, k.Namespace) })
}

// Transform is what a cache does to each object before it keeps it, in the form in which client-go and
// controller-runtime want it (cache.TransformFunc): managed fields are left out, and of copies of versions all that no
// controller looks at. A cluster has as many of these as operators times namespaces. What objects have in common, such
// as the icon and the rules of a bundle, names and labels, is kept once for all of them, so that what one reads of a
// cache must not be written to. It may change o, and returns what is no object as it is; the error is nil.
func Transform(o any) (any, error) {
	object, ok := o.(olmcore.Object)
	if !ok {
		return o, nil
	}
	object.SetManagedFields(nil)
	object = copies.Slim(object)
	if u, isMap := object.(*unstructured.Unstructured); isMap {
		share.InCommon.Map(u)
	} else {
		share.InCommon.Object(object)
	}
	return object, nil
}
