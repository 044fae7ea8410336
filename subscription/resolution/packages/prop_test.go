// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// content draws packages whose channels may be cycles, lack heads, or share them.
func content(t *rapid.T) (list []resolution.Package) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string]).Draw(t, "packages")
	bundle := rapid.SampledFrom([]string{"v1", "v2", "v3", "v4", ""})
	value := rapid.SampledFrom([]string{`{"displayName":"x"}`, `{"labels":{"operatorframework.io/os.plan9":"supported"},"keywords":1}`, `[`, `{"data":"e30="}`, `{"data":"!"}`})
	for _, name := range names {
		p := resolution.Package{Name: name, DefaultChannel: rapid.SampledFrom([]string{"stable", "fast", ""}).Draw(t, "default")}
		p.Icon.Data, p.Icon.MediaType = rapid.SampledFrom([]string{"", "e30=", "!"}).Draw(t, "icon"), rapid.SampledFrom([]string{"image/png", "x"}).Draw(t, "media")
		for _, channel := range []string{"stable", "fast", "old"}[:rapid.IntRange(0, 3).Draw(t, "channels")] {
			ch := resolution.Channel{Name: channel}
			for _, entry := range rapid.SliceOfNDistinct(bundle, 0, 4, rapid.ID[string]).Draw(t, "entries") {
				ch.Entries = append(ch.Entries, resolution.ChannelEntry{Name: entry, Replaces: bundle.Draw(t, "replaces"), Skips: rapid.SliceOfN(bundle, 0, 1).Draw(t, "skips")})
			}
			p.Channels = append(p.Channels, ch)
		}
		for _, name := range rapid.SliceOfNDistinct(bundle, 0, 4, rapid.ID[string]).Draw(t, "bundles") {
			b := resolution.Bundle{Name: name, RelatedImages: []resolution.RelatedImage{{Image: name}, {Image: "a"}}}
			version := rapid.SampledFrom([]string{"1.0.0", "2.0.0", "v3", "?"}).Draw(t, "version")
			b.Properties = []olmcore.Property{{Type: "olm.package", Value: fmt.Appendf(nil, `{"packageName":%q,"version":%q}`, p.Name, version)}}
			for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"olm.csv.metadata", "olm.bundle.object"}), 0, 2).Draw(t, "described by") {
				b.Properties = append(b.Properties, olmcore.Property{Type: kind, Value: []byte(value.Draw(t, "description"))})
			}
			p.Bundles = append(p.Bundles, b)
		}
		p.Deprecations = []resolution.Deprecation{{Message: "p"}, {Channel: "old", Message: "c"}, {Bundle: "v1", Message: "b"}}
		list = append(list, p)
	}
	return list
}

func shuffled[T any](t *rapid.T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	return rapid.Permutation(list).Draw(t, "order")
}

// ours leaves out what resolution.Build says, which names the first of two.
func ours(said []olmcore.Diagnostic) (list []olmcore.Diagnostic) {
	for _, d := range said {
		if d.Reason != resolution.ReasonInvalidContent && d.Reason != resolution.ReasonMalformedChannel && d.Reason != resolution.ReasonDuplicateContent {
			list = append(list, d)
		}
	}
	return list
}

