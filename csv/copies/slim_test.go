// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/release"
	operatorversion "github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func TestSlimKeepsMetadataPhaseAndHashes(t *testing.T) {
	c := copyOf(source(""), "a")
	c.Finalizers, c.DeletionTimestamp, c.OwnerReferences = []string{"f"}, csvtest.Ago(time.Minute), csvtest.OwnedBy("x")
	before := c.DeepCopy()
	slim := copies.Slim(c).(*version)
	require.Empty(t, cmp.Diff(before, c), "the original object is not changed")
	require.True(t, slim.IsCopied())
	want := &version{ObjectMeta: *c.ObjectMeta.DeepCopy(), Status: v1alpha1.ClusterServiceVersionStatus{Phase: "Succeeded", Reason: "Copied"}}
	want.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ns"}
	for key := range slim.Annotations {
		if strings.HasPrefix(key, "$") {
			require.NotEmpty(t, validation.IsQualifiedName(key), "%s: an API server would take it", key)
			want.Annotations[key] = slim.Annotations[key]
		}
	}
	require.Len(t, slim.Annotations, 5)
	require.Empty(t, cmp.Diff(want, slim))
	require.Same(t, slim, copies.Slim(slim), "once")
}

func TestSlimReturnsOtherObjectsUnchanged(t *testing.T) {
	original := source("")
	itself := source("")
	itself.Labels["olm.copiedFrom"] = "ns"
	unfit := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "operators.coreos.com/v1alpha1",
			"kind":       "ClusterServiceVersion",
			"spec":       map[string]any{"version": "latest"},
		},
	}
	unfit.SetName("x")
	unfit.SetNamespace("a")
	unfit.SetLabels(map[string]string{"olm.copiedFrom": "ns"})
	for name, o := range map[string]olmcore.Object{
		"an original": original, "one that names its own namespace": itself, "another kind": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"olm.copiedFrom": "ns"}}},
		"what does not fit its type": unfit,
	} {
		require.Same(t, o, copies.Slim(o), name)
	}
	require.Nil(t, copies.Slim(nil))
}

// TestSlimOfAMapIsASlimCopy checks that Slim keeps the same part of an unstructured object.
func TestSlimOfAMapIsASlimCopy(t *testing.T) {
	c := copyOf(source(""), "a")
	c.Finalizers, c.OwnerReferences, c.DeletionTimestamp, c.CreationTimestamp = []string{
		"f",
	}, csvtest.OwnedBy(
		"x",
	), csvtest.Ago(
		time.Minute,
	), *csvtest.Ago(time.Hour)
	m, err := olmcore.ToMap(c)
	require.NoError(t, err)
	slim, ok := copies.Slim(&unstructured.Unstructured{Object: m}).(*unstructured.Unstructured)
	require.True(t, ok)
	back, err := decode.Typed(slim)
	require.NoError(t, err)
	want := copies.Slim(c).(*version)
	want.TypeMeta = back.(*version).TypeMeta
	require.Empty(t, cmp.Diff(want, back))
	require.Same(t, slim, copies.Slim(slim))
}

// contents generates copies and originals whose fields all may differ.
func contents() *rapid.Generator[*version] {
	return rapid.Custom(func(t *rapid.T) *version {
		c := gen.Value[version](gen.Vocabulary{Now: now, Namespace: "a", Names: []string{"cool.v1"}, Words: map[string][]string{
			"": {"", "x", "y", "x-"}, "phase": {"", "Succeeded", "Failed"}, "kind": {"Cool", ""},
		}}).Draw(t, "content")
		c.Spec.Release, c.Spec.Version = release.OperatorRelease{}, operatorversion.OperatorVersion{}
		if rapid.Bool().Draw(t, "released") {
			c.Spec.Release.Release, c.Spec.Version.Major = []semver.PRVersion{{VersionStr: "x"}}, 2
		}
		for i := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs { // types with their own encoding are not part of this test
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec = csvtest.DeploymentSpec("d").Spec
		}
		return &c
	})
}

