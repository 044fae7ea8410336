// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

func BenchmarkRead(b *testing.B) {
	file := filepath.Join(realdata.Dir(b), "catalogs", community)
	for b.Loop() {
		f, err := os.Open(file)
		require.NoError(b, err)
		_, _, err = fbc.Read(community, f, fbc.Options{})
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
}

func BenchmarkBuild(b *testing.B) {
	packages := readCatalog(b, community)
	b.ReportAllocs()
	for b.Loop() {
		resolution.Build(packages)
	}
}

// BenchmarkRetained reports what a catalog holds in memory: the packages, which it refers to, and its index.
func BenchmarkRetained(b *testing.B) {
	var content *resolution.Catalog
	before := liveHeap()
	for b.Loop() {
		content = nil
		content, _ = resolution.Build(readCatalog(b, community))
	}
	b.ReportMetric((liveHeap()-before)/1e6, "MB-retained")
	runtime.KeepAlive(content)
}

// liveHeap is how many bytes are in use once garbage is gone.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func resolveAll(b *testing.B, in resolution.Input, want resolution.Outcome) {
	b.Helper()
	b.ReportAllocs()
	var res resolution.Result
	for b.Loop() {
		res = resolution.Resolve(in)
	}
	require.Equal(b, want, res.Outcome)
	b.ReportMetric(float64(res.Stats.Steps), "steps")
}

func BenchmarkOneNew(b *testing.B) {
	c := publishedCatalog(b, community)
	for _, s := range []struct{ pkg, channel string }{
		{"etcd", "singlenamespace-alpha"}, {"opentelemetry-operator", "alpha"}, {"eclipse-che", "stable"},
		{"assisted-service-operator", ""}, {"kuadrant-operator", "stable"},
	} {
		if !slices.Contains(c.content.Packages(), s.pkg) {
			continue
		}
		b.Run(s.pkg, func(b *testing.B) {
			in := c.world()
			in.Subscriptions = []*v1alpha1.Subscription{subscription("ns", s.pkg, s.pkg, s.channel, "global/community")}
			resolveAll(b, in, resolution.Resolved)
		})
	}
}

