// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// load reads the content of a ConfigMap.
func load(cm *corev1.ConfigMap) (olmcore.Bundle, []olmcore.Diagnostic, error) {
	files, err := bundle.FilesOf(cm)
	if err != nil {
		return olmcore.Bundle{}, nil, err
	}
	content := bundle.ContentOf(cm, files)
	return content.Bundle, content.Found, nil
}

func TestBundleContentDoesNotDependOnItsEncoding(t *testing.T) {
	cm := Filled(map[string]string{
		"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}\n",
		"a.yaml": EtcdCSV, "annotations.yaml": "annotations: {a: b}\n", "README.md": "- x\n: y", "bad.yaml": "{",
	})
	bundle, found, err := load(cm)
	require.NoError(t, err)
	require.Equal(t, BundleImage, bundle.Image)
	require.Len(t, bundle.Objects, 2)
	require.Equal(t, "etcd.v1", bundle.Objects[0].GetName(), "in the order of the keys")
	Same(t, []string{"ExtraDocumentsIgnored", "ManifestSkipped"}, Reasons(olmcore.Result{Diagnostics: found}))

	bundle, found, err = load(Filled(map[string]string{"a.yaml": strings.Replace(EtcdCSV, "spec: {", "spec: {MinKubeVersion: 1.30.0, ", 1)}))
	require.NoError(t, err)
	require.Equal(t, "1.30.0", bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.MinKubeVersion)
	require.Len(t, found, 1)
	require.Equal(t, installplan.ReasonKeyCase, found[0].Reason)
	require.Equal(t, "a.yaml: spec.MinKubeVersion is read as minKubeVersion, which an API server does not", found[0].Message)

	packed := Filled(nil)
	packed.Annotations["olm.contentEncoding"] = "gzip+base64"
	packed.BinaryData = map[string][]byte{"a.yaml": Zipped(t, EtcdCSV)}
	bundle, _, err = load(packed)
	require.NoError(t, err)
	require.Len(t, bundle.Objects, 1)
	plain := unpackRound(t, unpacking(t, loaded(map[string]string{"a.yaml": EtcdCSV}))).Digest
	require.Equal(t, plain, unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = packed })).Digest, "the encoding is no part of the content")
	require.NotEqual(t, plain, unpackRound(t, unpacking(t, loaded(map[string]string{"a.yaml": EtcdCSV + "\n"}))).Digest)

	packed.BinaryData["a.yaml"] = []byte("no gzip")
	_, _, err = load(packed)
	require.Error(t, err)
}

// TestJSONManifestsKeepNumbersAndEscapes checks that a JSON manifest is parsed as JSON, so that fractions and escapes
// that YAML does not know are kept.
func TestJSONManifestsKeepNumbersAndEscapes(t *testing.T) {
	bundle, found, err := load(Filled(map[string]string{
		"a.json": ` {"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},
			"spec":{"displayName":"\ud83d\ude00","install":{"strategy":"deployment","spec":{"deployments":[{"name":"d","spec":{"replicas":2.0}}]}}}}`,
		"b.json": `{"Kind":"ServiceAccount","metadata":{"name":"b"}}`,
		"c.json": `["no manifest"]`,
		"d.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"yaml"}, data: {a: b}}`,
	}))
	require.NoError(t, err)
	require.Len(t, bundle.Objects, 3)
	csv := bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
	require.Equal(t, "\U0001f600", csv.Spec.DisplayName)
	require.Equal(t, int32(2), *csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas)
	require.Equal(t, &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "b"}}, bundle.Objects[1])
	require.Equal(t, map[string]string{"a": "b"}, bundle.Objects[2].(*corev1.ConfigMap).Data)
	Same(t, []string{"KeyCase", "ManifestSkipped"}, Reasons(olmcore.Result{Diagnostics: found}))
}

