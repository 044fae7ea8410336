// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/examples/registry"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// testDeadline is how long tests wait for what must happen.
const testDeadline = 20 * time.Second

func read(t testing.TB, from api.RegistryServer, o registry.Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	ctx, conn := dialed(t, from)
	return registry.Read(ctx, conn, o)
}

// readTwice reads twice in a row, and requires the first read to fail.
func readTwice(t testing.TB, from api.RegistryServer) ([]resolution.Package, []olmcore.Diagnostic, error) {
	ctx, conn := dialed(t, from)
	client := &registry.Memory{}
	_, _, err := client.Read(ctx, conn, registry.Options{})
	require.Error(t, err)
	return client.Read(ctx, conn, registry.Options{})
}

// dialed is a connection to a registry, and how long it may be used.
func dialed(t testing.TB, to api.RegistryServer) (context.Context, *grpc.ClientConn) {
	conn, err := grpc.NewClient(listen(t, to).address, grpc.WithTransportCredentials(insecure.NewCredentials()), registry.Listening())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	return ctx, conn
}

// lost is what the server does not send: the properties of packages and channels, images that a bundle uses, the
// summary for user interfaces, and the order of lists.
func lost(packages []resolution.Package) []resolution.Package {
	for i := range packages {
		p := &packages[i]
		p.Properties = nil
		for j := range p.Channels {
			p.Channels[j].Properties = nil
			slices.SortFunc(p.Channels[j].Entries, func(a, b resolution.ChannelEntry) int { return strings.Compare(a.Name, b.Name) })
		}
		slices.SortFunc(p.Channels, func(a, b resolution.Channel) int { return strings.Compare(a.Name, b.Name) })
		for j := range p.Bundles {
			b := &p.Bundles[j]
			b.RelatedImages = nil
			b.Properties = slices.DeleteFunc(b.Properties, func(p olmcore.Property) bool {
				return p.Type == resolution.PropertyCSVMetadata || p.Type == resolution.PropertyBundleObject && b.Image != ""
			})
			for k, p := range b.Properties {
				var compact bytes.Buffer
				if json.Compact(&compact, p.Value) == nil {
					b.Properties[k].Value = compact.Bytes()
				}
			}
		}
		slices.SortFunc(p.Bundles, func(a, b resolution.Bundle) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Deprecations, func(a, b resolution.Deprecation) int {
			return strings.Compare(a.Channel+"\n"+a.Bundle, b.Channel+"\n"+b.Bundle)
		})
	}
	return packages
}

// catalogs generates catalogs that operator-registry accepts.
func catalogs(t *rapid.T) []resolution.Package {
	apis := rapid.SampledFrom([]string{"A", "B", "C"})
	var all []resolution.Package
	for _, name := range []string{"alpha", "beta", "gamma"}[:rapid.IntRange(1, 3).Draw(t, "packages")] {
		count := rapid.IntRange(1, 4).Draw(t, "bundles")
		p := resolution.Package{Name: name, DefaultChannel: "stable"}
		channels := []resolution.Channel{{Name: "stable"}, {Name: "fast"}}[:rapid.IntRange(1, 2).Draw(t, "channels")]
		for i := range count {
			version := fmt.Sprintf("1.%d.0", i)
			var more []olmcore.Property
			if rapid.Bool().Draw(t, "provides") {
				more = append(more, property(resolution.PropertyGVK, map[string]string{"group": name + ".example.com", "kind": apis.Draw(t, "kind"), "version": "v1"}))
			}
			switch rapid.IntRange(0, 5).Draw(t, "requires") {
			case 0:
				more = append(more, property(resolution.PropertyGVKRequired, map[string]string{"group": "alpha.example.com", "kind": apis.Draw(t, "kind"), "version": "v1"}))
			case 1:
				more = append(more, property(resolution.PropertyPackageRequired, map[string]string{"packageName": "beta", "versionRange": ">=1.1.0 <2.0.0"}))
			case 2:
				more = append(more, olmcore.Property{Type: resolution.PropertyConstraint, Value: json.RawMessage(`{"failureMessage":"needs gamma","package":{"packageName":"gamma","versionRange":"<9.0.0"}}`)})
			case 3:
				more = append(more, property("com.example.custom", map[string]int{"x": i}), property(resolution.PropertyCSVMetadata, map[string]string{"displayName": name}))
			}
			b := bundle(name, version, more...)
			if rapid.IntRange(0, 4).Draw(t, "inline") == 0 {
				b.Image = ""
				manifest, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": b.Name}})
				b.Properties = append(b.Properties, property(resolution.PropertyBundleObject, map[string][]byte{"data": manifest}))
			}
			p.Bundles = append(p.Bundles, b)
			for c := range channels {
				entry := resolution.ChannelEntry{Name: b.Name}
				entries := channels[c].Entries
				if len(entries) > 0 {
					entry.Replaces = entries[len(entries)-1].Name
				}
				if rapid.IntRange(0, 3).Draw(t, "range") == 0 {
					entry.SkipRange = fmt.Sprintf(">=1.0.0 <%s", version)
				}
				if len(entries) > 1 && rapid.IntRange(0, 3).Draw(t, "skips") == 0 {
					entry.Skips = []string{entries[0].Name}
				}
				channels[c].Entries = append(entries, entry)
			}
			if rapid.IntRange(0, 4).Draw(t, "deprecated") == 0 {
				p.Deprecations = append(p.Deprecations, resolution.Deprecation{Bundle: b.Name, Message: "use a later one"})
			}
		}
		p.Channels = channels
		if rapid.IntRange(0, 4).Draw(t, "deprecated") == 0 {
			p.Deprecations = append(p.Deprecations, resolution.Deprecation{Message: name + " is not maintained"}, resolution.Deprecation{Channel: "stable", Message: "use fast"})
		}
		all = append(all, p)
	}
	return all
}

