// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
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

	got, err := olmcore.Typed(pod)
	require.NoError(t, err)
	require.Same(t, pod, got)
	got, err = olmcore.Typed(widget)
	require.NoError(t, err)
	require.Same(t, widget, got)
	got, err = olmcore.Typed(source)
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.UpdateStrategy{}, got.(*v1alpha1.CatalogSource).Spec.UpdateStrategy)
	got, err = olmcore.Typed((*unstructured.Unstructured)(nil))
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = olmcore.Typed(broken)
	require.ErrorContains(t, err, "read Pod a/p: ")
	require.Same(t, pod, olmcore.Kept(pod))
	require.Same(t, widget, olmcore.Kept(widget))
	typed, err := olmcore.Typed(source)
	require.NoError(t, err)
	require.Equal(t, typed, olmcore.Kept(source))
}

func TestItems(t *testing.T) {
	pod := func(namespace, name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, tt := range map[string]struct {
		list runtime.Object
		want []string
	}{
		"a typed list":   {&corev1.PodList{Items: []corev1.Pod{pod("b", "a"), pod("a", "c"), pod("a", "b")}}, []string{"Pod a/b", "Pod a/c", "Pod b/a"}},
		"a list of maps": {&unstructured.UnstructuredList{Items: []unstructured.Unstructured{*asMap("v1", "Pod", "b", "a"), *asMap("v1", "Pod", "a", "b")}}, []string{"Pod a/b", "Pod b/a"}},
		"an empty list":  {&corev1.PodList{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := olmcore.Items(tt.list)
			require.NoError(t, err)
			var got []string
			for _, o := range objects {
				require.IsType(t, &corev1.Pod{}, o)
				got = append(got, olmcore.KeyOf(o).String())
			}
			require.Equal(t, tt.want, got)
		})
	}
	_, err := olmcore.Items(&corev1.Pod{})
	require.Error(t, err)
	_, err = olmcore.Items(&metav1.APIGroupList{Groups: []metav1.APIGroup{{}}})
	require.Error(t, err)
	broken := asMap("v1", "Pod", "a", "p")
	broken.Object["spec"] = "none"
	objects, err := olmcore.Items(&unstructured.UnstructuredList{Items: []unstructured.Unstructured{*broken}})
	require.NoError(t, err)
	require.Equal(t, "Pod a/p", olmcore.KeyOf(objects[0]).String())
}

func TestIndexTerms(t *testing.T) {
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"b": "2", "olm.owner": "", "olm.owner.kind": "x", "job-name": "y", "operators.coreos.com/p.a": "", "operators.coreos.com/q.a": "", "operators.coreos.com/r": ""}}}
	require.Equal(t, []string{"job-name=y", "olm.owner.kind", "olm.owner=", "operators.coreos.com/*.a", "operators.coreos.com/*r"}, olmcore.IndexTerms(o))
	require.Empty(t, olmcore.IndexTerms(&corev1.Pod{}))
	for selector, want := range map[string]string{
		"": "", "olm.owner=1": "olm.owner=1", "olm.owner==1": "olm.owner=1", "olm.owner in (1)": "olm.owner=1", "olm.owner in (1,2)": "", "olm.owner": "",
		"!olm.owner": "", "olm.owner!=1": "", "olm.owner notin (1)": "", "a=1": "", "a": "", "olm.owner.kind": "olm.owner.kind", "olm.owner.kind=1": "olm.owner.kind",
		"olm.owner.kind,olm.owner=2": "olm.owner=2", "a=1,job-name=2": "job-name=2", "!a,olm.operatorgroup.uid/1": "olm.operatorgroup.uid/1",
		"!olm.operatorgroup.uid/1": "", "operators.coreos.com/p.a": "operators.coreos.com/*.a", "operators.coreos.com/p.b.a=": "operators.coreos.com/*.a",
		// Of several the one that the fewest objects have.
		"olm.managed=true,olm.owner=1": "olm.owner=1", "olm.copiedFrom=a,olm.managed=true": "olm.copiedFrom=a", "olm.copiedFrom=a,olm.owner=1": "olm.owner=1",
		"olm.owner=1,olm.owner.namespace=a": "olm.owner=1", "olm.owner.kind=x,olm.owner.namespace=a": "olm.owner.namespace=a", "olm.managed=true,olm.owner.kind=x": "olm.managed=true",
		"olm.managed=true,operators.coreos.com/p.a": "operators.coreos.com/*.a", "olm.managed=true,operatorframework.io/bundle-unpack-ref=1": "operatorframework.io/bundle-unpack-ref=1",
		"olm.managed=true,olm.owner in (1,2)": "olm.managed=true", "olm.managed=true,a=1": "olm.managed=true",
	} {
		parsed, err := labels.Parse(selector)
		require.NoError(t, err)
		require.Equal(t, want, olmcore.IndexTerm(parsed), selector)
	}
	require.Empty(t, olmcore.IndexTerm(labels.Nothing()))
	require.Empty(t, olmcore.IndexTerm(nil))
}

// TestAnIndexLosesNothing: an object that a selector takes has the selector's term.
func TestAnIndexLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.MapOf(rapid.SampledFrom([]string{"olm.owner", "olm.owner.kind", "c", "operators.coreos.com/p.a", "operators.coreos.com/q"}), rapid.SampledFrom([]string{"", "1", "2"})).Draw(t, "labels")
		requirement := rapid.SampledFrom([]string{
			"olm.owner", "!olm.owner.kind", "c=1", "olm.owner.kind==2", "olm.owner in (1)", "olm.owner in (1,2)", "olm.owner notin (2)", "olm.owner.kind!=1", "olm.owner=",
			"olm.owner.kind in ()", "olm.owner.kind", "olm.owner.kind in (1,2)", "olm.owner=1",
			"operators.coreos.com/p.a", "operators.coreos.com/q=1", "operators.coreos.com/q in (1,2)", "!operators.coreos.com/p.a",
		})
		text := ""
		for i, r := range rapid.SliceOfN(requirement, 0, 4).Draw(t, "selector") {
			if i > 0 {
				text += ","
			}
			text += r
		}
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		term := olmcore.IndexTerm(selector)
		if selector.Matches(labels.Set(have)) && term != "" {
			require.Contains(t, olmcore.IndexTerms(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: have}}), term)
		}
	})
}

// TestAddToScheme: what NewObject makes is what the scheme makes, and there is a list for each.
func TestAddToScheme(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, olmcore.AddToScheme(s))
	typed := 0
	for gvk := range s.AllKnownTypes() {
		o := olmcore.NewObject(gvk)
		if _, unknown := o.(*unstructured.Unstructured); unknown {
			continue
		}
		typed++
		made, err := s.New(gvk)
		require.NoError(t, err)
		require.IsType(t, o, made)
		require.True(t, s.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")), gvk)
		requireBlank(t, s, gvk, gvk.Group != v1alpha1.GroupName)
	}
	require.Equal(t, 29, typed, "the kinds that the library knows")
	requireBlank(t, s, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, false)
}

// requireBlank: blank objects and lists are of the kind that was asked for.
func requireBlank(t *testing.T, s *runtime.Scheme, gvk schema.GroupVersionKind, typed bool) {
	o, list := olmcore.Blank(gvk), olmcore.BlankList(s, gvk)
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
