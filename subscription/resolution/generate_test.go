// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// namespace is a small random namespace with its catalogs.
type namespace struct {
	catalogs []catalogSpec
	subs     []*v1alpha1.Subscription
	csvs     []*v1alpha1.ClusterServiceVersion
}

type catalogSpec struct {
	key      types.NamespacedName
	priority int
	packages []resolution.Package
}

func (n *namespace) input() resolution.Input {
	in := resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns"), Subscriptions: n.subs, CSVs: n.csvs}
	for _, c := range n.catalogs {
		content, _ := resolution.Build(c.packages)
		in.Catalogs = append(in.Catalogs, resolution.CatalogState{Key: c.key, Priority: c.priority, Content: content})
	}
	return in
}

// sizes of a random namespace.
type sizes struct{ catalogs, packages, channels, chain, subs, csvs, kinds int }

var small = sizes{catalogs: 2, packages: 3, channels: 2, chain: 3, subs: 3, csvs: 2, kinds: 3}

func drawNamespace(t *rapid.T, s sizes) *namespace {
	n := &namespace{}
	for i := range rapid.IntRange(1, s.catalogs).Draw(t, "catalogs") {
		c := catalogSpec{key: types.NamespacedName{Namespace: rapid.SampledFrom([]string{"global", "ns"}).Draw(t, "catalog namespace"), Name: fmt.Sprintf("cat%d", i)}}
		c.priority = rapid.SampledFrom([]int{0, 0, -5, 5}).Draw(t, "priority")
		for p := range s.packages {
			if i == 0 && p == 0 || rapid.Bool().Draw(t, "has package") {
				c.packages = append(c.packages, drawPackage(t, s, fmt.Sprintf("p%d", p)))
			}
		}
		n.catalogs = append(n.catalogs, c)
	}
	used := map[string]bool{}
	for i := range rapid.IntRange(0, s.subs).Draw(t, "subscriptions") {
		n.drawSubscription(t, i, used)
	}
	for range max(0, rapid.IntRange(-s.csvs, s.csvs).Draw(t, "freestanding")) {
		pkg, b := n.drawBundle(t)
		if !used[b.Name] {
			used[b.Name] = true
			n.csvs = append(n.csvs, drawInstalled(t, pkg, b))
		}
	}
	return n
}

func drawPackage(t *rapid.T, s sizes, name string) resolution.Package {
	p := resolution.Package{Name: name}
	versions := rapid.IntRange(1, s.chain).Draw(t, "versions")
	for v := range versions {
		properties := []olmcore.Property{packageProperty(name, fmt.Sprintf("1.%d.0", v))}
		for range rapid.IntRange(0, 2).Draw(t, "facts") {
			properties = append(properties, drawFact(t, s))
		}
		prefix := name
		if rapid.IntRange(0, 3).Draw(t, "borrows a name") == 3 {
			prefix = fmt.Sprintf("p%d", rapid.IntRange(0, s.packages-1).Draw(t, "whose"))
		}
		p.Bundles = append(p.Bundles, bundle(fmt.Sprintf("%s.v1.%d.0", prefix, v), properties...))
	}
	for c := range rapid.IntRange(1, s.channels).Draw(t, "channels") {
		p.Channels = append(p.Channels, drawChannel(t, fmt.Sprintf("c%d", c), p.Bundles))
	}
	p.DefaultChannel = rapid.SampledFrom(p.Channels).Draw(t, "default").Name
	return p
}