// TestUnpackedBundleContainsItsObjects checks the objects of a bundle whose Job is complete.
//
// OLM's case: a finished Job: the bundle's objects, no longer pending.
func TestUnpackedBundleContainsItsObjects(t *testing.T) {
	c := unpackWorld(t, nil)
	l := Lookup(t)
	l.Path = "quay.io/operatorhubio/etcd@sha256:0123"
	l.Properties = `{"properties":[{"type":"olm.package","value":{"packageName":"etcd"}}]}`
	unpackedSoFar(t, c, l)
	jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	crds := []string{"backups.example.com", "clusters.example.com"}
	require.NoError(t, fake.Edit(c, "olm", jobs[0].Name, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{"olm.sourceImage": l.Path}
		cm.Data = map[string]string{"csv.yaml": EtcdCSV}
		for _, name := range crds {
			cm.Data[name+".yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
		}
	}))
	require.NoError(t, c.Job("olm", jobs[0].Name).Finish(""))
	out, _ := unpackedSoFar(t, c, l)
	require.Empty(t, ConditionsOf(out.Lookup), "it is not pending any more")
	require.Equal(t, corev1.ConditionTrue, out.Lookup.GetCondition("BundleLookupNotPersisted").Status, "the plan removes it")
	var got []string
	for _, o := range out.Bundle.Objects {
		got = append(got, olmcore.KeyOf(o).Kind+" "+o.GetName())
	}
	require.Equal(t, []string{"CustomResourceDefinition backups.example.com", "CustomResourceDefinition clusters.example.com", "ClusterServiceVersion etcd.v1"}, got)
	require.Equal(t, []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"etcd"}`)}}, out.Bundle.Properties)
	require.Equal(t, l.Path, out.Bundle.Image)
}

// TestManifestsWithoutKindOrAPIVersion checks that a missing apiVersion follows from the kind if the kind is known, and
// that manifests that OLM refuses are refused with its message.
func TestManifestsWithoutKindOrAPIVersion(t *testing.T) {
	const rest = "\nmetadata: {name: x}\n"
	for name, c := range map[string]struct {
		text, want string
		reasons    []string
	}{
		"no apiVersion":                   {"kind: Role" + rest, "rbac.authorization.k8s.io/v1, Kind=Role", nil},
		"no apiVersion, a Secret":         {"kind: Secret" + rest, "/v1, Kind=Secret", nil},
		"no apiVersion, a kind of others": {"kind: Gizmo" + rest, "", []string{unpack.ReasonManifestSkipped}},
		"no kind: no manifest":            {"annotations: {a: b}\n", "", nil},
		"keys in another case": {
			"Kind: Role\nAPIVersion: rbac.authorization.k8s.io/v1" + rest, "rbac.authorization.k8s.io/v1, Kind=Role", []string{installplan.ReasonKeyCase, installplan.ReasonKeyCase},
		},
		"a kind of others in another case": {
			"Kind: Job\napiVersion: batch/v1" + rest, "batch/v1, Kind=Job", []string{installplan.ReasonKeyCase},
		},
		"a version without group": {
			"kind: ClusterServiceVersion\napiVersion: v1alpha1" + rest, "operators.coreos.com/v1alpha1, Kind=ClusterServiceVersion", nil,
		},
		"a version without apiVersion at all": {
			"kind: ClusterServiceVersion" + rest, "operators.coreos.com/v1alpha1, Kind=ClusterServiceVersion", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, found, err := load(&corev1.ConfigMap{ObjectMeta: Meta(BundleName), Data: map[string]string{"x.yaml": c.text}})
			require.NoError(t, err)
			Same(t, c.reasons, Reasons(olmcore.Result{Diagnostics: found}))
			if c.want == "" {
				require.Empty(t, bundle.Objects)
				return
			}
			require.Len(t, bundle.Objects, 1)
			require.Equal(t, c.want, olmcore.GVKOf(bundle.Objects[0]).String())
			require.Equal(t, "x", bundle.Objects[0].GetName())
		})
	}
}

// TestVersionWithoutAPIVersionIsRefused checks that the message is OLM's.
func TestVersionWithoutAPIVersionIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ from, message string }{
		"no apiVersion": {"", "bundle CSV etcd.v1 missing APIVersion"},
		"no group":      {"apiVersion: v1alpha1", ""},
		"another group": {"apiVersion: app.coreos.com/v1alpha1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(EtcdCSV, "apiVersion: operators.coreos.com/v1alpha1", c.from, 1)
			out := unpackRound(t, unpacking(t, loaded(map[string]string{"a.yaml": text})))
			got := out.Lookup.GetCondition(v1alpha1.BundleLookupFailed)
			require.Equal(t, c.message, got.Message)
			require.Equal(t, c.message == "", out.Bundle != nil)
			if c.message != "" {
				require.Equal(t, create.ReasonBundleInvalid, got.Reason)
			}
		})
	}
}

// TestSizeOfDecompressedBundleIsLimited checks that a ConfigMap is refused if its decompressed files are too large.
func TestSizeOfDecompressedBundleIsLimited(t *testing.T) {
	cm := Filled(nil)
	cm.Annotations["olm.contentEncoding"] = "gzip+base64"
	file := Zipped(t, strings.Repeat("#", 40<<20))
	cm.BinaryData = map[string][]byte{"a": file}
	_, _, err := load(cm)
	require.NoError(t, err)
	cm.BinaryData = map[string][]byte{"a": file, "b": file}
	_, _, err = load(cm)
	require.EqualError(t, err, "b: it is too large", "together, too")
}

func TestDigestDependsOnFileNamesAndSizes(t *testing.T) {
	digest := func(files map[string]string) string {
		files["csv.yaml"] = EtcdCSV
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = Filled(files) }))
		require.NotNil(t, out.Bundle)
		return out.Digest
	}
	seen := map[string]bool{}
	for _, files := range []map[string]string{{"a": "b"}, {"b": "b"}, {"a": "bc"}, {"ab": "c"}, {"a": "", "b": ""}, {"a": "b", "c": ""}, {"a": "bc", "d": ""}} {
		d := digest(files)
		require.False(t, seen[d], "%v", files)
		seen[d] = true
	}
}

// FuzzBundle reads arbitrary bytes as a file of a bundle, compressed or not.
func FuzzBundle(f *testing.F) {
	f.Add("csv.yaml", []byte(EtcdCSV), false)
	f.Add("csv.yaml", Zipped(f, EtcdCSV), true)
	f.Add("x.json", []byte("--- \n---\nkind: {}\n"), false)
	f.Fuzz(func(t *testing.T, name string, data []byte, packed bool) {
		cm := Filled(nil)
		cm.BinaryData = map[string][]byte{name: data}
		if packed {
			cm.Annotations["olm.contentEncoding"] = "gzip+base64"
		}
		loaded, _, err := load(cm)
		if err != nil {
			return
		}
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = cm }))
		if out.Bundle == nil {
			return
		}
		require.Equal(t, len(loaded.Objects), len(out.Bundle.Objects))
		require.NotEmpty(t, out.Digest)
		_, _ = bundle.Steps(olmcore.Operator{Name: "etcd.v1", Bundle: *out.Bundle}, NS, bundle.Literal) // it must not panic
	})
}