// TestWhatARegistryServesResolvesAsItsFiles: through operator-registry's own server and cache.
func TestWhatARegistryServesResolvesAsItsFiles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var text bytes.Buffer
		require.NoError(r, fbc.Write(&text, catalogs(r)))
		packages, problems, err := fbc.Read("catalog", bytes.NewReader(text.Bytes()), fbc.Options{})
		require.NoError(r, err)
		require.Empty(r, problems)
		server, err := realOf(t, text.Bytes())
		require.NoError(r, err)
		got, problems, err := read(t, server, registry.Options{})
		require.NoError(r, err)
		require.Empty(r, problems)
		if diff := cmp.Diff(lost(packages), lost(got)); diff != "" {
			r.Fatalf("from files (-), from the registry (+):\n%s", diff)
		}
		file, _ := resolution.Build(packages)
		served, _ := resolution.Build(got)
		require.Equal(r, file.Digest(), served.Digest())
		for _, pkg := range []string{"alpha", "beta", "gamma"} {
			want, answer := namespace(pkg, file), namespace(pkg, served)
			require.Equal(r, want.Fingerprint(), answer.Fingerprint())
			if diff := cmp.Diff(resolution.Resolve(want).Resolution, resolution.Resolve(answer).Resolution); diff != "" {
				r.Fatalf("from files (-), from the registry (+):\n%s", diff)
			}
		}
	})
}

// namespace asks for one package.
func namespace(pkg string, content *resolution.Catalog) resolution.Input {
	return resolution.Input{
		Namespace:      "ops",
		OperatorGroups: []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}},
		Subscriptions: []*v1alpha1.Subscription{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: pkg},
			Spec:       &v1alpha1.SubscriptionSpec{Package: pkg, CatalogSource: "community", CatalogSourceNamespace: "ops"},
		}},
		Catalogs: []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "ops", Name: "community"}, Content: content}},
	}
}

