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

	"github.com/olmcore/olm/olmcore"
)

// probeRetry is the time after which a catalog is probed again whose probe failed.
const probeRetry = 5 * time.Second

// Catalogs is what is known of the catalogs that a namespace is resolved from.
type Catalogs struct {
	// Sources are all CatalogSources of the namespace and of the global catalog
	// namespace.
	Sources olmcore.Observed[*v1alpha1.CatalogSource]
	// Probes says which registries answer, by namespace and name of the
	// CatalogSource. Of one without an entry its status.connectionState decides: it
	// is healthy when that is READY.
	Probes map[types.NamespacedName]Probe
	// Entries are the bundles of the packages that the Subscriptions name, with
	// what their catalogs say of their deprecation; nil when that is not known. They
	// must not be changed once they were handed in.
	Entries []Entry
}

// Probe is the result of asking a registry whether it serves.
type Probe struct {
	Healthy bool
	// Error is why it is not known, empty when it is.
	Error string
}

// Entry is one bundle of a channel of a package in a catalog.
type Entry struct {
	Catalog                  types.NamespacedName
	Package, Channel, Bundle string
	// PackageDeprecation, ChannelDeprecation and BundleDeprecation are what the
	// catalog says to those who use it, as it says it; nil where it is not deprecated.
	PackageDeprecation, ChannelDeprecation, BundleDeprecation *string
}

func (cs *Catalogs) cover(c *olmcore.Coverage) {
	if olmcore.CoverValue(c, cs != nil); cs == nil {
		return
	}
	olmcore.CoverObjects(c, cs.Sources)
	olmcore.CoverMap(c, cs.Probes)
	olmcore.CoverFunc(c, cs.Entries, func(a, b []Entry) bool {
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

func compareTexts(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return strings.Compare(*a, *b)
}

// catalogs is Catalogs in order: sources by namespace and name, entries by what they are
// about.
type catalogs struct {
	sources []*v1alpha1.CatalogSource
	probes  map[types.NamespacedName]Probe
	entries map[installedBundle]Entry
}

// installedBundle is what a Subscription has from a catalog; an empty channel is any.
type installedBundle struct {
	catalog              types.NamespacedName
	pkg, channel, bundle string
}

func newCatalogs(in *Catalogs) *catalogs {
	if in == nil {
		return nil
	}
	c := &catalogs{sources: slices.Clone(in.Sources.Items), probes: in.Probes, entries: map[installedBundle]Entry{}}
	slices.SortFunc(c.sources, compareSources)
	for _, e := range slices.SortedFunc(slices.Values(in.Entries), compareEntries) {
		for _, channel := range []string{e.Channel, ""} { // the first one of several counts
			key := installedBundle{e.Catalog, e.Package, channel, e.Bundle}
			if _, found := c.entries[key]; !found {
				c.entries[key] = e
			}
		}
	}
	return c
}

func compareSources(a, b *v1alpha1.CatalogSource) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (c *catalogs) probe(s *v1alpha1.CatalogSource) (healthy, known bool) {
	if s.Status.Reason == v1alpha1.CatalogSourceSpecInvalidError {
		return false, true
	}
	if p, ok := c.probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]; ok {
		return p.Healthy, p.Error == ""
	}
	state := s.Status.GRPCConnectionState
	return state != nil && state.LastObservedState == "READY", true
}

// unprobed reports the sources of which it is not known whether they serve.
func (c *catalogs) unprobed() (said []olmcore.Diagnostic) {
	for _, s := range c.sources {
		if _, known := c.probe(s); !known {
			said = append(said, olmcore.Diagnose(olmcore.Warning, ReasonCatalogProbeError, olmcore.RefOf(s), "",
				"the registry could not be probed: %s", c.probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}].Error))
		}
	}
	return said
}

// recordOf returns what is recorded of a source, by UID and by name where there is none;
// nil when nothing is.
func recordOf(s *v1alpha1.CatalogSource, recorded []v1alpha1.SubscriptionCatalogHealth) *v1alpha1.SubscriptionCatalogHealth {
	i := slices.IndexFunc(recorded, func(r v1alpha1.SubscriptionCatalogHealth) bool {
		ref := r.CatalogSourceRef
		return ref != nil && ref.UID == s.UID && (s.UID != "" || ref.Name == s.Name && ref.Namespace == s.Namespace)
	})
	if i < 0 {
		return nil
	}
	return &recorded[i]
}

// catalogsHealth is the health of the catalogs as one Subscription records it.
type catalogsHealth struct {
	// list is what status.catalogHealth should be: as it is unless changed.
	list      []v1alpha1.SubscriptionCatalogHealth
	changed   bool
	unhealthy []*v1alpha1.CatalogSource
	target    *v1alpha1.CatalogSource // nil: it is not there
}

