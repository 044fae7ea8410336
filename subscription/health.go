// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// probeRetry is the pause before a catalog is probed again whose probe failed.
const probeRetry = 5 * time.Second

// Catalogs is what is known of the catalogs that a namespace is resolved from.
type Catalogs struct {
	// Sources are all CatalogSources of the namespace and of the global catalog
	// namespace. Sorted by namespace and name, as GatherCatalogs leaves them, they
	// are not copied.
	Sources []*v1alpha1.CatalogSource
	// Probes says which registries answer, by namespace and name of the
	// CatalogSource. Of one without an entry its status.connectionState decides: it
	// is healthy when that is READY.
	Probes map[types.NamespacedName]Probe
	// Entries are the bundles of the packages that the Subscriptions name, with
	// what their catalogs say of their deprecation; nil when nobody knows. Sorted
	// by catalog, package, channel and bundle they are not copied.
	Entries []Entry
}

// Probe is the result of asking a registry whether it serves.
type Probe struct {
	Healthy bool
	// Error is why it is not known, empty when it is.
	Error string
}

// catalogs is Catalogs, checked and sorted.
type catalogs struct {
	given   bool
	sources []*v1alpha1.CatalogSource
	probes  map[types.NamespacedName]Probe
	entries []Entry
	// The health of the first 64 sources, a bit for each.
	healthy, unknown uint64
	failed           bool // some probe failed
	// How many sources do not serve, and one of them; of no use while a probe
	// failed, as then the Subscriptions may differ in it.
	unhealthy, oneUnhealthy int
	lastTarget              int // where the last search ended
}

func (c *catalogs) fill(in *Catalogs) error {
	c.given, c.sources, c.probes, c.entries = true, in.Sources, in.Probes, in.Entries
	var healthy, unknown uint64
	for i, s := range in.Sources {
		if isBadSource(s) {
			return badSource(i)
		}
		if i > 0 && !comesBefore(in.Sources[i-1], s) {
			sorted := *in
			var err error
			if sorted.Sources, err = sortedSources(in.Sources); err != nil {
				return err
			}
			*c = catalogs{}
			return c.fill(&sorted)
		}
		switch serves, known := c.probe(s); {
		case !known:
			unknown |= 1 << i // nothing beyond the 64th
			c.failed = true
		case serves:
			healthy |= 1 << i
		default:
			c.unhealthy, c.oneUnhealthy = c.unhealthy+1, i
		}
	}
	c.healthy, c.unknown = healthy, unknown
	if len(c.entries) > 0 && !slices.IsSortedFunc(c.entries, compareEntries) {
		c.entries = slices.Clone(c.entries)
		slices.SortFunc(c.entries, compareEntries)
	}
	return nil
}

func comesBefore(a, b *v1alpha1.CatalogSource) bool {
	if a.Namespace != b.Namespace {
		return a.Namespace < b.Namespace
	}
	return a.Name < b.Name
}

// sortedSources returns a sorted copy of a list that is not.
func sortedSources(list []*v1alpha1.CatalogSource) ([]*v1alpha1.CatalogSource, error) {
	order := func(a, b *v1alpha1.CatalogSource) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}
	if i := slices.IndexFunc(list, isBadSource); i >= 0 {
		return nil, badSource(i)
	}
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	for i, s := range list[1:] {
		if order(s, list[i]) == 0 {
			return nil, &olmcore.InputError{Field: "Catalogs.Sources", Problem: fmt.Sprintf("holds %s/%s twice", s.Namespace, s.Name)}
		}
	}
	return list, nil
}

func isBadSource(s *v1alpha1.CatalogSource) bool {
	return s == nil || s.Name == "" || s.Namespace == ""
}

func badSource(i int) error {
	return badItem("Catalogs.Sources", i, "is nil or has no name or namespace")
}

func (c *catalogs) probe(s *v1alpha1.CatalogSource) (healthy, known bool) {
	if s.Status.Reason == v1alpha1.CatalogSourceSpecInvalidError {
		return false, true
	}
	if len(c.probes) > 0 {
		if p, ok := c.probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]; ok {
			return p.Healthy, p.Error == ""
		}
	}
	state := s.Status.GRPCConnectionState
	return state != nil && state.LastObservedState == "READY", true
}

