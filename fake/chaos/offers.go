// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// catalogKey is the CatalogSource that all Subscriptions of the tenants use.
var catalogKey = types.NamespacedName{Namespace: "olm", Name: "community"}

// maxVersions is how many versions of a package a history publishes, and maxRacingVersions how many one with Races
// does.
const (
	maxVersions       = 6
	maxRacingVersions = 11
)

// offer is what the catalog offers of a package: in two channels with the same versions, of which one is the default.
type offer struct {
	channel  string
	versions []version
}

// version is a version of a package that was published once.
type version struct {
	number int
	// skips: every older version upgrades to this one, and the channel does not offer the version before it any more.
	skips bool
	// withdrawn: the catalog does not offer it at this time.
	withdrawn bool
}

// head returns the number of the newest version that the catalog offers.
func (o *offer) head() (number int) {
	for _, v := range o.versions {
		if !v.withdrawn {
			number = v.number
		}
	}
	return number
}

// publish adds a version.
func (o *offer) publish(skips bool) {
	o.versions = append(o.versions, version{number: len(o.versions) + 1, skips: skips})
}

// entries returns the entries of a channel: each version replaces the one before it.
func (o *offer) entries(name string) (entries []resolution.ChannelEntry) {
	for _, v := range o.versions {
		if v.withdrawn {
			continue
		}
		e := resolution.ChannelEntry{Name: operators.Name(name, v.number)}
		if before := len(entries) - 1; before >= 0 {
			e.Replaces = entries[before].Name
		}
		if v.skips {
			e.SkipRange = fmt.Sprintf("<%d.0.0", v.number)
		}
		if before := len(entries) - 1; v.skips && before > 0 {
			e.Replaces, e.Skips = entries[before-1].Name, []string{entries[before].Name}
		}
		entries = append(entries, e)
	}
	return entries
}

// build makes the catalog's content from the offers. A manager reads it later.
func (h *History) build() {
	var all []resolution.Package
	for _, name := range packages {
		o := h.offers[name]
		p := resolution.Package{Name: name, DefaultChannel: o.channel, Channels: []resolution.Channel{{Name: "stable", Entries: o.entries(name)}}}
		if h.Races {
			p.Channels = append(p.Channels, resolution.Channel{Name: "fast", Entries: o.entries(name)})
		}
		for _, v := range o.versions {
			if v.withdrawn {
				continue
			}
			bundle := olmcore.Bundle{Objects: h.objects(name, v.number), Properties: h.properties(name, v.number)}
			p.Bundles = append(p.Bundles, resolution.Bundle{Name: operators.Name(name, v.number), Bundle: bundle})
		}
		all = append(all, p)
	}
	content, problems := resolution.Build(all)
	if len(problems) > 0 {
		panic(fmt.Sprint(problems))
	}
	h.content = content
}

// objects are those of a version: with Races also a ConfigMap, which shows what version wrote it last.
func (h *History) objects(name string, number int) []olmcore.Object {
	objects := operators.Bundle(name, number)
	if !h.Races {
		return objects
	}
	return append(slices.Clone(objects), &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name + settingsSuffix}, Data: map[string]string{"version": fmt.Sprint(number)},
	})
}

// settingsSuffix ends the name of the ConfigMap of a package.
const settingsSuffix = "-settings"

func (h *History) properties(name string, version int) []olmcore.Property {
	value := func(format string, args ...any) json.RawMessage { return json.RawMessage(fmt.Sprintf(format, args...)) }
	all := []olmcore.Property{
		{Type: resolution.PropertyPackage, Value: value(`{"packageName":%q,"version":"%d.0.0"}`, name, version)},
		{Type: resolution.PropertyGVK, Value: value(`{"group":"example.com","version":"v1","kind":%q}`, name)},
	}
	if name == "gamma" || h.Races && name == "beta" && version%2 == 0 {
		required := value(`{"group":"example.com","version":"v1","kind":"alpha"}`)
		all = append(all, olmcore.Property{Type: resolution.PropertyGVKRequired, Value: required})
	}
	return all
}

// stepPublish publishes a version of a package, for both managers at once.
func stepPublish(h *History, r Choices) {
	o := h.offers[pick(r, packages)]
	if o.head() == maxVersions || h.Races {
		return
	}
	h.Figures.Published++
	o.publish(false)
	h.build()
	for _, m := range h.managers {
		m.readCatalog()
	}
}
