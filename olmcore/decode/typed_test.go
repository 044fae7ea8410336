// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func asMap(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func TestTyped(t *testing.T) {
	pod, widget := &corev1.Pod{}, asMap("example.com/v1", "Widget", "a", "w")
	source := asMap("operators.coreos.com/v1alpha1", "CatalogSource", "a", "c")
	source.Object["spec"] = map[string]any{"updateStrategy": map[string]any{}}
	broken := asMap("v1", "Pod", "a", "p")
	broken.Object["spec"] = "none"

	got, err := decode.Typed(pod)
	require.NoError(t, err)
	require.Same(t, pod, got)
	got, err = decode.Typed(widget)
	require.NoError(t, err)
	require.Same(t, widget, got)
	got, err = decode.Typed(source)
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.UpdateStrategy{}, got.(*v1alpha1.CatalogSource).Spec.UpdateStrategy)
	got, err = decode.Typed((*unstructured.Unstructured)(nil))
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = decode.Typed(broken)
	require.ErrorContains(t, err, "read Pod a/p: ")
	require.Same(t, pod, decode.Kept(pod))
	require.Same(t, widget, decode.Kept(widget))
	typed, err := decode.Typed(source)
	require.NoError(t, err)
	require.Equal(t, typed, decode.Kept(source))
}

func TestItems(t *testing.T) {
	pod := func(namespace, name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, tt := range map[string]struct {
		list runtime.Object
		want []string
	}{
		"a typed list": {
			&corev1.PodList{Items: []corev1.Pod{pod("b", "a"), pod("a", "c"), pod("a", "b")}}, []string{"Pod a/b", "Pod a/c", "Pod b/a"},
		},
		"a list of maps": {
			&unstructured.UnstructuredList{Items: []unstructured.Unstructured{*asMap("v1", "Pod", "b", "a"), *asMap("v1", "Pod", "a", "b")}},
			[]string{"Pod a/b", "Pod b/a"},
		},
		"an empty list": {&corev1.PodList{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := decode.Items(tt.list)
			require.NoError(t, err)
			var got []string
			for _, o := range objects {
				require.IsType(t, &corev1.Pod{}, o)
				got = append(got, olmcore.KeyOf(o).String())
			}
			require.Equal(t, tt.want, got)
		})
	}
	_, err := decode.Items(&corev1.Pod{})
	require.Error(t, err)
	_, err = decode.Items(&metav1.APIGroupList{Groups: []metav1.APIGroup{{}}})
	require.Error(t, err)
	broken := asMap("v1", "Pod", "a", "p")
	broken.Object["spec"] = "none"
	objects, err := decode.Items(&unstructured.UnstructuredList{Items: []unstructured.Unstructured{*broken}})
	require.NoError(t, err)
	require.Equal(t, "Pod a/p", olmcore.KeyOf(objects[0]).String())
}

// TestAddToSchemeAddsEveryKindWithAGoType also checks that clients can read the kinds into blank objects.
func TestAddToSchemeAddsEveryKindWithAGoType(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, decode.AddToScheme(s))
	for _, k := range olmcore.Kinds() {
		gvk := k.GroupVersionKind
		if k.NewList() == nil {
			require.False(t, s.Recognizes(gvk), gvk)
			continue
		}
		created, err := s.New(gvk)
		require.NoError(t, err)
		require.IsType(t, olmcore.NewObject(gvk), created)
		require.True(t, s.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")), gvk)
		require.True(t, s.Recognizes(gvk.GroupVersion().WithKind("ListOptions")), gvk)
		requireBlank(t, s, gvk, gvk.Group != v1alpha1.GroupName)
	}
	requireBlank(t, s, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, false)
}

// requireBlank checks that blank objects and lists have the requested kind, and whether they have its Go type.
func requireBlank(t *testing.T, s *runtime.Scheme, gvk schema.GroupVersionKind, typed bool) {
	o, list := decode.Blank(gvk), decode.BlankList(s, gvk)
	_, objectIsMap := o.(*unstructured.Unstructured)
	_, listHoldsMaps := list.(*unstructured.UnstructuredList)
	require.Equal(t, typed, !objectIsMap, gvk)
	require.Equal(t, typed, !listHoldsMaps, gvk)
	require.Equal(t, gvk, olmcore.GVKOf(o))
	if listHoldsMaps {
		require.Equal(t, gvk.Kind+"List", list.GetObjectKind().GroupVersionKind().Kind)
		return
	}
	kinds, _, err := s.ObjectKinds(list)
	require.NoError(t, err)
	require.Contains(t, kinds, gvk.GroupVersion().WithKind(gvk.Kind+"List"))
}
