// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// unfits are contents that the schemas of OLM's kinds allow, and that the Go types cannot hold, or that their decoders
// do not end on.
var unfits = map[string]struct{ kind, spec string }{
	"a version that is none":               {"ClusterServiceVersion", `{"version":"latest"}`},
	"a version that is none, in capitals":  {"ClusterServiceVersion", `{"Version":"latest"}`},
	"a port beyond all ports":              {"ClusterServiceVersion", `{"webhookdefinitions":[{"generateName":"w","targetPort":3000000000}]}`},
	"an exponent with a fraction":          {"Subscription", `{"config":{"resources":{"limits":{"cpu":"1e5.5"}}}}`},
	"a quantity that takes hours to read":  {"Subscription", `{"config":{"resources":{"limits":{"cpu":"1e-100000000"}}}}`},
	"a quantity that takes years to add":   {"CatalogSource", `{"grpcPodConfig":{"memoryTarget":"1e2147483647"}}`},
	"a quantity of many digits":            {"CatalogSource", `{"grpcPodConfig":{"memoryTarget":"9999999999999999999999e10000000"}}`},
	"a quantity with an escape":            {"CatalogSource", `{"grpcPodConfig":{"memoryTarget":"1\u00652147483647"}}`},
	"a quantity that begins with one":      {"CatalogSource", `{"grpcPodConfig":{"memoryTarget":"\u0031e2147483647"}}`},
	"a quantity that is no string, ending": {"CatalogSource", `{"grpcPodConfig":{"memoryTarget":true}}`},
}

func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(what + " does not end")
	}
}

func unfitObject(t *testing.T, kind, spec string) (*unstructured.Unstructured, []byte) {
	t.Helper()
	text := []byte(
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"` + kind + `",` +
			`"metadata":{"namespace":"evil","name":"x","uid":"1","labels":{"a":"b"}},"spec":` + spec + `}`,
	)
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(text, &u.Object))
	return u, text
}

// TestAnUnfitObjectKeepsOthersReadable: an object that an API server stores and the Go type cannot hold is an error for
// who asks for it, and no error for who lists it among others.
func TestAnUnfitObjectKeepsOthersReadable(t *testing.T) {
	for name, tt := range unfits {
		t.Run(name, func(t *testing.T) {
			u, _ := unfitObject(t, tt.kind, tt.spec)
			soon(t, "reading", func() {
				_, err := decode.Typed(u)
				var unfit *olmcore.UnfitError
				if !errors.As(err, &unfit) || !strings.HasPrefix(err.Error(), "read "+tt.kind+" evil/x: ") {
					t.Errorf("one object: %v", err)
				}
				other := u.DeepCopy()
				other.Object["spec"] = map[string]any{}
				other.SetName("a")
				objects, err := decode.Items(&unstructured.UnstructuredList{Items: []unstructured.Unstructured{*u, *other}})
				if err != nil || len(objects) != 2 || objects[1].GetName() != "x" || objects[1].GetUID() != "1" || objects[1].GetLabels()["a"] != "b" {
					t.Errorf("a list: %v, %v", objects, err)
				}
				kept := decode.Kept(u)
				if _, again := decode.Typed(kept); again == nil || again.Error() != problemOf(decode.Typed(u)) {
					t.Errorf("what a cache keeps of it: %v", again)
				}
				_, copied := decode.Typed(kept.DeepCopyObject().(olmcore.Object))
				items, err := decode.Items(&metav1.List{Items: []runtime.RawExtension{{Object: kept}, {Object: decode.Kept(other)}}})
				if diff := cmp.Diff(objects, items); err != nil || diff != "" || copied == nil || olmcore.GVKOf(kept) != u.GroupVersionKind() {
					t.Errorf("a list of what a cache keeps: %v %s, a copy: %v", err, diff, copied)
				}
			})
		})
	}
}

func problemOf(_ olmcore.Object, err error) string { return err.Error() }

// TestAnUnfitObjectKeepsWhatFits: fields that fit count for others.
func TestAnUnfitObjectKeepsWhatFits(t *testing.T) {
	u, _ := unfitObject(
		t,
		"ClusterServiceVersion",
		`{"version":"latest","replaces":"w","customresourcedefinitions":{"owned":[{"name":"as.example.com","kind":"A"}]}}`,
	)
	got, err := olmcore.Fitting(decode.Typed(u))
	require.NoError(t, err)
	want := &v1alpha1.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "1", Labels: map[string]string{"a": "b"}},
		Spec: v1alpha1.ClusterServiceVersionSpec{Replaces: "w", CustomResourceDefinitions: v1alpha1.CustomResourceDefinitions{
			Owned: []v1alpha1.CRDDescription{{Name: "as.example.com", Kind: "A"}},
		}},
	}
	require.Empty(t, cmp.Diff(olmcore.Object(want), got))
	u, _ = unfitObject(t, "ClusterServiceVersion", `{"version":"latest","Version":"newest","replaces":"w"}`)
	got, err = olmcore.Fitting(decode.Typed(u))
	require.NoError(t, err)
	require.Equal(t, "w", got.(*v1alpha1.ClusterServiceVersion).Spec.Replaces, "two spellings of a field, and neither fits")
	u.Object = map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "Spec": map[string]any{"group": "example.com"},
		"metadata": map[string]any{"name": "as.example.com", "creationTimestamp": "never"},
	}
	got, err = olmcore.Fitting(decode.Typed(u))
	require.NoError(t, err)
	require.Empty(t, got.(*apiextensionsv1.CustomResourceDefinition).Spec.Group, "the keys of a definition count as they are spelt")
}

// TestDecodingEnds: manifests come from catalogs, which tenants bring.
func TestDecodingEnds(t *testing.T) {
	for name, tt := range unfits {
		t.Run(name, func(t *testing.T) {
			_, text := unfitObject(t, tt.kind, tt.spec)
			soon(t, "decoding", func() {
				if o, err := decode.Decode(text); err == nil {
					t.Errorf("got %v", o)
				}
			})
		})
	}
	soon(t, "decoding", func() {
		if _, err := decode.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"overhead":{"cpu":1e-100000000}}}`)); err != nil {
			t.Error("a number that is none to speak of", err)
		}
	})
	o, err := decode.Decode(
		[]byte(
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource",` +
				`"spec":{"displayName":"1e2147483647","grpcPodConfig":{"memoryTarget":"1e09"}}}`,
		),
	)
	require.NoError(t, err, "a name is no quantity, and usual ones are read")
	require.EqualValues(t, 1e9, o.(*v1alpha1.CatalogSource).Spec.GrpcPodConfig.MemoryTarget.Value())
}
