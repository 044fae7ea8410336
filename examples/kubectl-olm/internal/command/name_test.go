// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestParseObject(t *testing.T) {
	for arg, want := range map[string]object{
		"etcd":               {name: "etcd"},
		"sub/etcd":           {subscriptions, "etcd"},
		"Subscriptions/etcd": {subscriptions, "etcd"},
		"ip/install-1":       {installPlans, "install-1"},
		"csv/etcd.v1":        {csvs, "etcd.v1"},
		"catsrc/community":   {catalogs, "community"},
		"catalogsource/c":    {catalogs, "c"},
		"installplans/x":     {installPlans, "x"},
		"clusterserviceversions.operators.coreos.com/x":          {csvs, "x"},
		"clusterserviceversions.v1alpha1.operators.coreos.com/x": {csvs, "x"},
	} {
		got, err := parseObject(arg)
		require.NoError(t, err, arg)
		require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(object{})))
	}
	for arg, want := range map[string]string{
		"":                              `"" is neither NAME nor TYPE/NAME`,
		"sub/":                          `"sub/" is neither NAME nor TYPE/NAME`,
		"/etcd":                         `"/etcd": the type "" is not known: it is one of subscription, installplan (ip), csv, catalogsource (catsrc)`,
		"a/b/c":                         `"a/b/c" is neither NAME nor TYPE/NAME`,
		"instalplan/x":                  `"instalplan/x": the type "instalplan" is not known: did you mean "installplan"?`,
		"subscriptions.messaging.dev/x": `"subscriptions.messaging.dev/x": the type "subscriptions.messaging.dev" is not known: it is one of subscription, installplan (ip), csv, catalogsource (catsrc)`,
	} {
		_, err := parseObject(arg)
		require.EqualError(t, err, want)
	}
}

func TestParseWay(t *testing.T) {
	subscription, bundle, err := parseWay("etcd=etcd.v1")
	require.NoError(t, err)
	require.Equal(t, []string{"etcd", "etcd.v1"}, []string{subscription, bundle})
	for _, arg := range []string{"", "=", "etcd=", "=etcd.v1", "a=b=c", "a/b", "a b"} {
		_, _, err := parseWay(arg)
		require.Error(t, err, arg)
	}
}

func TestParseRegistry(t *testing.T) {
	key, address, err := parseRegistry("olm/community=localhost:50051")
	require.NoError(t, err)
	require.Equal(t, types.NamespacedName{Namespace: "olm", Name: "community"}, key)
	require.Equal(t, "localhost:50051", address)
	for _, arg := range []string{"", "olm/community", "community=localhost:50051", "/c=a:1", "olm/=a:1", "a/b/c=a:1", "olm/c=localhost"} {
		_, _, err := parseRegistry(arg)
		require.Error(t, err, arg)
	}
}

// FuzzParse: whatever is asked for, it is refused or means one thing.
func FuzzParse(f *testing.F) {
	for _, arg := range []string{"etcd", "sub/etcd", "csv.operators.coreos.com/x", "a=b", "olm/c=h:1", "/", "=", "a/b/c", "\x1b"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if of, err := parseObject(arg); err == nil {
			require.NotEmpty(t, of.name)
			require.NotContains(t, of.name, "/")
			require.True(t, strings.HasSuffix(arg, of.name))
			require.Equal(t, of.kind == schema.GroupVersionKind{}, !strings.Contains(arg, "/"))
		}
		if subscription, bundle, err := parseWay(arg); err == nil {
			require.NotEmpty(t, subscription)
			require.Equal(t, arg, strings.TrimSuffix(subscription+"="+bundle, strings.Repeat("=", 1-strings.Count(arg, "="))))
		}
		if key, address, err := parseRegistry(arg); err == nil {
			require.Equal(t, arg, key.Namespace+"/"+key.Name+"="+address)
		}
	})
}