// TestAnotherServersBundles: what older servers say in other fields becomes properties, what is broken is left out with
// its place in the channel kept, and no bundle stops another.
func TestAnotherServersBundles(t *testing.T) {
	with := func(change func(*api.Bundle)) *api.Bundle {
		b := etcd(2)
		b.Replaces = "etcd.v1.0.0"
		change(b)
		return b
	}
	const gvkK = `{"group":"g","kind":"K","version":"v1"}`
	of := func(pkg, version string) *api.Property {
		return &api.Property{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg, version)}
	}
	version := olmcore.Property{Type: "olm.package", Value: json.RawMessage(`{"packageName":"etcd","version":"2.0.0"}`)}
	for name, test := range map[string]struct {
		bundle     *api.Bundle
		properties []olmcore.Property // of version 2, nil when it is left out
		problem    string
	}{
		"as a server of today": {with(func(*api.Bundle) {}), []olmcore.Property{version}, ""},
		"without properties": {with(func(b *api.Bundle) {
			b.Properties = nil
			b.ProvidedApis = []*api.GroupVersionKind{{Group: "g", Version: "v1", Kind: "K", Plural: "ks"}, nil}
			b.RequiredApis = []*api.GroupVersionKind{{Group: "r", Version: "v1", Kind: "R"}}
		}), []olmcore.Property{
			{Type: "olm.gvk", Value: json.RawMessage(`{"group":"g","kind":"K","version":"v1"}`)},
			{Type: "olm.gvk", Value: json.RawMessage(`{"group":"","kind":"","version":""}`)},
			{Type: "olm.gvk.required", Value: json.RawMessage(`{"group":"r","kind":"R","version":"v1"}`)}, version,
		}, ""},
		"with dependencies beside its properties": {with(func(b *api.Bundle) {
			b.Properties = append(b.Properties, &api.Property{Type: "olm.gvk.required", Value: `{"version": "v1", "kind": "R", "group": "r"}`})
			b.Dependencies = []*api.Dependency{
				{Type: "olm.package", Value: `{"packageName":"other","version":">1.0.0"}`}, {Type: "olm.gvk", Value: `{"group":"r","kind":"R","version":"v1"}`},
				{Type: "olm.label", Value: `{"label":"x"}`}, {Type: "olm.constraint", Value: `{"all":{}}`}, {Type: "unknown", Value: "{"}, nil,
			}
		}), []olmcore.Property{
			version, {Type: "olm.gvk.required", Value: json.RawMessage(`{"version": "v1", "kind": "R", "group": "r"}`)},
			{Type: "olm.package.required", Value: json.RawMessage(`{"packageName":"other","versionRange":">1.0.0"}`)},
			{Type: "olm.label.required", Value: json.RawMessage(`{"label":"x"}`)}, {Type: "olm.constraint", Value: json.RawMessage(`{"all":{}}`)},
		}, ""},
		"with a property that is no JSON": {with(func(b *api.Bundle) { b.Properties[0].Value = "{" }), nil, "properties[0].value is no JSON"},
		"with a property of no type":      {with(func(b *api.Bundle) { b.Properties[0].Type = "" }), nil, "properties[0].type is empty"},
		"with a property that is nil": {
			with(func(b *api.Bundle) { b.Properties = append(b.Properties, nil) }), nil, "properties[1].type is empty"},
		"of two packages": {with(func(b *api.Bundle) {
			b.Properties = append([]*api.Property{of("another", "9.0.0"), {Type: "olm.gvk", Value: gvkK}}, b.Properties...)
		}), []olmcore.Property{{Type: "olm.gvk", Value: json.RawMessage(gvkK)}, version}, ""},
		"of one version twice": {with(func(b *api.Bundle) {
			b.Properties = append(b.Properties,
				&api.Property{Type: "olm.package", Value: `{"version": "2.0.0", "packageName": "etcd"}`}, b.Properties[0])
		}), []olmcore.Property{version}, ""},
		"of two versions": {with(func(b *api.Bundle) { b.Properties = append(b.Properties, of("etcd", "3.0.0"), of("another", "1.0.0")) }), nil,
			`properties of type olm.package give two versions of package etcd, "2.0.0" and "3.0.0"`},
		"of two other packages": {with(func(b *api.Bundle) { b.Properties = []*api.Property{of("another", "2.0.0"), of("third", "2.0.0")} }), nil,
			"2 properties of type olm.package, none of them for package etcd"},
		"of one other package": {with(func(b *api.Bundle) { b.Properties = []*api.Property{of("another", "2.0.0")} }),
			[]olmcore.Property{{Type: "olm.package", Value: json.RawMessage(`{"packageName":"another","version":"2.0.0"}`)}}, ""},
		"of a package that is no text": {with(func(b *api.Bundle) {
			b.Properties = append(b.Properties, &api.Property{Type: "olm.package", Value: "[1]"}, &api.Property{Type: "olm.package", Value: "null"})
		}), []olmcore.Property{version}, ""},
		"with a dependency that is no JSON":      {with(func(b *api.Bundle) { b.Dependencies = []*api.Dependency{{Type: "olm.gvk", Value: "x"}} }), nil, "dependencies[0]"},
		"with neither image nor objects":         {with(func(b *api.Bundle) { b.BundlePath, b.CsvJson = "", "{" }), nil, "neither an image nor objects"},
		"with an object that is no JSON":         {with(func(b *api.Bundle) { b.BundlePath, b.Object = "", []string{"{"} }), nil, "object[0] is no JSON"},
		"with a summary that is no JSON, unread": {with(func(b *api.Bundle) { b.CsvJson = "{" }), []olmcore.Property{version}, ""},
		"inline": {with(func(b *api.Bundle) { b.BundlePath, b.Object = "", []string{"{}"} }), []olmcore.Property{
			version, {Type: "olm.bundle.object", Value: json.RawMessage(`{"data":"e30="}`)},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			packages, problems, err := read(t, sends(test.bundle, etcd(1), etcd(1)), registry.Options{})
			require.NoError(t, err)
			want := []resolution.Package{{
				Name: "etcd", DefaultChannel: "stable",
				Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "etcd.v1.0.0"}, {Name: "etcd.v1.0.0"}, {Name: "etcd.v2.0.0", Replaces: "etcd.v1.0.0"}}}},
				Bundles:  []resolution.Bundle{bundle("etcd", "1.0.0")},
			}}
			if test.problem == "" {
				require.Empty(t, problems)
				want[0].Bundles = append(want[0].Bundles, resolution.Bundle{Name: "etcd.v2.0.0", Bundle: olmcore.Bundle{Image: test.bundle.BundlePath, Properties: test.properties}})
			} else {
				require.Len(t, problems, 1)
				require.Contains(t, problems[0].Message, test.problem)
				require.Equal(t, `packages["etcd"].bundles["etcd.v2.0.0"]`, problems[0].Path)
			}
			if diff := cmp.Diff(want, packages); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPackagesThatDoNotFitTheirBundles: they are left out, and the others are not. TestABundleOfTwoPackagesIsOneOfEach
