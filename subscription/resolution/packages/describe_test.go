// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

const etcd = `
{"schema":"olm.package","name":"etcd","defaultChannel":"stable","description":"A key-value store.","icon":{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}}
{"schema":"olm.channel","package":"etcd","name":"stable","entries":[{"name":"etcd.v1"},{"name":"etcd.v2","replaces":"etcd.v1","skips":["etcd.v1-broken"]},{"name":"etcd.v1-broken"}]}
{"schema":"olm.channel","package":"etcd","name":"old","entries":[{"name":"etcd.v1"}]}
{"schema":"olm.bundle","package":"etcd","name":"etcd.v1","image":"i1","properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"etcd","name":"etcd.v1-broken","image":"i1","properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"1.0.1"}}]}
{"schema":"olm.bundle","package":"etcd","name":"etcd.v2","image":"i2","relatedImages":[{"name":"b","image":"image-b"},{"name":"a","image":"image-a"},{"name":"c","image":"image-b"}],"properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"2.0.0"}},{"type":"olm.csv.metadata","value":{"annotations":{"alm-examples":"[]"},"apiServiceDefinitions":{"owned":[{"name":"a","group":"g","version":"v1","kind":"A"}]},"crdDescriptions":{"owned":[{"name":"etcds.example.com","version":"v1","kind":"Etcd"}],"required":[{"name":"disks.example.com","version":"v1","kind":"Disk"}]},"displayName":"etcd","installModes":[{"type":"OwnNamespace","supported":true}],"keywords":["store"],"labels":{"operatorframework.io/arch.arm64":"supported","other":"label"},"links":[{"name":"home","url":"https://example.com"}],"maintainers":[{"name":"m","email":"m@example.com"}],"maturity":"alpha","minKubeVersion":"1.30.0","nativeAPIs":[{"group":"apps","version":"v1","kind":"Deployment"}],"provider":{"name":"Example","url":"https://example.com"}}}]}
{"schema":"olm.deprecations","package":"etcd","entries":[{"reference":{"schema":"olm.package"},"message":"old package"},{"reference":{"schema":"olm.channel","name":"old"},"message":"old channel"},{"reference":{"schema":"olm.bundle","name":"etcd.v1"},"message":"old version"}]}
`

func read(t testing.TB, text string) []resolution.Package {
	content, diagnostics, err := fbc.Read("catalog", strings.NewReader(text), fbc.Options{})
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	return content
}

func catalogSource(namespace, name string) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"mine": "yes", "catalog": "forged"},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))},
		Spec: v1alpha1.CatalogSourceSpec{DisplayName: "Community", Publisher: "Everybody", Priority: 5},
	}
}

func wantEtcd() packages.PackageManifest {
	described := &packages.CSVDescription{
		DisplayName: "etcd", Icon: []v1alpha1.Icon{{Data: "PHN2Zy8+", MediaType: "image/svg+xml"}}, Version: "2.0.0",
		Provider:    v1alpha1.AppLink{Name: "Example", URL: "https://example.com"},
		Annotations: map[string]string{"alm-examples": "[]"}, Keywords: []string{"store"},
		Links: []v1alpha1.AppLink{{Name: "home", URL: "https://example.com"}}, Maintainers: []v1alpha1.Maintainer{{Name: "m", Email: "m@example.com"}},
		Maturity: "alpha", LongDescription: "A key-value store.", MinKubeVersion: "1.30.0",
		InstallModes:              []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}},
		CustomResourceDefinitions: v1alpha1.CustomResourceDefinitions{Owned: []v1alpha1.CRDDescription{{Name: "etcds.example.com", Version: "v1", Kind: "Etcd"}}, Required: []v1alpha1.CRDDescription{{Name: "disks.example.com", Version: "v1", Kind: "Disk"}}},
		APIServiceDefinitions:     v1alpha1.APIServiceDefinitions{Owned: []v1alpha1.APIServiceDescription{{Name: "a", Group: "g", Version: "v1", Kind: "A"}}},
		NativeAPIs:                []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}},
		RelatedImages:             []string{"image-a", "image-b"},
	}
	old := &packages.Deprecation{Message: "old version"}
	return packages.PackageManifest{
		TypeMeta: metav1.TypeMeta{APIVersion: "packages.operators.coreos.com/v1", Kind: "PackageManifest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "etcd", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			Labels: map[string]string{"mine": "yes", "catalog": "community", "catalog-namespace": "olm", "provider": "Example", "provider-url": "https://example.com",
				"operatorframework.io/arch.arm64": "supported", "operatorframework.io/os.linux": "supported"}},
		Status: packages.PackageManifestStatus{
			CatalogSource: "community", CatalogSourceNamespace: "olm", CatalogSourceDisplayName: "Community", CatalogSourcePublisher: "Everybody",
			Provider: described.Provider, PackageName: "etcd", DefaultChannel: "stable", Deprecation: &packages.Deprecation{Message: "old package"},
			Channels: []packages.PackageChannel{
				{Name: "old", CurrentCSV: "etcd.v1", Deprecation: &packages.Deprecation{Message: "old channel"},
					CurrentCSVDesc: &packages.CSVDescription{Version: "1.0.0", LongDescription: "A key-value store.", Icon: described.Icon, InstallModes: []v1alpha1.InstallMode{}},
					Entries:        []packages.ChannelEntry{{Name: "etcd.v1", Version: "1.0.0", Deprecation: old}}},
				{Name: "stable", CurrentCSV: "etcd.v2", CurrentCSVDesc: described,
					Entries: []packages.ChannelEntry{{Name: "etcd.v2", Version: "2.0.0"}, {Name: "etcd.v1-broken", Version: "1.0.1"}, {Name: "etcd.v1", Version: "1.0.0", Deprecation: old}}},
			},
		},
	}
}

