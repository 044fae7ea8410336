// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// FuzzResolve throws bytes at everything that is read: a catalog, an annotation, and the fields of a Subscription.
func FuzzResolve(f *testing.F) {
	var catalog bytes.Buffer
	if err := fbc.Write(&catalog, packages(line("a/s", "a1", "", requires("K")), line("a/s", "a2", "a1"), line("b/t", "b1", "", provides("K")))); err != nil {
		f.Fatal(err)
	}
	f.Add(catalog.Bytes(), `{"properties":[{"type":"olm.gvk","value":{"group":"g","kind":"K","version":"v1"}}]}`, "a", "s", "a1")
	f.Add([]byte(`{"schema":"olm.package","name":"a","defaultChannel":"s"}{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a2","skipRange":">1.0.0 || || <0.1.0","replaces":"a2"},{"name":"a2"}]}{"schema":"olm.bundle","package":"a","name":"a2","image":"i","properties":[{"type":"olm.constraint","value":{"not":{"constraints":[]}}},{"type":"olm.package","value":null}]}`),
		`{"properties":[{"type":"olm.constraint","value":{"any":{"constraints":[]}}}]}`, "a", "", "a2")
	f.Fuzz(func(t *testing.T, catalog []byte, annotation, pkg, channel, installed string) {
		packages, _, err := fbc.Read("fuzz", bytes.NewReader(catalog), fbc.Options{MaxDocumentBytes: 1 << 16, MaxDocuments: 50})
		if err != nil {
			return
		}
		content, _ := resolution.Build(packages)
		csv := drawless(installed, annotation)
		for _, policy := range []resolution.Policy{{MaxSteps: 10_000}, resolution.UpstreamPolicy()} {
			policy.MaxSteps = 10_000
			s := subscription("ns", "s", pkg, channel, "global/cat")
			s.Status.InstalledCSV = installed
			in := resolution.Input{
				Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns"), Policy: policy,
				Subscriptions: []*v1alpha1.Subscription{s, subscription("ns", "t", "a", "s", "global/cat")},
				CSVs:          []*v1alpha1.ClusterServiceVersion{csv},
				Catalogs:      []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Content: content}},
			}
			res := resolution.Resolve(in)
			resolution.Explain(in, "", installed)
			if (res.Failure != nil) && len(res.Operators) > 0 {
				t.Fatalf("operators beside a failure: %+v", res)
			}
		}
	})
}

func drawless(name, annotation string) *v1alpha1.ClusterServiceVersion {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = "ns", name
	csv.Annotations = map[string]string{"operatorframework.io/properties": annotation}
	return csv
}

func TestAnnotationIsRecognizedAsThatOfABundle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		_, b := n.drawBundle(t)
		plain := func(properties []olmcore.Property) string {
			var text bytes.Buffer
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(map[string]any{"properties": properties}); err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(text.String())
		}
		text := plain(b.Properties)
		if !resolution.Projects(text, b.Properties) {
			t.Fatalf("%s is not recognised", text)
		}
		other := append(b.Properties[:len(b.Properties):len(b.Properties)], property("x", "1"))
		if resolution.Projects(text, other) || resolution.Projects(plain(other), b.Properties) || resolution.Projects("", nil) {
			t.Fatal("another annotation is taken for it")
		}
		inline := append(other[:len(b.Properties):len(b.Properties)], property(resolution.PropertyBundleObject, `{"data":"e30="}`))
		if !resolution.Projects(text, inline) {
			t.Fatal("inline manifests are not projected")
		}
	})
}