// checks that a bundle which a registry serves under two packages has in each the version that its olm.package property
// for that package gives.
func TestABundleOfTwoPackagesIsOneOfEach(t *testing.T) {
	var served []*api.Bundle
	for _, pkg := range []string{"alpha", "beta"} {
		served = append(served, &api.Bundle{CsvName: "shared.v1", PackageName: pkg, ChannelName: "stable", BundlePath: "image",
			Properties: []*api.Property{
				{Type: "olm.package", Value: `{"packageName":"alpha","version":"1.0.0"}`},
				{Type: "olm.package", Value: `{"packageName":"beta","version":"2.0.0"}`},
			}})
	}
	packages, problems, err := read(t, sends(served...), registry.Options{})
	require.NoError(t, err)
	require.Empty(t, problems)
	var want []resolution.Package
	for pkg, value := range map[string]string{"alpha": `{"packageName":"alpha","version":"1.0.0"}`,
		"beta": `{"packageName":"beta","version":"2.0.0"}`} {
		want = append(want, resolution.Package{
			Name: pkg, DefaultChannel: "stable",
			Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "shared.v1"}}}},
			Bundles: []resolution.Bundle{{Name: "shared.v1", Bundle: olmcore.Bundle{Image: "image",
				Properties: []olmcore.Property{{Type: "olm.package", Value: json.RawMessage(value)}}}}},
		})
	}
	slices.SortFunc(want, func(a, b resolution.Package) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(want, packages); diff != "" {
		t.Error(diff)
	}
}

func TestPackagesThatDoNotFitTheirBundles(t *testing.T) {
	other := etcd(1)
	other.PackageName = "other"
	nameless, unnamed := etcd(1), etcd(1)
	nameless.PackageName, unnamed.CsvName = "", ""
	s := sends(etcd(1), other, nameless, unnamed)
	s.pkg = func(name string) (*api.Package, error) {
		deprecated := []*api.Channel{nil, {Deprecation: &api.Deprecation{Message: "of no channel"}}, {Name: "stable", Deprecation: &api.Deprecation{Message: "old"}}, {Name: "stable", Deprecation: &api.Deprecation{Message: "twice"}}}
		return &api.Package{Name: "etcd", DefaultChannelName: "stable", Channels: deprecated}, nil
	}
	packages, problems, err := readTwice(t, s)
	require.NoError(t, err)
	require.Len(t, packages, 1)
	require.Equal(t, []resolution.Deprecation{{Channel: "stable", Message: "old"}}, packages[0].Deprecations)
	require.Len(t, problems, 3)
	require.Equal(t, "package other is left out: it has bundles, and is not described: the registry answers with package etcd", problems[2].Message)

	s.pkg = func(name string) (*api.Package, error) {
		if name == "other" {
			return nil, fmt.Errorf("package %q not found", name)
		}
		return &api.Package{Name: name}, nil
	}
	packages, _, err = readTwice(t, s)
	require.NoError(t, err)
	require.Len(t, packages, 1)
	for _, failure := range []error{status.Error(codes.Internal, "disk"), fmt.Errorf("disk")} {
		s.pkg = func(string) (*api.Package, error) { return nil, failure }
		_, _, err = readTwice(t, s)
		require.ErrorContains(t, err, "disk", "which packages there are is not known")
	}
}