// health judges the catalogs for a Subscription. Where it is not known whether a source
// serves, what is recorded of it stands. An entry that says the same as before keeps its
// time.
func (c *catalogs) health(s *v1alpha1.Subscription, now time.Time) catalogsHealth {
	recorded := s.Status.CatalogHealth
	var h catalogsHealth
	kept := 0
	for _, source := range c.sources {
		healthy, known := c.probe(source)
		r := recordOf(source, recorded)
		if !known {
			healthy = r != nil && r.Healthy
		}
		if !healthy {
			h.unhealthy = append(h.unhealthy, source)
		}
		if source.Name == s.Spec.CatalogSource && source.Namespace == s.Spec.CatalogSourceNamespace {
			h.target = source
		}
		if r != nil && r.Healthy == healthy && r.LastUpdated != nil {
			kept++
			h.list = append(h.list, *r)
			continue
		}
		h.list = append(h.list, v1alpha1.SubscriptionCatalogHealth{
			CatalogSourceRef: &corev1.ObjectReference{
				APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind,
				Namespace: source.Namespace, Name: source.Name, UID: source.UID, ResourceVersion: source.ResourceVersion,
			},
			LastUpdated: new(olmcore.Timestamp(now)), Healthy: healthy,
		})
	}
	if h.changed = kept != len(c.sources) || kept != len(recorded); !h.changed {
		h.list = recorded
	}
	return h
}

// condition returns what CatalogSourcesUnhealthy says.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// catalogHealth and UpdateHealth. Differs: every change of health shows, with the lasting
// reason at once; the message names what is unhealthy; no change writes nothing, also
// without catalogs; a probe that fails changes nothing.
func (h *catalogsHealth) condition(spec *v1alpha1.SubscriptionSpec) want {
	target := spec.CatalogSourceNamespace + "/" + spec.CatalogSource
	switch {
	case len(h.list) == 0:
		return present(v1alpha1.NoCatalogSourcesFound, "dependency resolution requires at least one catalogsource")
	case h.target == nil:
		return present(v1alpha1.UnhealthyCatalogSourceFound, "targeted catalogsource "+target+" missing")
	case len(h.unhealthy) == 0:
		return want{decided: true, status: corev1.ConditionFalse, reason: v1alpha1.AllCatalogSourcesHealthy, message: "all available catalogsources are healthy"}
	case slices.Contains(h.unhealthy, h.target):
		return present(v1alpha1.UnhealthyCatalogSourceFound, "targeted catalogsource "+target+" unhealthy")
	}
	names := make([]string, len(h.unhealthy))
	for i, s := range h.unhealthy {
		names[i] = s.Namespace + "/" + s.Name
	}
	which := "catalogsource "
	if len(names) > 1 {
		which = "catalogsources "
	}
	return present(v1alpha1.UnhealthyCatalogSourceFound, which+strings.Join(names, ", ")+" unhealthy")
}

// change says what changed since the health was recorded.
func (h *catalogsHealth) change(recorded []v1alpha1.SubscriptionCatalogHealth) string {
	switch n := len(h.list) - len(recorded); {
	case n > 0:
		return v1alpha1.CatalogSourcesAdded
	case n < 0:
		return v1alpha1.CatalogSourcesDeleted
	}
	return v1alpha1.CatalogSourcesUpdated
}

// deprecation is what the catalog says of the package, channel and bundle that are
// installed, nil where it says nothing, each message after what it is about.
type deprecation struct {
	known                bool
	pkg, channel, bundle *string
}

// deprecation returns what is said of the deprecation of what is installed; it is not
// known when the catalog has no entry for it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// updateDeprecatedStatus. Differs: a deprecation without a message shows too, and a
// summary that was lost comes back.
func (c *catalogs) deprecation(spec *v1alpha1.SubscriptionSpec, installed string) deprecation {
	catalog := types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}
	e, found := c.entries[installedBundle{catalog, spec.Package, spec.Channel, installed}]
	if installed == "" || !found {
		return deprecation{}
	}
	d := deprecation{
		known: true, pkg: about("olm.package/"+e.Package, e.PackageDeprecation),
		bundle: about("olm.bundle/"+e.Bundle, e.BundleDeprecation),
	}
	if spec.Channel != "" {
		d.channel = about("olm.channel/"+e.Channel, e.ChannelDeprecation)
	}
	return d
}

func about(what string, text *string) *string {
	if text == nil {
		return nil
	}
	return new(what + ": " + *text)
}

// all returns the three messages as one, nil when there is none.
func (d *deprecation) all() *string {
	var texts []string
	for _, text := range []*string{d.pkg, d.channel, d.bundle} {
		if text != nil {
			texts = append(texts, *text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return new(strings.Join(texts, "; "))
}

// want returns what the condition with one of the messages should be.
func (d *deprecation) want(text *string) want {
	switch {
	case !d.known:
		return want{}
	case text == nil:
		return absent
	}
	return present("", *text)
}
