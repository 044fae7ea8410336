// SPDX-License-Identifier: Apache-2.0

package objecthash_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/internal/objecthash"
)

type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

var podsRule = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}

func TestHashedNameGivesTheNamesOfARunningCluster(t *testing.T) {
	role := struct {
		Name       string     `json:"name"`
		Permission permission `json:"permission"`
	}{"etcdoperator.v0.9.4", permission{"etcd-operator", podsRule}}
	clusterRole := struct {
		Name       string     `json:"name"`
		Namespace  string     `json:"namespace"`
		Permission permission `json:"permission"`
	}{"etcdoperator.v0.9.4", "operators", permission{"etcd-operator", podsRule}}
	for want, in := range map[string]struct {
		base string
		v    any
	}{
		"myname-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT":                   {"myname", []string{"something"}},
		"namenamenamenamenamename-6XtefCelEzfYlFOD1fARIK5vhWVfWfGHja7H3q": {strings.Repeat("name", 100), []string{"something", "else"}},
		// 64 bytes: OLM does not cut a name of exactly 63.
		"aaaaaaaaaaaaaaaaaaaaaaaaa-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT": {strings.Repeat("a", 25), []string{"something"}},
		"etcdoperator.v0.9.4-etcd--UPL9qybYw5qrYAElycSSJ9bPP0DI8BLbIyyfv":  {"etcdoperator.v0.9.4-etcd-operator", role},
		"etcdoperator.v0.9.4-6Vb3QRK7gzRbhiWg4W5KtuKTxUZR1wpfErMHnA":       {"etcdoperator.v0.9.4", clusterRole},
	} {
		got, err := objecthash.HashedName(in.base, in.v)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestPermissionHashesAreOLMs(t *testing.T) {
	got, err := objecthash.HashWithoutNewline(podsRule)
	require.NoError(t, err)
	require.Equal(t, "11rrkxEvVvfh9HkCh7cyssbBqZFy9B7koZklln", got)

	binding := struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{
		rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role",
			Name: "etcdoperator.v0.9.4-etcd--UPL9qybYw5qrYAElycSSJ9bPP0DI8BLbIyyfv"},
		[]rbacv1.Subject{{Kind: "ServiceAccount", Name: "etcd-operator", Namespace: "operators"}},
	}
	got, err = objecthash.HashWithoutNewline(binding)
	require.NoError(t, err)
	require.Equal(t, "4rXGURgp0ZBIdtsYIx9vlSZqfBIQpiZXMFmDex", got)
}

func TestCanonicalJSONSortsKeysAndEscapesNothing(t *testing.T) {
	got, err := objecthash.CanonicalJSON(map[string]any{"b": "<&>", "a": []any{int64(1), nil}})
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,null],"b":"<&>"}`, string(got))
	var back map[string]any
	require.NoError(t, json.Unmarshal(got, &back))
}

func TestHashOfWhatJSONCannotHoldIsAnError(t *testing.T) {
	for _, hash := range []func(any) (string, error){objecthash.Hash, objecthash.HashWithoutNewline,
		func(v any) (string, error) { return objecthash.HashedName("x", v) }} {
		_, err := hash(make(chan int))
		require.Error(t, err)
	}
}
