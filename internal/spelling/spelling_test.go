// SPDX-License-Identifier: Apache-2.0

package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/spelling"
)

func TestNearest(t *testing.T) {
	for name, tt := range map[string]struct {
		known []string
		want  string
	}{
		"chanel":       {[]string{"channel", "config", "name"}, "channel"},
		"Subscripton":  {[]string{"InstallPlan", "Subscription"}, "Subscription"},
		"ot":           {[]string{"to", "of"}, "of"},
		"x":            {[]string{"y"}, ""},
		"stauts":       {[]string{"status", "start"}, "status"},
		"":             {[]string{"a"}, ""},
		"networkrules": {[]string{"rules"}, ""},
		"a":            {nil, ""},
		"CSV":          {[]string{"CSW", "csv"}, "csv"},
	} {
		require.Equal(t, tt.want, spelling.Nearest(name, tt.known), name)
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"kafka", "strimzi-kafka-operator", "etcd", "prometheus"}
	for wrong, want := range map[string][]string{
		"kafak": {"kafka"}, "Kafka": {"kafka", "strimzi-kafka-operator"}, "promethues": {"prometheus"}, "etc": {"etcd"}, "": nil, "redis": {},
	} {
		require.Equal(t, want, spelling.Similar(wrong, names, 3), wrong)
	}
	require.Equal(t, []string{"kafka"}, spelling.Similar("kafka", names, 1))
}

func TestEdits(t *testing.T) {
	require.Equal(t, []int{0, 1, 1, 1, 1, 3}, []int{
		spelling.Edits("abc", "abc"), spelling.Edits("abc", "ab"), spelling.Edits("abc", "abcd"), spelling.Edits("abc", "axc"), spelling.Edits("abc", "acb"), spelling.Edits("", "abc"),
	})
}

func TestNamesOfOperators(t *testing.T) {
	known := []string{"etcd", "broker", "storage"}
	for name, want := range map[string]string{"etdc": "etcd", "brokre": "broker", "storge": "storage", "storages": "storage", "kafka": "", "x": "", "": ""} {
		require.Equal(t, want, spelling.Nearest(name, known), name)
	}
	require.Equal(t, "aa", spelling.Nearest("ab", []string{"ac", "aa"}), "the first of several that are as near")
}
