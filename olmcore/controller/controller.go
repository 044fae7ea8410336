// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// ReconcileFunc reads what concerns one key and returns the actions to run. It writes nothing itself. now is the time
// on the clock of the caller, and last contains the results of the previous actions of the key. A NotFound error means
// that the object of the key does not exist.
type ReconcileFunc func(
	ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
) (olmcore.Result, error)

// Controller is a ReconcileFunc with the keys that it reconciles, independent of the program that runs it. Name and
// Reconcile are required. Different keys may be reconciled concurrently.
type Controller struct {
	// Name identifies the controller in reports, for example "catalog".
	Name string
	// Kinds contains the kinds of the objects that the controller reconciles.
	Kinds []schema.GroupVersionKind
	// KeysOf returns the keys of an object of these kinds: usually the object, or its namespace as a key without a name
	// (NamespaceKey). nil means the object.
	KeysOf func(o olmcore.Object) []types.NamespacedName
	// Always contains keys that exist even if the cluster has no object of these kinds.
	Always []types.NamespacedName
	// Affected returns the keys to reconcile after an object of any kind has changed. A key with an empty name or
	// namespace is a wildcard: see olmcore.ExpandKeys. nil means that only changes of Kinds matter.
	Affected func(o olmcore.Object) []types.NamespacedName
	// Every is how often a key is reconciled without a change. 0 means never.
	Every time.Duration
	// Reconcile reads and decides.
	Reconcile ReconcileFunc

	// Namespaces restricts the controller to keys in these namespaces. If it is empty, all keys are reconciled.
	Namespaces []string
	// SameNamespace is true if KeysOf returns only keys in the namespace of the object. Changed then resolves a wildcard
	// for one namespace by listing that namespace instead of all of them.
	SameNamespace bool
	// Concerned, if set, reduces the keys of a wildcard that Affected returned for a change: it returns the objects of a
	// kind in a namespace, "" for all, that the change concerns. The objects of the change have their API types. nil means
	// that the change concerns all objects.
	Concerned func(
		ctx context.Context, r olmcore.Reader, change Change, kind schema.GroupVersionKind, namespace string,
	) ([]olmcore.Object, error)
	// OnChange, if set, is called by Changed with each change of a watch, before its keys are reconciled. It is for
	// controllers that remember states which may be gone when they reconcile. The objects have their API types.
	OnChange func(change Change)
}

// NamespaceKey returns the namespace of an object as a key without a name. It is a value for Controller.KeysOf.
func NamespaceKey(o olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: o.GetNamespace()}}
}

// Keys returns the keys that exist, sorted. The error is that of the Reader. A kind that is not served has no objects.
func (c Controller) Keys(ctx context.Context, r olmcore.Reader) ([]types.NamespacedName, error) {
	return c.keys([]string{""}, func(kind schema.GroupVersionKind, namespace string) ([]olmcore.Object, error) {
		return r.List(ctx, kind, namespace, nil)
	})
}

// keys returns the keys of the objects that list returns for each kind and each of the namespaces, "" for all.
func (c Controller) keys(
	namespaces []string, list func(kind schema.GroupVersionKind, namespace string) ([]olmcore.Object, error),
) ([]types.NamespacedName, error) {
	keys := slices.Clone(c.Always)
	for _, kind := range c.Kinds {
		for _, namespace := range namespaces {
			objects, err := list(kind, namespace)
			if olmcore.Classify(err) == olmcore.NoMatch {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				keys = append(keys, c.keysOf(o)...)
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return c.inNamespaces(slices.Compact(keys)), nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (c Controller) keysOf(o olmcore.Object) []types.NamespacedName {
	if c.KeysOf != nil {
		return c.KeysOf(o)
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

func (c Controller) affected(o olmcore.Object) []types.NamespacedName {
	switch {
	case c.Affected != nil:
		return c.Affected(o)
	case slices.Contains(c.Kinds, olmcore.GVKOf(o)):
		return c.keysOf(o)
	}
	return nil
}

// inNamespaces removes the keys outside of Namespaces.
func (c Controller) inNamespaces(keys []types.NamespacedName) []types.NamespacedName {
	if len(c.Namespaces) == 0 {
		return keys
	}
	return slices.DeleteFunc(keys, func(k types.NamespacedName) bool { return !slices.Contains(c.Namespaces, k.Namespace) })
}