// TestLimits: a registry that goes on for ever is stopped, by a message that says which limit it was and what to do.
func TestLimits(t *testing.T) {
	forEver := func(next func(i int) *api.Bundle) *script {
		return &script{bundles: func(send func(*api.Bundle) error, ctx context.Context) error {
			for i := 0; ; i++ {
				if err := send(next(i)); err != nil {
					return err
				}
			}
		}}
	}
	silent := &script{bundles: func(send func(*api.Bundle) error, ctx context.Context) error {
		_ = send(etcd(1))
		<-ctx.Done()
		return ctx.Err()
	}}
	big := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		server *script
		o      registry.Options
		want   string
	}{
		"1 GB of bundles": {forEver(func(i int) *api.Bundle {
			require.Less(t, i, 1024, "the client did not stop the registry")
			b := etcd(i)
			b.CsvJson = big
			return b
		}), registry.Options{MaxBytes: 8 << 20}, "the catalog is larger than 8388608 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less"},
		"small parts": {forEver(func(i int) *api.Bundle {
			require.Less(t, i, 100, "9,900 skips take more than the 30 kB that they are")
			b := etcd(i)
			b.Skips = texts(9900, func(int) string { return "a" })
			return b
		}), registry.Options{MaxBytes: 8 << 20}, "the catalog is larger than 8388608 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less"},
		"small bundles": {forEver(etcd), registry.Options{MaxBundles: 500},
			"the catalog has more than 500 bundles: raise the limit (MaxBundles, --registry-max-bundles), or serve less"},
		"silence": {silent, registry.Options{Timeout: 50 * time.Millisecond}, "the registry sent nothing for 50ms: check its log and its load"},
		"a message that grows when it is decoded": {sends(&api.Bundle{CsvName: "a", PackageName: "b", Skips: make([]string, 200_000)}), registry.Options{},
			"a bundle or a package has more than 10000 properties, skipped versions and the like"},
		"a message beyond gRPC's": {sends(&api.Bundle{CsvJson: strings.Repeat(big, 5)}), registry.Options{},
			"a bundle, or a package, is larger than the 4 MiB that OLM takes: leave manifests to the bundle's image"},
		"an error of the server, with control characters": {&script{bundles: func(func(*api.Bundle) error, context.Context) error {
			return status.Error(codes.Internal, "no\nspace\x1b left "+big[:300])
		}}, registry.Options{}, "the registry answers Internal: no space  left " + big[:185] + "..."},
		"a busy server": {answersWith(status.Error(codes.ResourceExhausted, "too many streams,\ntry again later")), registry.Options{},
			"the registry answers ResourceExhausted: too many streams, try again later"},
		"a server that is not ready": {answersWith(status.Error(codes.Unavailable, "the cache is being built")), registry.Options{},
			"the registry answers Unavailable: the cache is being built"},
		"a server that ends": {answersWith(status.Error(codes.Canceled, "shutting down")), registry.Options{}, "the registry answers Canceled: shutting down"},
		"no registry":        {nil, registry.Options{}, "what answers is gRPC, but no registry of a catalog: check the address, or the image"},
	} {
		t.Run(name, func(t *testing.T) {
			var server api.RegistryServer
			if test.server != nil {
				server = test.server
			}
			_, _, err := read(t, server, test.o)
			require.Error(t, err)
			require.Equal(t, test.want, registry.ProblemOf(err))
		})
	}
}

// answersWith is a registry that sends a bundle, and then an error.
func answersWith(err error) *script {
	return &script{bundles: func(send func(*api.Bundle) error, _ context.Context) error {
		if failed := send(etcd(1)); failed != nil {
			return failed
		}
		return err
	}}
}

// TestATrickleEnds: a registry that sends something before each deadline has one for all of it.
func TestATrickleEnds(t *testing.T) {
	trickle := &script{bundles: func(send func(*api.Bundle) error, ctx context.Context) error {
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
			if err := send(etcd(i)); err != nil {
				return err
			}
		}
	}}
	_, _, err := read(t, trickle, registry.Options{Timeout: 200 * time.Millisecond})
	require.EqualError(t, err, "the registry did not come to its end within 2s: check its load, or raise the timeout")
}