// isHealthy returns the health of a source; where that is not known, the one that
// is recorded.
func (c *catalogs) isHealthy(i int, recorded []v1alpha1.SubscriptionCatalogHealth) bool {
	healthy, known := c.healthy>>i&1 == 1, c.unknown>>i&1 == 0
	if i >= 64 {
		healthy, known = c.probe(c.sources[i])
	}
	if known {
		return healthy
	}
	r := recordOf(c.sources[i], i, recorded)
	return r != nil && r.Healthy
}

// recordOf returns what is recorded of a source, most likely at position i; nil
// when nothing is.
func recordOf(s *v1alpha1.CatalogSource, i int, recorded []v1alpha1.SubscriptionCatalogHealth) *v1alpha1.SubscriptionCatalogHealth {
	if i < len(recorded) && isRecordOf(&recorded[i], s) {
		return &recorded[i]
	}
	for j := range recorded {
		if isRecordOf(&recorded[j], s) {
			return &recorded[j]
		}
	}
	return nil
}

// isRecordOf compares by UID, and by name where there is none.
func isRecordOf(r *v1alpha1.SubscriptionCatalogHealth, s *v1alpha1.CatalogSource) bool {
	ref := r.CatalogSourceRef
	if ref == nil || ref.UID != s.UID {
		return false
	}
	return s.UID != "" || ref.Name == s.Name && ref.Namespace == s.Namespace
}

// judgeHealth decides status.catalogHealth and CatalogSourcesUnhealthy.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// catalogHealth and UpdateHealth. Differs: every change of health shows; the
// message names what is unhealthy; no change writes nothing, also without
// catalogs; a probe that fails changes nothing and stops nobody.
func (v *view) judgeHealth(d *verdict) {
	c := &v.catalogs
	if !c.given {
		return
	}
	recorded, spec := d.sub.Status.CatalogHealth, d.sub.Spec
	d.healthChanged = !c.isRecorded(recorded)
	d.health.keep, d.health.conditionType, d.health.reason = false, v1alpha1.SubscriptionCatalogSourcesUnhealthy, v1alpha1.UnhealthyCatalogSourceFound
	target := c.target(spec)
	switch count, one := c.countUnhealthy(recorded); {
	case len(c.sources) == 0:
		d.health.reason, d.health.message = v1alpha1.NoCatalogSourcesFound, "dependency resolution requires at least one catalogsource"
	case target < 0:
		d.health.message = joined(d.saidOfHealth(), "targeted catalogsource ", spec.CatalogSourceNamespace, "/", spec.CatalogSource, " missing")
	case count == 0:
		d.health.off, d.health.reason, d.health.message = true, v1alpha1.AllCatalogSourcesHealthy, "all available catalogsources are healthy"
	case !c.isHealthy(target, recorded):
		d.health.message = joined(d.saidOfHealth(), "targeted catalogsource ", spec.CatalogSourceNamespace, "/", spec.CatalogSource, " unhealthy")
	case count == 1:
		d.health.message = joined(d.saidOfHealth(), "catalogsource ", c.sources[one].Namespace, "/", c.sources[one].Name, " unhealthy")
	default:
		d.health.message = "catalogsources " + c.unhealthyNames(recorded) + " unhealthy"
	}
	if !d.healthChanged {
		return
	}
	what := v1alpha1.CatalogSourcesUpdated
	switch n := len(c.sources) - len(recorded); {
	case n > 0:
		what = v1alpha1.CatalogSourcesAdded
	case n < 0:
		what = v1alpha1.CatalogSourcesDeleted
	}
	d.report(info, ReasonCatalogsChanged, "status.catalogHealth", "the catalogs are others than before, or their health is: ", what)
	if v.config.UpstreamCatalogReasons && len(c.sources) > 0 {
		d.health.reason = what
	}
}

