// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func TestComponentLabelKey(t *testing.T) {
	long := strings.Repeat("p", 60)
	for name, tt := range map[string]struct{ pkg, namespace, want string }{
		"package and namespace":                   {"etcd", "ops", "operators.coreos.com/etcd.ops"},
		"a package alone":                         {"etcd", "", "operators.coreos.com/etcd"},
		"cut to 63 bytes":                         {long, "namespace", "operators.coreos.com/" + long + ".na"},
		"63 bytes are not cut":                    {long, "ab", "operators.coreos.com/" + long + ".ab"},
		"what the cut leaves at the end is cut":   {strings.Repeat("p", 61) + "--", "ns", "operators.coreos.com/" + strings.Repeat("p", 61)},
		"a dot at the cut is cut":                 {strings.Repeat("p", 62), "ns", "operators.coreos.com/" + strings.Repeat("p", 62)},
		"upper case is a valid label name":        {"Etcd", "ops", "operators.coreos.com/Etcd.ops"},
		"underscores and dots within are allowed": {"a_b.c", "ops", "operators.coreos.com/a_b.c.ops"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := olmcore.ComponentLabelKey(tt.pkg, tt.namespace)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	for name, pkg := range map[string]string{
		"empty": "", "only separators": strings.Repeat("-._", 30), "a space": "a b", "a slash": "a/b",
		"not ASCII": "größe", "invalid UTF-8": "a\xff", "a leading dash": "-a",
	} {
		_, err := olmcore.ComponentLabelKey(pkg, "ns")
		var input *olmcore.InputError
		require.True(t, errors.As(err, &input), name)
		require.Equal(t, "package", input.Field)
	}
	_, err := olmcore.ComponentLabelKey("etcd", "no namespace")
	var input *olmcore.InputError
	require.ErrorAs(t, err, &input)
	require.Equal(t, "namespace", input.Field)
}

func TestComponentLabelKeyIsAlwaysAValidKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, err := olmcore.ComponentLabelKey(rapid.String().Draw(t, "package"), rapid.StringMatching(`[a-z0-9-]{0,63}`).Draw(t, "namespace"))
		if err == nil {
			require.Empty(t, validation.IsQualifiedName(key))
			require.True(t, utf8.ValidString(key))
		}
	})
}

func TestOwnerLabels(t *testing.T) {
	csv := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ops", Name: "etcd.v1", UID: "1"}
	require.Empty(t, cmp.Diff(map[string]string{
		"olm.owner": "etcd.v1", "olm.owner.namespace": "ops", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.uid": "1",
	}, csv.Labels()))
	back, ok := olmcore.OwnerOf(csv.Labels())
	require.True(t, ok)
	require.Equal(t, csv, back)

	without := csv
	without.UID = ""
	other := csv
	other.UID = "2"
	require.True(t, csv.Owns(without.Labels()), "an object that OLM made has no UID label")
	require.True(t, without.Owns(csv.Labels()))
	require.False(t, csv.Owns(other.Labels()), "the UID is a veto")
	require.False(t, csv.Owns(nil))
	require.False(t, csv.Owns(map[string]string{"olm.owner": "etcd.v1"}))
}

func TestMergeMaps(t *testing.T) {
	have := map[string]string{"a": "1"}
	same, changed := olmcore.MergeMaps(have, map[string]string{"a": "1"})
	require.False(t, changed)
	require.Equal(t, have, same)
	merged, changed := olmcore.MergeMaps(have, map[string]string{"a": "2", "b": ""})
	require.True(t, changed)
	require.Equal(t, map[string]string{"a": "2", "b": ""}, merged)
	require.Equal(t, map[string]string{"a": "1"}, have)
	merged, changed = olmcore.MergeMaps(nil, map[string]string{"b": ""})
	require.True(t, changed)
	require.Equal(t, map[string]string{"b": ""}, merged)
}

func TestIndexTerms(t *testing.T) {
	labelled := metav1.ObjectMeta{Labels: map[string]string{"b": "2", "olm.owner": "", "olm.owner.kind": "x", "job-name": "y", "operators.coreos.com/p.a": "", "operators.coreos.com/q.a": "", "operators.coreos.com/r": ""}}
	require.Equal(t, []string{"olm.owner.kind", "olm.owner=", "operators.coreos.com/*.a", "operators.coreos.com/*r"}, olmcore.IndexTerms(&rbacv1.ClusterRole{ObjectMeta: labelled}))
	require.Equal(t, []string{"job-name=y", "operators.coreos.com/*.a", "operators.coreos.com/*r"}, olmcore.IndexTerms(&corev1.Pod{ObjectMeta: labelled}), "nobody looks for Pods by their owner")
	require.Empty(t, olmcore.IndexTerms(&corev1.Pod{}))
	role, pod, configMap := rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("ConfigMap")
	namespace := corev1.SchemeGroupVersion.WithKind("Namespace")
	for _, tt := range []struct {
		kind           schema.GroupVersionKind
		selector, want string
	}{
		{role, "", ""}, {role, "olm.owner=1", "olm.owner=1"}, {role, "olm.owner==1", "olm.owner=1"}, {role, "olm.owner in (1)", "olm.owner=1"}, {role, "olm.owner in (1,2)", ""},
		{role, "olm.owner", ""}, {role, "!olm.owner", ""}, {role, "olm.owner!=1", ""}, {role, "olm.owner notin (1)", ""}, {role, "a=1", ""}, {role, "a", ""},
		{role, "olm.owner.kind", "olm.owner.kind"}, {role, "olm.owner.kind=1", "olm.owner.kind"}, {pod, "olm.owner=1", ""}, {pod, "a=1,job-name=2", "job-name=2"}, {role, "job-name=2", ""},
		{namespace, "!a,olm.operatorgroup.uid/1", "olm.operatorgroup.uid/1"}, {namespace, "!olm.operatorgroup.uid/1", ""},
		{pod, "operators.coreos.com/p.a", "operators.coreos.com/*.a"}, {role, "operators.coreos.com/p.b.a=", "operators.coreos.com/*.a"},
		// Of several the one that the fewest objects have.
		{role, "olm.owner.kind,olm.owner=2", "olm.owner=2"}, {role, "olm.owner=1,olm.owner.namespace=a", "olm.owner=1"}, {role, "olm.owner.kind=x,olm.owner.namespace=a", "olm.owner.namespace=a"},
		{role, "olm.managed=true,olm.owner.kind=x", "olm.owner.kind"}, {configMap, "olm.managed=true,operators.coreos.com/p.a", "operators.coreos.com/*.a"},
		{configMap, "olm.managed=true,olm.owner in (1,2)", "olm.managed=true"}, {configMap, "olm.managed=true,a=1", "olm.managed=true"},
	} {
		parsed, err := labels.Parse(tt.selector)
		require.NoError(t, err)
		require.Equal(t, tt.want, olmcore.IndexTerm(tt.kind, parsed), "%s by %s", tt.kind.Kind, tt.selector)
	}
	require.Empty(t, olmcore.IndexTerm(role, labels.Nothing()))
	require.Empty(t, olmcore.IndexTerm(role, nil))
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
		o := olmcore.NewObject(rapid.SampledFrom(olmcore.Kinds()).Draw(t, "kind").GroupVersionKind)
		o.SetLabels(have)
		term := olmcore.IndexTerm(olmcore.GVKOf(o), selector)
		if selector.Matches(labels.Set(have)) && term != "" {
			require.Contains(t, olmcore.IndexTerms(o), term)
		}
	})
}