func TestAPackageIsDescribedByItsHeads(t *testing.T) {
	got, diagnostics := packages.Describe(catalogSource("olm", "community"), read(t, etcd))
	want := packages.Catalog{Source: types.NamespacedName{Namespace: "olm", Name: "community"}, Priority: 5, Packages: []packages.PackageManifest{wantEtcd()}}
	require.Empty(t, cmp.Diff(want, got))
	require.Len(t, diagnostics, 1)
	require.Equal(t, packages.ReasonNotDescribed, diagnostics[0].Reason)
	require.Equal(t, `packages["etcd"].bundles["etcd.v1"]`, diagnostics[0].Path)
	require.Equal(t, map[string]bool{"etcd.v1": true, "etcd.v2": true}, packages.Heads(read(t, etcd)))
	require.Equal(t, "stable", got.Packages[0].Head().Name)
}

// A ClusterServiceVersion as a manifest says the same, and counts before the summary.
func TestManifestOverridesTheSummaryOfAHead(t *testing.T) {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.APIVersion, csv.Kind, csv.Name = v1alpha1.ClusterServiceVersionAPIVersion, v1alpha1.ClusterServiceVersionKind, "etcd.v2"
	csv.Annotations, csv.Labels = map[string]string{"alm-examples": "[]"}, map[string]string{"operatorframework.io/arch.arm64": "supported"}
	d := wantEtcd().Status.Channels[1].CurrentCSVDesc
	csv.Spec.DisplayName, csv.Spec.Provider, csv.Spec.Keywords, csv.Spec.Links, csv.Spec.Maintainers = d.DisplayName, d.Provider, d.Keywords, d.Links, d.Maintainers
	csv.Spec.Maturity, csv.Spec.MinKubeVersion, csv.Spec.InstallModes, csv.Spec.NativeAPIs = d.Maturity, d.MinKubeVersion, d.InstallModes, d.NativeAPIs
	csv.Spec.CustomResourceDefinitions, csv.Spec.APIServiceDefinitions = d.CustomResourceDefinitions, d.APIServiceDefinitions
	csv.Spec.RelatedImages = []v1alpha1.RelatedImage{{Name: "x", Image: "image-b"}, {Name: "y", Image: "image-a"}}
	var deployment v1alpha1.StrategyDeploymentSpec
	deployment.Spec.Template.Spec.InitContainers = []corev1.Container{{Image: "image-init"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Image: "image-operator"}, {Image: "image-a"}, {}}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{deployment}
	csv.Spec.Description, csv.Spec.Icon = "Its own words.", []v1alpha1.Icon{{Data: "cG5n", MediaType: "image/png"}, {Data: "second"}}
	text, err := json.Marshal(csv)
	require.NoError(t, err)
	inline := fmt.Appendf(nil, `{"data":%q}`, base64.StdEncoding.EncodeToString(text))
	other := fmt.Appendf(nil, `{"data":%q}`, base64.StdEncoding.EncodeToString([]byte(`{"kind":"Service","metadata":{"name":"of a ClusterServiceVersion"}}`)))

	want := wantEtcd()
	want.Status.Channels[1].CurrentCSVDesc.LongDescription = "Its own words."
	want.Status.Channels[1].CurrentCSVDesc.RelatedImages = []string{"image-a", "image-b", "image-init", "image-operator"}
	want.Status.Channels[1].CurrentCSVDesc.Icon = []v1alpha1.Icon{{Data: "cG5n", MediaType: "image/png"}}
	for name, edit := range map[string]func(b *resolution.Bundle){
		"as an object": func(b *resolution.Bundle) { b.Objects = []olmcore.Object{csv} },
		"as a property": func(b *resolution.Bundle) {
			b.Properties = append(b.Properties, olmcore.Property{Type: "olm.bundle.object", Value: other}, olmcore.Property{Type: "olm.bundle.object", Value: inline})
		},
	} {
		t.Run(name, func(t *testing.T) {
			content := read(t, etcd)
			head := &content[0].Bundles[2]
			require.Equal(t, "etcd.v2", head.Name)
			head.RelatedImages = nil
			edit(head)
			got, _ := packages.Describe(catalogSource("olm", "community"), content)
			require.Empty(t, cmp.Diff(want, got.Packages[0]))
		})
	}
}

