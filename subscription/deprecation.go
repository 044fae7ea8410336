// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Entry is one bundle of a channel of a package in a catalog.
type Entry struct {
	Catalog                  types.NamespacedName
	Package, Channel, Bundle string
	// PackageDeprecation, ChannelDeprecation and BundleDeprecation are what the
	// catalog says to those who use it, as it says it; nil where it is not deprecated.
	PackageDeprecation, ChannelDeprecation, BundleDeprecation *string
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
	if a == nil || b == nil {
		return compareBools(a != nil, b != nil)
	}
	return strings.Compare(*a, *b)
}

// deprecationTypes are the conditions about deprecation: the three levels, and
// the one that sums them up.
var deprecationTypes = [...]v1alpha1.SubscriptionConditionType{
	v1alpha1.SubscriptionPackageDeprecated, v1alpha1.SubscriptionChannelDeprecated, v1alpha1.SubscriptionBundleDeprecated,
	v1alpha1.SubscriptionDeprecated,
}

// deprecation is what those conditions should be; as they are unless judged.
type deprecation struct {
	judged  bool
	present [len(deprecationTypes)]bool
	message [len(deprecationTypes)]string
}

func (p *deprecation) wish(t v1alpha1.SubscriptionConditionType) wish {
	if !p.judged {
		return wish{keep: true}
	}
	for i := range deprecationTypes {
		if deprecationTypes[i] == t && p.present[i] {
			return wish{conditionType: t, message: p.message[i]}
		}
	}
	return wish{}
}

// grants reports whether a condition about deprecation says what it should.
func (p *deprecation) grants(c *v1alpha1.SubscriptionCondition) bool {
	w := p.wish(c.Type)
	return w.is(c)
}

func (p *deprecation) lacks(have []v1alpha1.SubscriptionCondition) bool {
	for i, t := range deprecationTypes {
		if p.present[i] && first(have, t) < 0 {
			return true
		}
	}
	return false
}

// judgeDeprecation decides what is said of the deprecation of what is installed: each
// message of the catalog, after what it is about.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// updateDeprecatedStatus. Differs: a deprecation without a message shows too, and
// a summary that was lost comes back.
func (v *view) judgeDeprecation(d *verdict) {
	if !v.catalogs.given {
		return
	}
	e := v.entry(d)
	if e == nil {
		have := d.sub.Status.Conditions
		for i := range have {
			if groupOf(have[i].Type) == groupDeprecation {
				d.report(info, ReasonDeprecationUnknown, "status.conditions", "the catalog has no entry for ", d.installedCSV)
				return
			}
		}
		return
	}
	p := &d.deprecation
	p.judged = true
	levels := [...]*string{e.PackageDeprecation, e.ChannelDeprecation, e.BundleDeprecation}
	if d.sub.Spec.Channel == "" {
		levels[1] = nil
	}
	about := [...][2]string{{"olm.package/", e.Package}, {"olm.channel/", e.Channel}, {"olm.bundle/", e.Bundle}}
	var parts [2*len(levels) - 1]string
	n := 0
	for i, text := range levels {
		if text == nil {
			continue
		}
		p.present[i], p.message[i] = true, joined(d.said(deprecationTypes[i]), about[i][0], about[i][1], ": ", *text)
		if n > 0 {
			parts[n] = "; "
			n++
		}
		parts[n] = p.message[i]
		n++
	}
	if n > 0 {
		last := len(deprecationTypes) - 1
		p.present[last], p.message[last] = true, joined(d.said(v1alpha1.SubscriptionDeprecated), parts[:n]...)
	}
}

// entry returns the catalog's entry for what is installed; nil when there is none.
func (v *view) entry(d *verdict) *Entry {
	spec, entries := d.sub.Spec, v.catalogs.entries
	if d.installedCSV == "" || len(entries) == 0 {
		return nil
	}
	want := Entry{Catalog: types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}, Package: spec.Package, Channel: spec.Channel}
	i, _ := slices.BinarySearchFunc(entries, want, compareEntries)
	for ; i < len(entries); i++ {
		e := &entries[i]
		if e.Catalog != want.Catalog || e.Package != want.Package || want.Channel != "" && e.Channel != want.Channel {
			return nil
		}
		if e.Bundle == d.installedCSV {
			return e
		}
	}
	return nil
}
