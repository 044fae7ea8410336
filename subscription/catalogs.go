// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Catalogs contains the observed state of the catalogs from which a namespace is resolved.
type Catalogs struct {
	// Sources contains all CatalogSources of the namespace and of the global catalog namespace.
	Sources olmcore.Observed[*v1alpha1.CatalogSource]
	// Probes contains the result of the last request to each registry, by the namespace and name of its CatalogSource. A
	// CatalogSource without an entry is healthy if its status.connectionState is READY.
	Probes map[types.NamespacedName]Probe
	// Entries contains the bundles of the packages that the Subscriptions name, with the deprecations from their catalogs.
	// It is nil if the bundles are not known. The caller must not change the entries after the call.
	Entries []Entry
}

// Probe is the result of a request to a registry.
type Probe struct {
	Healthy bool
	// Error is the reason why the health of the registry is unknown. It is empty if Healthy is known.
	Error string
}

// Entry is one bundle of a channel of a package in a catalog.
type Entry struct {
	Catalog                  types.NamespacedName
	Package, Channel, Bundle string
	// PackageDeprecation, ChannelDeprecation and BundleDeprecation are the messages of the deprecations in the catalog. A
	// message is nil if there is no such deprecation.
	PackageDeprecation, ChannelDeprecation, BundleDeprecation *string
}

// cover passes each field except Sources to a Checkpoint. Input.lists visits Sources.
func (cs *Catalogs) cover(c *checkpoint.Coverage) {
	checkpoint.CoverMap(c, cs.Probes)
	checkpoint.CoverFunc(c, cs.Entries, func(a, b []Entry) bool {
		return slices.EqualFunc(a, b, func(a, b Entry) bool { return compareEntries(a, b) == 0 })
	})
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		strings.Compare(a.Catalog.Namespace, b.Catalog.Namespace), strings.Compare(a.Catalog.Name, b.Catalog.Name),
		strings.Compare(a.Package, b.Package), strings.Compare(a.Channel, b.Channel), strings.Compare(a.Bundle, b.Bundle),
		compareTexts(a.PackageDeprecation, b.PackageDeprecation), compareTexts(a.ChannelDeprecation, b.ChannelDeprecation),
		compareTexts(a.BundleDeprecation, b.BundleDeprecation),
	)
}

// compareTexts compares two texts. A nil text comes first.
func compareTexts(a, b *string) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return strings.Compare(*a, *b)
}

// catalogs is a Catalogs with the sources sorted by namespace and name, and one entry for each package, channel and
// bundle.
type catalogs struct {
	sources []observedSource
	entries map[Entry]Entry // by catalog, package, channel and bundle; the channel may be empty
}

// observedSource contains a CatalogSource and its health.
type observedSource struct {
	*v1alpha1.CatalogSource
	healthy bool   // it serves
	known   bool   // healthy is known
	problem string // why healthy is not known
}

func newCatalogs(in *Catalogs) *catalogs {
	if in == nil {
		return nil
	}
	c := &catalogs{sources: make([]observedSource, 0, len(in.Sources.Items)), entries: map[Entry]Entry{}}
	for _, s := range relation.Sorted(in.Sources.Items) {
		state, next := s.Status.GRPCConnectionState, observedSource{CatalogSource: s, known: true}
		switch p, ok := in.Probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]; {
		case s.Status.Reason == v1alpha1.CatalogSourceSpecInvalidError:
		case ok:
			next.healthy = p.Healthy
			next.known = p.Error == ""
			next.problem = p.Error
		default:
			next.healthy = state != nil && state.LastObservedState == "READY"
		}
		c.sources = append(c.sources, next)
	}
	for _, e := range slices.Backward(slices.SortedFunc(slices.Values(in.Entries), compareEntries)) {
		key := Entry{Catalog: e.Catalog, Package: e.Package, Bundle: e.Bundle}
		c.entries[key] = e
		key.Channel = e.Channel
		c.entries[key] = e
	}
	return c
}