// BenchmarkEachPackage resolves a new Subscription for each package alone and reports the median, the worst, and the
// sum.
func BenchmarkEachPackage(b *testing.B) {
	c := publishedCatalog(b, community)
	names := c.content.Packages()
	inputs := make([]resolution.Input, len(names))
	for i, name := range names {
		inputs[i] = c.world()
		inputs[i].Subscriptions = []*v1alpha1.Subscription{subscription("ns", name, name, "", "global/community")}
	}
	best := make([]time.Duration, len(names))
	for b.Loop() {
		for i, in := range inputs {
			start := time.Now()
			resolution.Resolve(in)
			if d := time.Since(start); best[i] == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	worst := slices.Index(best, slices.Max(best))
	sorted := slices.Sorted(slices.Values(best))
	b.ReportMetric(float64(sorted[len(sorted)/2].Microseconds()), "median-µs")
	b.ReportMetric(float64(best[worst].Microseconds()), "worst-µs")
	most := 0.0
	for _, in := range inputs {
		most = max(most, testing.AllocsPerRun(1, func() { resolution.Resolve(in) }))
	}
	b.ReportMetric(most, "worst-allocs")
	b.Logf("slowest: %s", names[worst])
}

// compatible returns the first n packages of which each resolves together with those before it.
func (c *published) compatible(n int) resolution.Input {
	in := c.world()
	for _, pkg := range c.content.Packages() {
		if len(in.Subscriptions) == n {
			break
		}
		more := in
		more.Subscriptions = append(slices.Clone(in.Subscriptions), subscription("ns", pkg, pkg, c.content.Channels(pkg)[0], "global/community"))
		if res := resolution.Resolve(more); res.Outcome == resolution.Resolved && len(res.Cores) == 0 && len(res.Generated) == 0 && len(res.HeldBack) == 0 {
			in = more
		}
	}
	return in
}

func BenchmarkFiftyNew(b *testing.B) {
	in := publishedCatalog(b, community).compatible(50)
	require.Len(b, in.Subscriptions, 50)
	resolveAll(b, in, resolution.Resolved)
}

func BenchmarkFiftyUpgrades(b *testing.B) {
	c := publishedCatalog(b, community)
	in := c.compatible(50)
	for _, s := range in.Subscriptions {
		chain := c.content.Chain(s.Spec.Package, s.Spec.Channel)
		middle := chain[len(chain)/2]
		s.Status.CurrentCSV, s.Status.InstalledCSV = middle, middle
		in.CSVs = append(in.CSVs, c.installed(b, s.Spec.Package, middle))
	}
	resolveAll(b, in, resolution.Resolved)
}

func BenchmarkHundredAtHead(b *testing.B) {
	resolveAll(b, publishedCatalog(b, community).settled(b, 100), resolution.Unchanged)
}

// BenchmarkHundredAtHeadForeign is the same with annotations in another spelling than the catalog's.
func BenchmarkHundredAtHeadForeign(b *testing.B) {
	in := publishedCatalog(b, community).settled(b, 100)
	for _, c := range in.CSVs {
		c.Annotations["operatorframework.io/properties"] += "\n"
	}
	resolveAll(b, in, resolution.Unchanged)
}

func (c *published) settled(b testing.TB, n int) resolution.Input {
	in := c.compatible(n)
	w := &walk{in}
	w.apply(b, resolution.Resolve(in))
	return w.in
}

// unsatisfiable is 50 Subscriptions of which two ask for different bundles of one package.
func (c *published) unsatisfiable() resolution.Input {
	in := c.compatible(49)
	first := in.Subscriptions[0].Spec
	first.StartingCSV = c.content.Chain(first.Package, first.Channel)[0]
	again := subscription("ns", "zz", first.Package, first.Channel, "global/community")
	again.Spec.StartingCSV = c.content.Chain(first.Package, first.Channel)[1]
	in.Subscriptions = append(in.Subscriptions, again)
	return in
}

func BenchmarkFiftyUnsatisfiable(b *testing.B) {
	in := publishedCatalog(b, community).unsatisfiable()
	in.Policy.AllOrNothing = true
	require.Len(b, in.Subscriptions, 50)
	res := resolution.Resolve(in)
	require.Len(b, res.Cores, 1)
	require.True(b, res.Cores[0].Minimal)
	resolveAll(b, in, resolution.Unsatisfiable)
}

// BenchmarkUnrelated is one new Subscription in a catalog of twice the size.
func BenchmarkUnrelated(b *testing.B) {
	packages := readCatalog(b, community)
	twice := slices.Clone(packages)
	for _, p := range packages {
		twice = append(twice, unrelated(p))
	}
	for name, list := range map[string][]resolution.Package{"once": packages, "twice": twice} {
		content, _ := resolution.Build(list)
		c := &published{content: content}
		b.Run(name, func(b *testing.B) {
			in := c.world()
			in.Subscriptions = []*v1alpha1.Subscription{subscription("ns", "s", "kuadrant-operator", "stable", "global/community")}
			resolveAll(b, in, resolution.Resolved)
		})
	}
}

// unrelated renames a package and everything in it.
func unrelated(p resolution.Package) resolution.Package {
	p.Name = "other." + p.Name
	p.Bundles = slices.Clone(p.Bundles)
	for i := range p.Bundles {
		var properties []olmcore.Property
		for _, property := range p.Bundles[i].Properties {
			value := string(property.Value)
			switch property.Type {
			case resolution.PropertyPackage:
				value = renamed(value, `"packageName":"`)
			case resolution.PropertyGVK:
				value = renamed(value, `"group":"`)
			default:
				continue
			}
			properties = append(properties, olmcore.Property{Type: property.Type, Value: []byte(value)})
		}
		p.Bundles[i].Properties = properties
	}
	return p
}

func BenchmarkPigeonhole(b *testing.B) {
	for _, n := range []int{6, 8, 12} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := pigeonhole(n)
			b.ReportAllocs()
			var res resolution.Result
			for b.Loop() {
				res = resolution.Resolve(in)
			}
			b.ReportMetric(float64(res.Stats.Steps), "steps")
			b.Log(res.Outcome, res.Failure.Message[:min(80, len(res.Failure.Message))])
		})
	}
}

// pigeonhole is n Subscriptions whose packages offer n-1 bundles each, and n-1 APIs of which each bundle takes one.
func pigeonhole(n int) resolution.Input {
	var packages []resolution.Package
	in := resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns")}
	in.Policy.AllOrNothing = true
	for p := range n {
		pkg := resolution.Package{Name: fmt.Sprintf("p%02d", p), DefaultChannel: "c"}
		channel := resolution.Channel{Name: "c"}
		for v := range n - 1 {
			name := fmt.Sprintf("%s.v%d", pkg.Name, v)
			entry := resolution.ChannelEntry{Name: name}
			if v > 0 {
				entry.Replaces = fmt.Sprintf("%s.v%d", pkg.Name, v-1)
			}
			channel.Entries = append(channel.Entries, entry)
			pkg.Bundles = append(pkg.Bundles, bundle(name, packageProperty(pkg.Name, fmt.Sprintf("1.0.%d", v)), provides(fmt.Sprintf("K%d", v))))
		}
		pkg.Channels = []resolution.Channel{channel}
		packages = append(packages, pkg)
		in.Subscriptions = append(in.Subscriptions, subscription("ns", pkg.Name, pkg.Name, "c", "global/cat"))
	}
	content, _ := resolution.Build(packages)
	in.Catalogs = []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Content: content}}
	return in
}
