// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// scrape is what one scrape found.
type scrape struct {
	ctx    context.Context
	reader olmcore.Reader
	now    time.Time

	catalogs      olmcore.Observed[*v1alpha1.CatalogSource]
	subscriptions olmcore.Observed[*v1alpha1.Subscription]
	plans         olmcore.Observed[*v1alpha1.InstallPlan]
	versions      olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	groups        olmcore.Observed[*operatorsv1.OperatorGroup]
	theNamespaces olmcore.Observed[*corev1.Namespace]

	// series are those that are not remembered.
	series
	namespaces []*remembered
}

// look reads the cluster, and answers what can be answered.
func (m *Metrics) look(ctx context.Context, r olmcore.Reader) *scrape {
	s := &scrape{ctx: ctx, reader: r, now: m.now(), series: series{max: orDefault(m.MaxSeries, DefaultMaxSeries), only: m.only}}
	s.catalogs = list[*v1alpha1.CatalogSource](s, m.options.Namespaces)
	s.subscriptions = list[*v1alpha1.Subscription](s, m.options.Namespaces)
	s.plans = list[*v1alpha1.InstallPlan](s, m.options.Namespaces)
	s.versions = list[*v1alpha1.ClusterServiceVersion](s, m.options.Namespaces)
	s.groups = list[*operatorsv1.OperatorGroup](s, m.options.Namespaces)
	s.theNamespaces = list[*corev1.Namespace](s, nil)

	s.counts()
	m.lookAtCatalogs(s)
	m.lookAtCleanups(s)
	m.lookAtSyncs(s)
	m.lookAtNamespaces(s)
	s.totals("olm_metrics_series_left_out", func(n *series) map[string]int { return n.leftOut })
	s.totals("olm_objects_not_assessed", func(n *series) map[string]int { return n.notAssessed })
	return s
}

// totals adds up what was counted for the series of each namespace and for those of none.
func (s *scrape) totals(metric string, of func(*series) map[string]int) {
	total := maps.Clone(of(&s.series))
	if total == nil {
		total = map[string]int{}
	}
	for _, n := range s.namespaces {
		for word, more := range of(&n.series) {
			total[word] += more
		}
	}
	for _, word := range slices.Sorted(maps.Keys(total)) {
		s.add("", metric, float64(total[word]), word)
	}
}

// list reads the objects of a kind, of a shard's namespaces, if there are any. A kind that no metric needs, that is not
// served, or was not read, is incomplete, as is one that could not be read.
func list[T olmcore.Object](s *scrape, shard []string) (found olmcore.Observed[T]) {
	var zero T
	kind := olmcore.GVKOf(zero).Kind
	if !s.only.needs(kind) {
		return olmcore.Observed[T]{}
	}
	if len(shard) == 0 {
		shard = []string{""}
	}
	found.Complete = true
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(shard))) {
		items, err := olmcore.List[T](s.ctx, s.reader, namespace, nil)
		switch {
		case errors.Is(err, olmcore.ErrNotRead), olmcore.Classify(err) == olmcore.NoMatch:
			return olmcore.Observed[T]{}
		case err != nil:
			s.add("", "olm_kind_readable", 0, kind)
			return olmcore.Observed[T]{}
		case found.Items == nil:
			found.Items = items
		default:
			found.Items = append(found.Items, items...)
		}
	}
	s.add("", "olm_kind_readable", 1, kind)
	return found
}

// counts are OLM's numbers of objects.
func (s *scrape) counts() {
	if s.catalogs.Complete {
		s.add("", "catalog_source_count", float64(len(s.catalogs.Items)))
	}
	if s.subscriptions.Complete {
		s.add("", "subscription_count", float64(len(s.subscriptions.Items)))
	}
	if s.plans.Complete {
		s.add("", "install_plan_count", float64(len(s.plans.Items)))
	}
	if s.versions.Complete {
		n := 0
		for _, c := range s.versions.Items {
			if !c.IsCopied() {
				n++
			}
		}
		s.add("", "csv_count", float64(n))
	}
}

// place is what one namespace holds.
type place struct {
	name          string
	subscriptions []*v1alpha1.Subscription
	plans         []*v1alpha1.InstallPlan
	versions      []*v1alpha1.ClusterServiceVersion
	groups        []*operatorsv1.OperatorGroup
	namespace     []*corev1.Namespace
}

// places sorts what was read by namespace. Only namespaces with a Subscription, an InstallPlan or a
// ClusterServiceVersion that is no copy have metrics.
func (s *scrape) places() []*place {
	all := map[string]*place{}
	of := func(name string) *place {
		if all[name] == nil {
			all[name] = &place{name: name}
		}
		return all[name]
	}
	for name, items := range byNamespace(s.subscriptions.Items) {
		of(name).subscriptions = items
	}
	for name, items := range byNamespace(s.plans.Items) {
		of(name).plans = items
	}
	for name, items := range byNamespace(s.versions.Items) {
		if slices.ContainsFunc(items, func(c *v1alpha1.ClusterServiceVersion) bool { return !c.IsCopied() }) || all[name] != nil {
			of(name).versions = items
		}
	}
	for name, items := range byNamespace(s.groups.Items) {
		if all[name] != nil {
			all[name].groups = items
		}
	}
	for _, n := range s.theNamespaces.Items {
		if all[n.Name] != nil {
			all[n.Name].namespace = []*corev1.Namespace{n}
		}
	}
	sorted := make([]*place, 0, len(all))
	for _, p := range all {
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b *place) int { return strings.Compare(a.name, b.name) })
	return sorted
}

// byNamespace cuts a list that is sorted by namespace.
func byNamespace[T olmcore.Object](items []T) func(yield func(string, []T) bool) {
	return func(yield func(string, []T) bool) {
		for len(items) > 0 {
			name := items[0].GetNamespace()
			end := slices.IndexFunc(items, func(o T) bool { return o.GetNamespace() != name })
			if end < 0 {
				end = len(items)
			}
			if !yield(name, items[:end:end]) {
				return
			}
			items = items[end:]
		}
	}
}

func keyOf(o olmcore.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