// isRecorded reports whether a record says of each source how it is.
func (c *catalogs) isRecorded(recorded []v1alpha1.SubscriptionCatalogHealth) bool {
	if len(recorded) != len(c.sources) {
		return false
	}
	certain := !c.failed && len(c.sources) <= 64
	for i, s := range c.sources {
		r := &recorded[i]
		if !isRecordOf(r, s) {
			if r = recordOf(s, i, recorded); r == nil {
				return false
			}
		}
		healthy := c.healthy>>i&1 == 1
		if !certain {
			healthy = c.isHealthy(i, recorded)
		}
		if r.LastUpdated == nil || r.Healthy != healthy {
			return false
		}
	}
	return true
}

// target returns the position of the source that a Subscription names, -1 when it
// is not there. Most name the one that the last one named.
func (c *catalogs) target(spec *v1alpha1.SubscriptionSpec) int {
	if c.lastTarget < len(c.sources) && isTarget(c.sources[c.lastTarget], spec) {
		return c.lastTarget
	}
	for i, s := range c.sources {
		if isTarget(s, spec) {
			c.lastTarget = i
			return i
		}
	}
	return -1
}

func isTarget(s *v1alpha1.CatalogSource, spec *v1alpha1.SubscriptionSpec) bool {
	return s.Name == spec.CatalogSource && s.Namespace == spec.CatalogSourceNamespace
}

// countUnhealthy returns how many sources do not serve, and one of them.
func (c *catalogs) countUnhealthy(recorded []v1alpha1.SubscriptionCatalogHealth) (count, one int) {
	if !c.failed {
		return c.unhealthy, c.oneUnhealthy
	}
	for i := range c.sources {
		if !c.isHealthy(i, recorded) {
			count, one = count+1, i
		}
	}
	return count, one
}

// unhealthyNames lists the catalogs that do not serve, in order.
func (c *catalogs) unhealthyNames(recorded []v1alpha1.SubscriptionCatalogHealth) string {
	var names []string
	for i, s := range c.sources {
		if !c.isHealthy(i, recorded) {
			names = append(names, s.Namespace+"/"+s.Name)
		}
	}
	return strings.Join(names, ", ")
}

// catalogHealth returns the list for the status. An entry that says the same as
// before keeps its time.
func (v *view) catalogHealth(recorded []v1alpha1.SubscriptionCatalogHealth) []v1alpha1.SubscriptionCatalogHealth {
	var list []v1alpha1.SubscriptionCatalogHealth
	for i, s := range v.catalogs.sources {
		healthy := v.catalogs.isHealthy(i, recorded)
		if r := recordOf(s, i, recorded); r != nil && r.Healthy == healthy && r.LastUpdated != nil {
			list = append(list, *r.DeepCopy())
			continue
		}
		list = append(list, v1alpha1.SubscriptionCatalogHealth{
			CatalogSourceRef: &corev1.ObjectReference{
				APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind,
				Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
			},
			LastUpdated: new(olmcore.Timestamp(v.now)), Healthy: healthy,
		})
	}
	return list
}

// reportProbes says which catalogs could not be probed.
func (v *view) reportProbes(out *Outcome) {
	c := &v.catalogs
	for _, s := range c.sources {
		if _, known := c.probe(s); !known {
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnostic{
				Severity: warning, Reason: ReasonCatalogProbeError, Target: olmcore.RefOf(s).Unversioned(),
				Message: "the registry could not be probed: " + c.probes[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}].Error,
			})
		}
	}
	out.Requeue(probeRetry)
}

func (d *verdict) saidOfHealth() string {
	return d.said(v1alpha1.SubscriptionCatalogSourcesUnhealthy)
}

// said returns the message of a condition, empty when there is none.
func (d *verdict) said(t v1alpha1.SubscriptionConditionType) string {
	if i := newest(d.sub.Status.Conditions, t); i >= 0 {
		return d.sub.Status.Conditions[i].Message
	}
	return ""
}

// joined returns the parts as one string: have itself, without making another,
// when it says the same.
func joined(have string, parts ...string) string {
	rest, same := have, true
	for _, p := range parts {
		if rest, same = strings.CutPrefix(rest, p); !same {
			break
		}
	}
	if same && rest == "" {
		return have
	}
	// strings.Join would make the parts escape.
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	text := make([]byte, 0, n)
	for _, p := range parts {
		text = append(text, p...)
	}
	return string(text)
}
