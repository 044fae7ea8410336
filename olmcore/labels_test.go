// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
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

func TestMergeLabels(t *testing.T) {
	have := map[string]string{"a": "1"}
	same, changed := olmcore.MergeLabels(have, map[string]string{"a": "1"})
	require.False(t, changed)
	require.Equal(t, have, same)
	merged, changed := olmcore.MergeLabels(have, map[string]string{"a": "2", "b": ""})
	require.True(t, changed)
	require.Equal(t, map[string]string{"a": "2", "b": ""}, merged)
	require.Equal(t, map[string]string{"a": "1"}, have)
	merged, changed = olmcore.MergeLabels(nil, map[string]string{"b": ""})
	require.True(t, changed)
	require.Equal(t, map[string]string{"b": ""}, merged)
}