func TestInvalidContentIsNotListed(t *testing.T) {
	metadata := func(value string) string {
		return strings.Replace(etcd, `"value":{"annotations"`, `"value":`+value+`},{"type":"x","value":{"annotations"`, 1)
	}
	icon := func(data, media string) string {
		return strings.Replace(etcd, `{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}`, fmt.Sprintf(`{"base64data":%q,"mediatype":%q}`, data, media), 1)
	}
	for name, c := range map[string]struct {
		text, path, reason, message string
		check                       func(t *testing.T, m *packages.PackageManifest)
	}{
		"a field of another type": {metadata(`{"displayName":"etcd","keywords":7}`), `.bundles["etcd.v2"]`, packages.ReasonUnreadableDescription,
			"the description of etcd.v2 is broken: keywords may not be a JSON number",
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, "etcd", m.Head().CurrentCSVDesc.DisplayName)
			}},
		"a summary that is a list": {metadata(`[]`), `.bundles["etcd.v2"]`, packages.ReasonUnreadableDescription,
			"the description of etcd.v2 is broken: it may not be a JSON array",
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, "2.0.0", m.Head().CurrentCSVDesc.Version)
			}},
		"a huge description": {metadata(`{"description":"` + strings.Repeat("x", 5<<20) + `"}`), `.bundles["etcd.v2"]`, packages.ReasonTooLarge,
			"a description of etcd.v2 has 5242898 bytes, more than 4194304, and is not read",
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, "A key-value store.", m.Head().CurrentCSVDesc.LongDescription)
			}},
		"a long description": {metadata(`{"displayName":"etcd","description":"` + strings.Repeat("ä", 1<<20) + `"}`), `.bundles["etcd.v2"]`, packages.ReasonTooLarge,
			"the long description of etcd.v2 has 2097152 bytes, and is cut after 131072",
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, strings.Repeat("ä", 65534)+"…", m.Head().CurrentCSVDesc.LongDescription)
				require.Equal(t, "etcd", m.Head().CurrentCSVDesc.DisplayName)
			}},
		"a description of very many parts": {metadata(`{"keywords":[` + strings.Repeat(`"",`, 200_000) + `""]}`), `.bundles["etcd.v2"]`, packages.ReasonTooLarge,
			"a description of etcd.v2 has more than 100000 values, and is not read",
			func(t *testing.T, m *packages.PackageManifest) { require.Empty(t, m.Head().CurrentCSVDesc.Keywords) }},
		"a description that takes much memory": {metadata(`{"displayName":"` + strings.Repeat("x", 3<<20) + `"}`), `.bundles["etcd.v2"]`, packages.ReasonTooLarge,
			"etcd.v2 is not described: that would take 3539391 bytes of memory, more than 2097152",
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, "2.0.0", m.Head().CurrentCSVDesc.Version)
				require.Empty(t, m.Head().CurrentCSVDesc.DisplayName)
			}},
		"an icon that is not valid base64": {icon("<svg/>", "image/svg+xml"), `.bundles["etcd.v2"]`, packages.ReasonUnusableIcon, "the icon of etcd.v2 is not valid base64", withoutIcon},
		"an icon that is a page":           {icon("PHN2Zy8+", "text/html"), `.bundles["etcd.v2"]`, packages.ReasonUnusableIcon, `the icon of etcd.v2 has the media type "text/html", which is not shown; use one of image/svg+xml, image/png, image/jpeg, image/jpg, image/gif, image/webp`, withoutIcon},
		"a huge icon":                      {icon(strings.Repeat("PHN2", 1<<20), "image/png"), `.bundles["etcd.v2"]`, packages.ReasonTooLarge, "the icon of etcd.v2 has 4194304 bytes, more than 1048576", withoutIcon},
		"a default channel that is a cycle": {strings.Replace(etcd, `{"name":"etcd.v1"},{"name":"etcd.v2",`, `{"name":"etcd.v1","replaces":"etcd.v2"},{"name":"etcd.v2",`, 1),
			`.channels["stable"]`, packages.ReasonNoHead, `channel "stable" of package etcd is not shown: nothing can be installed from it`,
			func(t *testing.T, m *packages.PackageManifest) {
				require.Equal(t, "old", m.Status.DefaultChannel)
				require.Len(t, m.Status.Channels, 1)
			}},
		"a head that does not exist": {strings.Replace(etcd, `"package":"etcd","name":"etcd.v2"`, `"package":"etcd","name":"etcd.v3"`, 1), `.channels["stable"].bundles["etcd.v2"]`, resolution.ReasonInvalidContent,
			"entry etcd.v2 has no bundle and cannot be chosen",
			func(t *testing.T, m *packages.PackageManifest) { require.Equal(t, "etcd.v1", m.Head().CurrentCSV) }},
		"a default channel that does not exist": {strings.Replace(etcd, `"defaultChannel":"stable"`, `"defaultChannel":"none"`, 1), "", resolution.ReasonInvalidContent,
			`package etcd has no channel "none", its default channel; its channels are ordered by name`,
			func(t *testing.T, m *packages.PackageManifest) { require.Equal(t, "old", m.Status.DefaultChannel) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, diagnostics := packages.Describe(nil, read(t, c.text))
			require.Contains(t, diagnostics, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: c.reason, Path: `packages["etcd"]` + c.path, Message: c.message})
			require.Len(t, got.Packages, 1)
			c.check(t, &got.Packages[0])
		})
	}
	got, diagnostics := packages.Describe(nil, []resolution.Package{{Name: "empty"}, {}})
	require.Empty(t, got.Packages)
	require.Equal(t, packages.ReasonNoHead, diagnostics[len(diagnostics)-1].Reason)
}