func drawFact(t *rapid.T, s sizes) olmcore.Property {
	kind := func() string { return fmt.Sprintf("K%d", rapid.IntRange(0, s.kinds-1).Draw(t, "kind")) }
	pkg := func() string { return fmt.Sprintf("p%d", rapid.IntRange(0, s.packages-1).Draw(t, "package")) }
	versions := func() string {
		return rapid.SampledFrom([]string{">=1.0.0", ">1.0.0", "<1.1.0", "1.1.0", ">5.0.0"}).Draw(t, "range")
	}
	switch rapid.IntRange(0, 9).Draw(t, "fact") {
	case 0, 1, 2, 3:
		return provides(kind())
	case 4, 5:
		return requires(kind())
	case 6:
		return requiresPackage(pkg(), versions())
	case 7:
		return property(resolution.PropertyConstraint, `{"all":{"constraints":[{"gvk":{"group":"g","kind":%q,"version":"v1"}},{"not":{"constraints":[{"package":{"packageName":%q,"versionRange":%q}}]}}]}}`, kind(), pkg(), versions())
	case 8:
		return property(resolution.PropertyConstraint, `{"any":{"constraints":[{"gvk":{"group":"g","kind":%q,"version":"v1"}},{"package":{"packageName":%q,"versionRange":%q}}]}}`, kind(), pkg(), versions())
	}
	return property(resolution.PropertyDeprecated, `{}`)
}

func drawChannel(t *rapid.T, name string, bundles []resolution.Bundle) resolution.Channel {
	ch := resolution.Channel{Name: name}
	first := rapid.IntRange(0, len(bundles)-1).Draw(t, "first")
	last := rapid.IntRange(first, len(bundles)-1).Draw(t, "last")
	for i := first; i <= last; i++ {
		e := resolution.ChannelEntry{Name: bundles[i].Name}
		if i > first {
			e.Replaces = bundles[i-1].Name
			if rapid.IntRange(0, 5).Draw(t, "skips") == 0 {
				e.Skips = []string{bundles[rapid.IntRange(first, i-1).Draw(t, "skipped")].Name}
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "skip range") == 0 {
			e.SkipRange = rapid.SampledFrom([]string{">=1.0.0 <1.1.0", "<1.2.0", ">=1.0.0"}).Draw(t, "skipRange")
		}
		ch.Entries = append(ch.Entries, e)
	}
	return ch
}

func (n *namespace) drawBundle(t *rapid.T) (string, resolution.Bundle) {
	c := rapid.SampledFrom(slices.DeleteFunc(slices.Clone(n.catalogs), func(c catalogSpec) bool { return len(c.packages) == 0 })).Draw(t, "of catalog")
	p := rapid.SampledFrom(c.packages).Draw(t, "of package")
	return p.Name, rapid.SampledFrom(p.Bundles).Draw(t, "bundle")
}

func (n *namespace) drawSubscription(t *rapid.T, i int, used map[string]bool) {
	c := rapid.SampledFrom(n.catalogs).Draw(t, "catalog")
	pkg, channel := "p2", "c1" // perhaps not there
	if len(c.packages) > 0 && rapid.IntRange(0, 19).Draw(t, "astray") > 0 {
		p := rapid.SampledFrom(c.packages).Draw(t, "follows")
		pkg, channel = p.Name, rapid.SampledFrom(p.Channels).Draw(t, "channel").Name
		if rapid.IntRange(0, 4).Draw(t, "any channel") == 0 {
			channel = ""
		}
	}
	s := subscription("ns", fmt.Sprintf("s%d", i), pkg, channel, c.key.String())
	s.CreationTimestamp = metav1.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0)
	index := slices.IndexFunc(c.packages, func(p resolution.Package) bool { return p.Name == pkg })
	if index >= 0 {
		b := rapid.SampledFrom(c.packages[index].Bundles).Draw(t, "its bundle")
		switch rapid.IntRange(0, 3).Draw(t, "state") {
		case 0:
			s.Spec.StartingCSV = b.Name
		case 1, 2:
			if !used[b.Name] {
				used[b.Name] = true
				s.Status.InstalledCSV, s.Status.CurrentCSV = b.Name, b.Name
				n.csvs = append(n.csvs, drawInstalled(t, pkg, b))
			}
		}
	}
	n.subs = append(n.subs, s)
}

func drawInstalled(t *rapid.T, pkg string, b resolution.Bundle) *v1alpha1.ClusterServiceVersion {
	text, err := json.Marshal(map[string]any{"properties": b.Properties})
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: b.Name, Annotations: map[string]string{"operatorframework.io/properties": string(text)}}}
	csv.Spec.Version.Version = semver.MustParse(b.Name[len(pkg)+2:])
	return csv
}