// Neither does it matter whether the CatalogSource is known before the content, or changes.
func TestTheOrderOfTheContentDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := content(t)
		before, said := packages.Describe(catalogSource("olm", "c"), list)
		other := catalogSource("team", "other")
		other.Labels, other.Spec.Publisher = map[string]string{"operatorframework.io/os.mine": "no", "new": "label"}, "x"
		described, _ := packages.Describe(other, list)
		if diff := cmp.Diff(described, before.WithSource(other)) + cmp.Diff(before, described.WithSource(catalogSource("olm", "c"))); diff != "" {
			t.Fatal(diff)
		}
		again := shuffled(t, list)
		for i, p := range again {
			p.Channels, p.Bundles, p.Deprecations = shuffled(t, p.Channels), shuffled(t, p.Bundles), shuffled(t, p.Deprecations)
			for j, ch := range p.Channels {
				p.Channels[j].Entries = shuffled(t, ch.Entries)
			}
			again[i] = p
		}
		after, saidAfter := packages.Describe(catalogSource("olm", "c"), again)
		if diff := cmp.Diff(before, after) + cmp.Diff(ours(said), ours(saidAfter)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What is shown can be installed: a Subscription to a channel that is shown gets its head, and every default
// channel is one of the channels. What a head needs is all that is needed.
func TestListedChannelsCanBeInstalled(t *testing.T) {
	small := []string{resolution.PropertyCSVMetadata, resolution.PropertyBundleObject}
	rapid.Check(t, func(t *rapid.T) {
		list := content(t)
		catalog, said := packages.Describe(nil, list)
		index, _ := resolution.Build(list)
		for _, m := range catalog.Packages {
			if m.Head() == nil {
				t.Fatalf("package %s has no default channel", m.Name)
			}
			for _, ch := range m.Status.Channels {
				if !slices.Contains(index.Chain(m.Name, ch.Name), ch.CurrentCSV) || !slices.ContainsFunc(ch.Entries, func(e packages.ChannelEntry) bool { return e.Name == ch.CurrentCSV }) {
					t.Fatalf("%s is no head of channel %s: %v", ch.CurrentCSV, ch.Name, ch.Entries)
				}
			}
		}
		heads := packages.Heads(list)
		for i, p := range list {
			list[i].Bundles = slices.Clone(p.Bundles)
			for j, b := range p.Bundles {
				if !heads[b.Name] {
					list[i].Bundles[j].Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p olmcore.Property) bool { return slices.Contains(small, p.Type) })
				}
			}
		}
		lean, saidOfLean := packages.Describe(nil, list)
		if diff := cmp.Diff(catalog, lean) + cmp.Diff(said, saidOfLean); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestCopiesAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := gen.Value[*packages.PackageManifestList](gen.Vocabulary{Namespace: "olm", Names: []string{"a", "b"}, Words: map[string][]string{"": {"x", "y"}}}).Draw(t, "list")
		text, err := json.Marshal(list)
		require.NoError(t, err)
		out := list.DeepCopyObject().(*packages.PackageManifestList)
		if diff := cmp.Diff(list, out); diff != "" {
			t.Fatal(diff)
		}
		for i := range out.Items {
			overwrite(reflect.ValueOf(&out.Items[i]).Elem())
		}
		now, err := json.Marshal(list)
		require.NoError(t, err)
		if !bytes.Equal(text, now) {
			t.Fatal("a change of the copy changed the original")
		}
	})
}

// overwrite changes every text, also behind pointers and in lists.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString("overwritten")
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			overwrite(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Value{})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			overwrite(v.Field(i))
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(etcd)
	f.Add(strings.Replace(etcd, `{"name":"etcd.v1"},{"name":"etcd.v2",`, `{"name":"etcd.v1","replaces":"etcd.v2"},{"name":"etcd.v2",`, 1))
	f.Add(strings.Replace(etcd, `{"type":"olm.csv.metadata"`, `{"type":"olm.bundle.object","value":{"data":"eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0="}},{"type":"olm.csv.metadata"`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		list, _, err := fbc.Read("fuzz", strings.NewReader(text), fbc.Options{MaxDocumentBytes: 1 << 16, MaxDocuments: 100})
		if err != nil {
			return
		}
		catalog, _ := packages.Describe(catalogSource("olm", "c"), list)
		seen := packages.Visible([]packages.Catalog{catalog}, "ops", "olm")
		if len(seen) != len(catalog.Packages) {
			t.Fatal("not all are visible")
		}
		for i := range seen {
			if _, err := json.Marshal(&seen[i]); err != nil || seen[i].Head() == nil {
				t.Fatalf("%s: %v", seen[i].Name, err)
			}
		}
	})
}
