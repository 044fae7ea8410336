// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// ours reports whether objects of a namespace are reconciled.
func (o *Options) ours(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
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
