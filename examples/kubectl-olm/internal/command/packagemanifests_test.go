// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestContentComesFromPackageManifests, where no registry is named: OLM's package server is an API server of its own.
func TestContentComesFromPackageManifests(t *testing.T) {
	const group, list = "packages.operators.coreos.com", "/apis/packages.operators.coreos.com/v1"
	version := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
	about := metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	var items []any
	for _, o := range objectsOf(t, "../../testdata/packagemanifests.yaml") {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		items = append(items, m)
	}
	inTools := map[string]any{"apiVersion": group + "/v1", "kind": "PackageManifestList", "metadata": map[string]any{}, "items": items[:1]}
	inAll := map[string]any{"apiVersion": group + "/v1", "kind": "PackageManifestList", "metadata": map[string]any{}, "items": items}
	answers := map[string]any{
		"/apis":          metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{about}},
		"/apis/" + group: about,
		list: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/v1", APIResources: []metav1.APIResource{
			{Name: "packagemanifests", Kind: "PackageManifest", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
		}},
		list + "/namespaces/tools/packagemanifests": inTools,
		list + "/packagemanifests":                  inAll,
	}
	server := apiserver.New(fake.NewCluster(clock))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			server.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		require.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	defer front.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, apiserver.Kubeconfig(front.URL), 0o600))
	for _, scope := range [][]string{{"-n", "tools"}, {"-A"}} {
		code, out, errs := run(t, "", append([]string{"catalog", "--kubeconfig", file, "--cache-dir", t.TempDir()}, scope...)...)
		require.Zero(t, code, errs)
		require.Empty(t, errs)
		require.Equal(t, "CATALOG         PACKAGE   DEFAULT-CHANNEL   HEAD            VERSION   CHANNELS   DEPRECATED\n"+
			"olm/community   backup    stable            backup.v2.0.0   2.0.0     stable     yes\n", out, "each package once")
	}
	code, _, errs := run(t, "", "catalog", "backup", "-o", "html", "-n", "tools", "--kubeconfig", file, "--cache-dir", t.TempDir())
	require.Equal(t, 2, code)
	require.Contains(t, errs, "error: PackageManifests do not say which version upgrades from which: ")
}