// TestUpdatesOfSlimCopiesWriteTheWholeContent checks that the merge patch for a slim copy writes exactly the content of
// the original, whatever is stored, and keeps all other metadata.
func TestUpdatesOfSlimCopiesWriteTheWholeContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, stored := contents().Draw(t, "wanted"), contents().Draw(t, "stored")
		original := source("")
		original.Spec = wanted.Spec
		for k, v := range wanted.Annotations {
			if k != "olm.operatorGroup" {
				original.Annotations[k] = v
			}
		}
		original.Annotations["olm.operatorNamespace"], original.Annotations["olm.targetNamespaces"] = "ns", ""
		wanted.Status.Phase, wanted.Status.Reason = csvtest.Succeeded, ""
		original.Status = wanted.Status
		stored.Namespace, stored.Name, stored.UID, stored.ResourceVersion, stored.DeletionTimestamp = "a", "cool.v1", "copy-a", "7", nil
		stored.Labels = map[string]string{"olm.copiedFrom": "ns", "more": "x"}
		metav1.SetMetaDataAnnotation(&stored.ObjectMeta, "olm.operatorNamespace", "ns")
		data, err := json.Marshal(stored) // as it comes from an API server
		require.NoError(t, err)
		have, err := decode.Decode(
			[]byte(strings.Replace(string(data), "{", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",`, 1)),
		)
		require.NoError(t, err)

		in := world("")
		in.Sources, in.Namespaces = olmcore.Found(original), olmcore.Found(namespace("a", nil))
		for round := 0; ; round++ {
			require.Less(t, round, 3, "the updates do not lead to the desired content")
			in.Copies = olmcore.Found(copies.Slim(have).(*version))
			actions := reconciled(t, in).Actions
			if len(actions) == 0 {
				break
			}
			record, err := olmcore.RecordOf(actions[0])
			require.NoError(t, err)
			require.NotContains(t, string(record.Patch), "$copy")
			have, err = decode.Apply(record, have)
			require.NoError(t, err)
		}
		in.Copies = olmcore.Found(have.(*version))
		require.Empty(t, lines(reconciled(t, in).Result), "a whole copy with this content differs")
		require.Equal(t, stored.Finalizers, have.GetFinalizers())
		require.Empty(t, have.GetOwnerReferences())
		require.NotContains(t, have.GetLabels(), "more")
	})
}

// TestFieldsRemovedFromTheOriginalAreRemovedFromCopies uses the fake API server, which applies merge patches as a real
// one does.
func TestFieldsRemovedFromTheOriginalAreRemovedFromCopies(t *testing.T) {
	original := source("")
	stored := copyOf(original, "a")
	stored.UID, stored.ResourceVersion = "", ""
	stored.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"gone": "x"}}
	stored.Spec.Labels, stored.Spec.Maturity, stored.Spec.Icon = map[string]string{
		"gone": "x",
	}, "gone", []v1alpha1.Icon{
		{Data: "eA==", MediaType: "gone"},
	}
	stored.Annotations["gone"], stored.Labels["gone"] = "x", "x"
	original.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"new": "x"}}
	c := fake.NewCluster(now)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(stored))
	in := world("")
	in.Sources, in.Namespaces = olmcore.Found(original), olmcore.Found(namespace("a", nil))
	for range 2 {
		have, err := olmcore.Get[*version](t.Context(), c, "a", "cool.v1")
		require.NoError(t, err)
		in.Copies = olmcore.Found(copies.Slim(have).(*version))
		actions := reconciled(t, in).Actions
		require.Len(t, actions, 1)
		require.NoError(t, c.Do(t.Context(), actions[0]))
	}
	have, err := olmcore.Get[*version](t.Context(), c, "a", "cool.v1")
	require.NoError(t, err)
	want := copyOf(original, "a")
	require.Empty(t, cmp.Diff(want.Spec, have.Spec))
	require.Empty(t, cmp.Diff(want.Status, have.Status))
	require.Empty(t, cmp.Diff([]map[string]string{want.Labels, want.Annotations}, []map[string]string{have.Labels, have.Annotations}))
}

// TestScalarsContainsAllTypesEncodedAsOneValue checks that unlike knows each struct type that JSON encodes as one
// value.
func TestScalarsContainsAllTypesEncodedAsOneValue(t *testing.T) {
	marshaler := reflect.TypeFor[json.Marshaler]()
	known := []reflect.Type{
		reflect.TypeFor[operatorversion.OperatorVersion](),
		reflect.TypeFor[release.OperatorRelease](),
		reflect.TypeFor[metav1.Time](),
	}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		if slices.Contains(known, typ) || typ.Kind() == reflect.Pointer && slices.Contains(known, typ.Elem()) {
			return
		}
		require.False(t, typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler), typ)
		switch typ.Kind() {
		case reflect.Pointer:
			visit(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Slice:
		case reflect.Map:
			require.Equal(t, reflect.TypeFor[map[string]string](), typ)
		default:
			require.Fail(t, "a kind that unlike does not know", typ)
		}
	}
	visit(reflect.TypeFor[v1alpha1.ClusterServiceVersionSpec]())
	visit(reflect.TypeFor[v1alpha1.ClusterServiceVersionStatus]())
}