// unprobed returns a Diagnostic for each catalog that could not be probed.
func (c *catalogs) unprobed() (list []olmcore.Diagnostic) {
	for _, s := range c.sources {
		if !s.known {
			list = append(list, olmcore.Diagnose(olmcore.Warning, ReasonCatalogProbeError, olmcore.RefOf(s.CatalogSource), "",
				"the registry could not be probed: %s", s.problem))
		}
	}
	return list
}

// catalogsHealth is the health of the catalogs, as one Subscription records it.
type catalogsHealth struct {
	isKnown bool
	// list is the desired status.catalogHealth, and changed whether it differs from the observed one.
	list    []v1alpha1.SubscriptionCatalogHealth
	changed bool
	// unhealthy contains the names of the catalogs that do not serve.
	unhealthy []string
	// isThere means that the catalog of the Subscription exists, and isServing that it serves.
	isThere, isServing bool
}

// health returns the health of the catalogs for a Subscription. If it is not known whether a catalog serves, the
// recorded health is used. An entry that does not change keeps its time.
func (c *catalogs) health(s *v1alpha1.Subscription, now time.Time) catalogsHealth {
	recorded, kept := s.Status.CatalogHealth, 0
	h := catalogsHealth{isKnown: true, list: slices.Grow([]v1alpha1.SubscriptionCatalogHealth(nil), len(c.sources))}
	for _, source := range c.sources {
		before := source.recordedIn(recorded)
		healthy := source.healthy
		if !source.known {
			healthy = before != nil && before.Healthy
		}
		if !healthy {
			h.unhealthy = append(h.unhealthy, source.Namespace+"/"+source.Name)
		}
		if source.Name == s.Spec.CatalogSource && source.Namespace == s.Spec.CatalogSourceNamespace {
			h.isThere, h.isServing = true, healthy
		}
		if before != nil && before.Healthy == healthy && before.LastUpdated != nil {
			kept++
			h.list = append(h.list, *before)
		} else {
			h.list = append(h.list, source.record(healthy, now))
		}
	}
	h.changed = kept != len(c.sources) || kept != len(recorded)
	if !h.changed {
		h.list = recorded
	}
	return h
}

// recordedIn returns the recorded health of a catalog, or nil. A catalog is found by its UID, or by its name if it
// has none.
func (s *observedSource) recordedIn(list []v1alpha1.SubscriptionCatalogHealth) *v1alpha1.SubscriptionCatalogHealth {
	for i := range list {
		ref := list[i].CatalogSourceRef
		if ref == nil || ref.UID != s.UID {
			continue
		}
		if s.UID != "" || ref.Name == s.Name && ref.Namespace == s.Namespace {
			return &list[i]
		}
	}
	return nil
}

// record returns an entry of status.catalogHealth.
func (s *observedSource) record(healthy bool, now time.Time) v1alpha1.SubscriptionCatalogHealth {
	return v1alpha1.SubscriptionCatalogHealth{
		CatalogSourceRef: &corev1.ObjectReference{
			APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind,
			Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		},
		LastUpdated: new(olmcore.Timestamp(now)), Healthy: healthy,
	}
}

// condition returns the condition CatalogSourcesUnhealthy.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, catalogHealth and UpdateHealth.
// Differs: the condition follows every change of health, with its final reason at once; the message names the unhealthy
// catalogs; nothing is written without a change, even if there are no catalogs; a failed probe changes nothing.
func (h *catalogsHealth) condition(spec *v1alpha1.SubscriptionSpec) want {
	const found = v1alpha1.UnhealthyCatalogSourceFound
	target := spec.CatalogSourceNamespace + "/" + spec.CatalogSource
	switch {
	case len(h.list) == 0:
		return present(v1alpha1.NoCatalogSourcesFound, "dependency resolution requires at least one catalogsource")
	case !h.isThere:
		return present(found, "targeted catalogsource "+target+" missing")
	case len(h.unhealthy) == 0:
		return want{
			decided: true, status: corev1.ConditionFalse, reason: v1alpha1.AllCatalogSourcesHealthy,
			message: "all available catalogsources are healthy",
		}
	case !h.isServing:
		return present(found, "targeted catalogsource "+target+" unhealthy")
	case len(h.unhealthy) == 1:
		return present(found, "catalogsource "+h.unhealthy[0]+" unhealthy")
	}
	return present(found, "catalogsources "+strings.Join(h.unhealthy, ", ")+" unhealthy")
}

