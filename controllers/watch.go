// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/installplan"
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

// Watched returns the kinds that Affected knows. A shard needs Pods, Secrets and the like of its Namespaces, of the
// global catalogs and of OLM alone.
func (o Options) Watched() Watched {
	var shard []string
	if len(o.Namespaces) > 0 {
		shard = append(slices.Clone(o.Namespaces),
			cmp.Or(o.GlobalNamespace, DefaultGlobalNamespace), cmp.Or(o.InstallPlan.OLMNamespace, installplan.DefaultOLMNamespace))
		slices.Sort(shard)
		shard = slices.Compact(shard)
	}
	all := Watched{}
	for _, k := range olmcore.Kinds() {
		switch k.Watch {
		case olmcore.WatchShard:
			all[k.GroupVersionKind] = shard
		case olmcore.WatchAll:
			all[k.GroupVersionKind] = nil
		}
	}
	return all
}

// Change is what a watch delivers about one object. The objects are kept and must not be written to; maps of kinds that
// have a Go type will do.
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
	if change.Initial && olmcore.GVKOf(change.New).Group != v1alpha1.GroupName {
		return nil, nil // at the start OLM's own objects ask for every key
	}
	next, err := olmcore.Fitting(olmcore.Typed(change.New))
	if err != nil {
		return nil, err
	}
	keys := c.Affected(next)
	var old olmcore.Object
	if change.Old != nil {
		if old, err = olmcore.Fitting(olmcore.Typed(change.Old)); err == nil {
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
	keep := func(olmcore.Object) bool { return true }
	if c.concerns != nil {
		keep = c.concerns(old, next)
	}
	if keep != nil && slices.ContainsFunc(keys, func(k types.NamespacedName) bool { return k.Name == "" }) {
		all, err := c.keys(ctx, r, keep)
		if err != nil {
			return nil, err
		}
		known = append(known, all...)
	}
	return c.ours(olmcore.ExpandKeys(keys, known)), nil
}

// plansConcerned: a version of another namespace, which may own what a plan is about to change, does not concern plans
// that are Complete. Whoever writes one may write it all the time.
func plansConcerned(_, next olmcore.Object) func(olmcore.Object) bool {
	_, version := next.(*v1alpha1.ClusterServiceVersion)
	return func(o olmcore.Object) bool {
		plan, ok := o.(*v1alpha1.InstallPlan)
		return !version || !ok || plan.Namespace == next.GetNamespace() || plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete
	}
}

// versionsConcerned: an OperatorGroup concerns those of other namespaces that provide an API which it lists or listed.
func versionsConcerned(old, next olmcore.Object) func(olmcore.Object) bool {
	group, is := next.(*operatorsv1.OperatorGroup)
	if !is {
		return func(olmcore.Object) bool { return true }
	}
	before, _ := old.(*operatorsv1.OperatorGroup)
	provides := csv.Providers(before, group)
	return func(o olmcore.Object) bool {
		version, ok := o.(*v1alpha1.ClusterServiceVersion)
		return !ok || version.Namespace == group.Namespace || provides(version)
	}
}

// sourcesConcerned: a Namespace concerns the versions that watch it, when it comes or goes; an OLMConfig those that watch
// all, and an OperatorGroup those of its namespace.
func sourcesConcerned(old, next olmcore.Object) func(olmcore.Object) bool {
	concerned := copies.Concerned(old, next)
	if concerned == nil {
		return nil
	}
	return ofVersions(concerned)
}

// operatorsConcerned: a ClusterRole concerns the versions whose own it is, or that need some of what it grants.
func operatorsConcerned(old, next olmcore.Object) func(olmcore.Object) bool {
	return ofVersions(permissions.Concerned(old, next))
}

func ofVersions(concerned func(*v1alpha1.ClusterServiceVersion) bool) func(olmcore.Object) bool {
	return func(o olmcore.Object) bool {
		version, ok := o.(*v1alpha1.ClusterServiceVersion)
		return !ok || concerned(version)
	}
}

// ours leaves out the keys of other shards.
func (c Controller) ours(keys []types.NamespacedName) []types.NamespacedName {
	if len(c.namespaces) == 0 {
		return keys
	}
	return slices.DeleteFunc(keys, func(k types.NamespacedName) bool { return !slices.Contains(c.namespaces, k.Namespace) })
}
