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
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Catalogs is what is known of the catalogs that a namespace is resolved from.
type Catalogs struct {
	// Sources are all CatalogSources of the namespace and of the global catalog namespace.
	Sources olmcore.Observed[*v1alpha1.CatalogSource]
	// Probes says which registries answer, by namespace and name of the CatalogSource. Of one without an entry its
	// status.connectionState decides: it is healthy when that is READY.
	Probes map[types.NamespacedName]Probe
	// Entries are the bundles of the packages that the Subscriptions name, with what their catalogs say of their
	// deprecation; nil when that is not known. They must not be changed once they were handed in.
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
	// PackageDeprecation, ChannelDeprecation and BundleDeprecation are what the catalog says to those who use it, as it
	// says it; nil where it is not deprecated.
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

// compareTexts orders texts, nil first.
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

// catalogs is Catalogs in order: sources by namespace and name, and of several entries that are about the same the first.
type catalogs struct {
	sources []source
	entries map[Entry]Entry // by what they are about; without a channel: about any
}

// source is a CatalogSource, and whether it serves: known says whether that is known, and problem why not.
type source struct {
	*v1alpha1.CatalogSource
	healthy, known bool
	problem        string
}

func newCatalogs(in *Catalogs) *catalogs {
	if in == nil {
		return nil
	}
	c := &catalogs{sources: make([]source, 0, len(in.Sources.Items)), entries: map[Entry]Entry{}}
	for _, s := range relation.Sorted(in.Sources.Items) {
		state, next := s.Status.GRPCConnectionState, source{CatalogSource: s, known: true}
		switch p, ok := in.Probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]; {
		case s.Status.Reason == v1alpha1.CatalogSourceSpecInvalidError:
		case ok:
			next.healthy, next.known, next.problem = p.Healthy, p.Error == "", p.Error
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

// unprobed reports the sources of which it is not known whether they serve.
func (c *catalogs) unprobed() (said []olmcore.Diagnostic) {
	for _, s := range c.sources {
		if !s.known {
			said = append(said, olmcore.Diagnose(olmcore.Warning, ReasonCatalogProbeError, olmcore.RefOf(s.CatalogSource), "",
				"the registry could not be probed: %s", s.problem))
		}
	}
	return said
}

// catalogsHealth is the health of the catalogs as one Subscription records it.
type catalogsHealth struct {
	isKnown bool
	// list is what status.catalogHealth should be: as it is unless changed.
	list    []v1alpha1.SubscriptionCatalogHealth
	changed bool
	// unhealthy are their names. isThere, isServing: so is the one that the Subscription names.
	unhealthy          []string
	isThere, isServing bool
}

// health judges the catalogs for a Subscription. Where it is not known whether a source serves, what is recorded of it
// stands: by UID, and by name where there is none. An entry that says the same as before keeps its time.
func (c *catalogs) health(s *v1alpha1.Subscription, now time.Time) catalogsHealth {
	recorded, kept := s.Status.CatalogHealth, 0
	h := catalogsHealth{isKnown: true, list: slices.Grow([]v1alpha1.SubscriptionCatalogHealth(nil), len(c.sources))}
	for _, source := range c.sources {
		i := slices.IndexFunc(recorded, func(r v1alpha1.SubscriptionCatalogHealth) bool {
			ref := r.CatalogSourceRef
			return ref != nil && ref.UID == source.UID && (source.UID != "" || ref.Name == source.Name && ref.Namespace == source.Namespace)
		})
		healthy := source.healthy
		if !source.known {
			healthy = i >= 0 && recorded[i].Healthy
		}
		if !healthy {
			h.unhealthy = append(h.unhealthy, source.Namespace+"/"+source.Name)
		}
		if source.Name == s.Spec.CatalogSource && source.Namespace == s.Spec.CatalogSourceNamespace {
			h.isThere, h.isServing = true, healthy
		}
		if i >= 0 && recorded[i].Healthy == healthy && recorded[i].LastUpdated != nil {
			kept++
			h.list = append(h.list, recorded[i])
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
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, catalogHealth and UpdateHealth.
// Differs: every change of health shows, with the lasting reason at once; the message names what is unhealthy; no
// change writes nothing, also without catalogs; a probe that fails changes nothing.
func (h *catalogsHealth) condition(spec *v1alpha1.SubscriptionSpec) want {
	const found = v1alpha1.UnhealthyCatalogSourceFound
	switch target := spec.CatalogSourceNamespace + "/" + spec.CatalogSource; {
	case len(h.list) == 0:
		return present(v1alpha1.NoCatalogSourcesFound, "dependency resolution requires at least one catalogsource")
	case !h.isThere:
		return present(found, "targeted catalogsource "+target+" missing")
	case len(h.unhealthy) == 0:
		return want{decided: true, status: corev1.ConditionFalse, reason: v1alpha1.AllCatalogSourcesHealthy, message: "all available catalogsources are healthy"}
	case !h.isServing:
		return present(found, "targeted catalogsource "+target+" unhealthy")
	case len(h.unhealthy) == 1:
		return present(found, "catalogsource "+h.unhealthy[0]+" unhealthy")
	}
	return present(found, "catalogsources "+strings.Join(h.unhealthy, ", ")+" unhealthy")
}

// deprecation is what the conditions say of the package, channel and bundle that are installed, and of all three.
type deprecation struct {
	known                     bool
	pkg, channel, bundle, all want
}

// deprecation returns what is said of the deprecation of what is installed; it is not known when the catalog has no
// entry for it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, updateDeprecatedStatus. Differs: a
// deprecation without a message shows too, and a summary that was lost comes back.
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