func withoutIcon(t *testing.T, m *packages.PackageManifest) {
	require.Empty(t, m.Head().CurrentCSVDesc.Icon)
}

func TestANamespaceSeesItsOwnCatalogsAndTheGlobalOnes(t *testing.T) {
	describe := func(namespace, name string, priority int, names ...string) packages.Catalog {
		var list []resolution.Package
		for _, pkg := range names {
			list = append(list, read(t, strings.ReplaceAll(etcd, "etcd", pkg))...)
		}
		source := catalogSource(namespace, name)
		source.Spec.Priority = priority
		catalog, _ := packages.Describe(source, list)
		return catalog
	}
	catalogs := []packages.Catalog{
		describe("olm", "low", 0, "b", "a"), describe("olm", "high", 9, "a"), describe("team", "own", -1, "a"), describe("other", "hidden", 0, "a"),
		describe("olm", "low-too", 0, "b"),
	}
	for namespace, want := range map[string][]string{
		"team": {"team/a of team/own", "team/a of olm/high", "team/a of olm/low", "team/b of olm/low", "team/b of olm/low-too"},
		"olm":  {"olm/a of olm/high", "olm/a of olm/low", "olm/b of olm/low", "olm/b of olm/low-too"},
		"new":  {"new/a of olm/high", "new/a of olm/low", "new/b of olm/low", "new/b of olm/low-too"},
		"":     {"olm/a of olm/high", "olm/a of olm/low", "other/a of other/hidden", "team/a of team/own", "olm/b of olm/low", "olm/b of olm/low-too"},
	} {
		var got []string
		for _, m := range packages.Visible(catalogs, namespace, "olm") {
			got = append(got, fmt.Sprintf("%s/%s of %s/%s", m.Namespace, m.Name, m.Status.CatalogSourceNamespace, m.Status.CatalogSource))
		}
		require.Equal(t, want, got, namespace)
	}
	require.Equal(t, "olm", catalogs[0].Packages[0].Namespace, "a catalog is not changed")
	require.Empty(t, packages.Visible(nil, "", "olm"))
}