// deprecation contains the conditions about the package, channel and bundle that are installed, and about all three.
type deprecation struct {
	known                     bool
	pkg, channel, bundle, all want
}

// deprecation returns the conditions about the installed version. They are not known if the catalog has no entry
// for it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, updateDeprecatedStatus. Differs: a
// deprecation without a message is set, too, and the condition Deprecated is restored if it was removed.
func (c *catalogs) deprecation(spec *v1alpha1.SubscriptionSpec, installed string) deprecation {
	e, found := c.entries[Entry{
		Catalog: types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource},
		Package: spec.Package, Channel: spec.Channel, Bundle: installed,
	}]
	if installed == "" || !found {
		return deprecation{}
	}
	var texts []string
	about := func(what string, text *string) want {
		if text == nil {
			return absent
		}
		texts = append(texts, what+": "+*text)
		return present("", texts[len(texts)-1])
	}
	d := deprecation{known: true, pkg: about("olm.package/"+e.Package, e.PackageDeprecation), channel: absent, all: absent}
	if spec.Channel != "" {
		d.channel = about("olm.channel/"+e.Channel, e.ChannelDeprecation)
	}
	d.bundle = about("olm.bundle/"+e.Bundle, e.BundleDeprecation)
	if len(texts) > 0 {
		d.all = present("", strings.Join(texts, "; "))
	}
	return d
}

// catalogFactsOf returns what is known of the catalogs of a Subscription. It is zero if nothing is.
func catalogFactsOf(f *facts, d draft) catalogFacts {
	if f.n.catalogs == nil {
		return catalogFacts{}
	}
	return catalogFacts{
		health:      f.n.catalogs.health(f.sub, f.n.now),
		deprecation: f.n.catalogs.deprecation(f.sub.Spec, d.status.InstalledCSV),
	}
}

// setCatalogHealth sets status.catalogHealth, and reports what no condition shows.
func setCatalogHealth(f *facts, d draft, known *catalogFacts) draft {
	if !known.health.isKnown {
		return d
	}
	d.status.CatalogHealth, d.catalogsChanged = known.health.list, known.health.changed
	if known.health.changed {
		change := v1alpha1.CatalogSourcesUpdated
		switch n := len(known.health.list) - len(f.sub.Status.CatalogHealth); {
		case n > 0:
			change = v1alpha1.CatalogSourcesAdded
		case n < 0:
			change = v1alpha1.CatalogSourcesDeleted
		}
		d = d.report(f, olmcore.Info, ReasonCatalogsChanged, "status.catalogHealth",
			"the catalogs or their health changed: %s", change)
	}
	if !known.deprecation.known && showsDeprecation(f) {
		d = d.report(f, olmcore.Info, ReasonDeprecationUnknown, "status.conditions",
			"the catalog has no entry for %s", d.status.InstalledCSV)
	}
	return d
}

// showsDeprecation reports whether an observed condition shows a deprecation.
func showsDeprecation(f *facts) bool {
	return slices.ContainsFunc(f.n.table, func(r conditionRow) bool {
		isDeprecation := r.OfCatalogs && r.Type != v1alpha1.SubscriptionCatalogSourcesUnhealthy
		return isDeprecation && newest(f.sub.Status.Conditions, r.Type) != nil
	})
}
