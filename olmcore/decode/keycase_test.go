// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func TestKeysCountInAnyCase(t *testing.T) {
	const csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",`
	for name, tt := range map[string]struct {
		text string
		want map[string]any // what the fields are then
		keys []decode.KeyCase
	}{
		"as the API has it": {
			csv + `"metadata":{"name":"a"},"spec":{"minKubeVersion":"1.30.0"}}`,
			map[string]any{"spec.minKubeVersion": "1.30.0"}, nil,
		},
		"another case": {
			csv + `"metadata":{"name":"a"},"spec":{"MinKubeVersion":"1.30.0"}}`,
			map[string]any{"spec.minKubeVersion": "1.30.0"},
			[]decode.KeyCase{{Path: "spec.MinKubeVersion", Field: "minKubeVersion"}},
		},
		"both": {
			csv + `"metadata":{"name":"a"},"spec":{"minKubeVersion":"1.30.0","MinKubeVersion":"1.20.0"}}`,
			map[string]any{"spec.minKubeVersion": "1.30.0"},
			[]decode.KeyCase{{Path: "spec.MinKubeVersion", Field: "minKubeVersion", Ignored: true}},
		},
		"two others": {
			csv + `"metadata":{"name":"a"},"spec":{"MINKUBEVERSION":"1.30.0","minkubeversion":"1.20.0"}}`,
			map[string]any{"spec.minKubeVersion": "1.20.0"},
			[]decode.KeyCase{
				{Path: "spec.MINKUBEVERSION", Field: "minKubeVersion", Ignored: true},
				{Path: "spec.minkubeversion", Field: "minKubeVersion"},
			},
		},
		"on the way and in lists": {
			csv + `"Metadata":{"Name":"a","labels":{"A":"1","a":"2"}},"Spec":{"Install":{"spec":{"permissions":[{"serviceaccountname":"x"}]}}}}`,
			map[string]any{
				"metadata.name": "a", "metadata.labels.A": "1", "metadata.labels.a": "2", "spec.install.spec.permissions.0.serviceAccountName": "x",
			},
			[]decode.KeyCase{
				{Path: "Metadata", Field: "metadata"}, {Path: "Metadata.Name", Field: "name"}, {Path: "Spec", Field: "spec"},
				{Path: "Spec.Install", Field: "install"}, {Path: "Spec.Install.spec.permissions[0].serviceaccountname", Field: "serviceAccountName"},
			},
		},
		"fields of embedded types": {
			`{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"v","ConfigMap":{"Name":"c"}}]}}`,
			map[string]any{"spec.volumes.0.configMap.name": "c"},
			[]decode.KeyCase{{Path: "spec.volumes[0].ConfigMap", Field: "configMap"}, {Path: "spec.volumes[0].ConfigMap.Name", Field: "name"}},
		},
		"an update strategy": {
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","spec":{"UpdateStrategy":{"RegistryPoll":{"interval":"45m"}}}}`,
			map[string]any{"spec.updateStrategy.registryPoll.interval": "45m"},
			[]decode.KeyCase{
				{Path: "spec.UpdateStrategy", Field: "updateStrategy"}, {Path: "spec.UpdateStrategy.RegistryPoll", Field: "registryPoll"},
			},
		},
		"a CustomResourceDefinition": {
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"Group":"a.b","scope":"Cluster"}}`,
			map[string]any{"spec.scope": "Cluster", "spec.group": ""},
			[]decode.KeyCase{{Path: "spec.Group", Field: "group", Ignored: true}},
		},
		"a kind without a Go type": {
			`{"apiVersion":"a.b/v1","kind":"Widget","spec":{"Size":"1"}}`,
			map[string]any{"spec.Size": "1"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, keys, err := decode.DecodeKeys([]byte(tt.text))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.keys, keys))
			checkFields(t, tt.want, o)

			var m map[string]any
			require.NoError(t, json.Unmarshal([]byte(tt.text), &m))
			before, err := json.Marshal(m)
			require.NoError(t, err)
			again := olmcore.NewObject(olmcore.GVKOf(o))
			require.NoError(t, decode.FromMap(m, again))
			require.Empty(t, cmp.Diff(o, again))
			after, err := json.Marshal(m)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), "the map is the caller's")
		})
	}
}

// checkFields looks fields up by their path.
func checkFields(t *testing.T, want map[string]any, o olmcore.Object) {
	t.Helper()
	m, err := olmcore.ToMap(o)
	require.NoError(t, err)
	for path, value := range want {
		var at any = m
		for _, key := range strings.Split(path, ".") {
			if list, ok := at.([]any); ok {
				at = list[key[0]-'0']
				continue
			}
			at = at.(map[string]any)[key]
		}
		require.Equal(t, value, at, path)
	}
}

func TestKeyCaseSaysWhatBecameOfIt(t *testing.T) {
	require.Equal(t, "spec.A is read as a, which an API server does not", decode.KeyCase{Path: "spec.A", Field: "a"}.String())
	require.Equal(t, "spec.A is ignored: the field is called a", decode.KeyCase{Path: "spec.A", Field: "a", Ignored: true}.String())
}

// mangle changes the case of some keys that no other key of the map has in any case.
func mangle(t *rapid.T, value any) any {
	switch x := value.(type) {
	case []any:
		for i := range x {
			x[i] = mangle(t, x[i])
		}
	case map[string]any:
		next := make(map[string]any, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			other := rapid.SampledFrom([]string{key, key, strings.ToUpper(key), strings.ToLower(key)}).Draw(t, "key")
			next[other] = mangle(t, x[key])
		}
		return next
	}
	return value
}

// TestAnyCaseDecodesAsEncodingJSONDoes compares with encoding/json on objects whose keys were spelt in any case.
func TestAnyCaseDecodesAsEncodingJSONDoes(t *testing.T) {
	type zoo struct {
		Subscription *v1alpha1.Subscription
		Group        *operatorsv1.OperatorGroup
		Service      *corev1.Service
	}
	rapid.Check(t, func(t *rapid.T) {
		drawn := gen.Value[zoo](gen.Vocabulary{
			Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Namespace: "ns", Names: []string{"a", "b"},
		}).Draw(t, "objects")
		for _, o := range []olmcore.Object{drawn.Subscription, drawn.Group, drawn.Service} {
			if reflect.ValueOf(o).IsNil() {
				continue
			}
			m, err := olmcore.ToMap(o)
			require.NoError(t, err)
			apiVersion, kind := m["apiVersion"], m["kind"]
			m = mangle(t, m).(map[string]any)
			for _, key := range []string{"APIVERSION", "apiversion", "KIND"} {
				delete(m, key)
			}
			m["apiVersion"], m["kind"] = apiVersion, kind
			text, err := json.Marshal(m)
			require.NoError(t, err)
			compareWithEncodingJSON(t, text)
		}
	})
}

func compareWithEncodingJSON(t require.TestingT, text []byte) {
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal(text, &meta))
	want := olmcore.NewObject(meta.GroupVersionKind())
	refused := json.Unmarshal(text, want)
	got, _, err := decode.DecodeKeys(text)
	require.Equal(t, refused == nil, err == nil, "%v\n%v", refused, err)
	if err != nil {
		return
	}
	require.True(t, apiequality.Semantic.DeepEqual(want, got), "%s\n%s", text, cmp.Diff(want, got))
}

// TestPublishedManifestsDecodeAsEncodingJSONDoes: two of the operators spell keys in a case of their own.
func TestPublishedManifestsDecodeAsEncodingJSONDoes(t *testing.T) {
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "bundles", "*", "*", "manifests", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		operator := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(text, []byte("\nkind: CustomResourceDefinition\n")) {
			continue // these are decoded as an API server does
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			text, err := yamljson.Convert(document)
			require.NoError(t, err)
			if string(text) == "null" {
				continue
			}
			o, keys, err := decode.DecodeKeys(text)
			require.NoError(t, err, file)
			for _, key := range keys {
				found[operator+" "+key.Path] = true
			}
			if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok && operator == "strimzi-kafka-operator" {
				require.Equal(t, "1.30.0", c.Spec.MinKubeVersion)
			}
			if olmcore.GVKOf(o).Kind != "CustomResourceDefinition" {
				compareWithEncodingJSON(t, text)
			}
		}
	}
	for _, path := range []string{
		"strimzi-kafka-operator spec.MinKubeVersion", "project-quay spec.customresourcedefinitions.owned[0].resources[4].Kind",
	} {
		require.True(t, found[path], found)
	}
}
