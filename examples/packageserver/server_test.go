// SPDX-License-Identifier: Apache-2.0

package packageserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/examples/packageserver"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

const catalog = `
{"schema":"olm.package","name":"NAME","defaultChannel":"stable","icon":{"base64data":"PHN2Zz48c2NyaXB0Lz48L3N2Zz4=","mediatype":"image/svg+xml"}}
{"schema":"olm.channel","package":"NAME","name":"stable","entries":[{"name":"NAME.v1"}]}
{"schema":"olm.bundle","package":"NAME","name":"NAME.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"NAME","version":"1.0.0"}},{"type":"olm.csv.metadata","value":{"displayName":"The NAME","provider":{"name":"Example"},"installModes":[{"type":"OwnNamespace","supported":true}]}}]}
`

func contentOf(t testing.TB, names ...string) []resolution.Package {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(strings.ReplaceAll(catalog, "NAME", name))
	}
	list, _, err := fbc.Read("catalog", strings.NewReader(text.String()), fbc.Options{})
	require.NoError(t, err)
	return list
}

func source(namespace, name string) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.CatalogSourceSpec{DisplayName: "Operators of " + name},
	}
}

// serve serves two global packages, of which a team has one too, and gives each user what a rule "USER may VERB
// RESOURCE in NAMESPACE" says.
func serve(t testing.TB, rules ...string) (url string, content *packageserver.Content) {
	content = &packageserver.Content{GlobalNamespace: "olm"}
	for _, s := range []struct {
		source   *v1alpha1.CatalogSource
		packages []string
	}{{source("olm", "community"), []string{"etcd", "grafana"}}, {source("team", "own"), []string{"etcd"}}} {
		content.Know(s.source)
		content.Put(types.NamespacedName{Namespace: s.source.Namespace, Name: s.source.Name}, contentOf(t, s.packages...))
	}
	config := packageserver.NewConfig()
	headers, err := headerrequest.New([]string{"X-Remote-User"}, nil, nil, nil)
	require.NoError(t, err)
	config.Authentication.Authenticator = headers
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		what := a.GetResource()
		if a.GetSubresource() != "" {
			what += "/" + a.GetSubresource()
		}
		for _, rule := range rules {
			if rule == "*" || rule == fmt.Sprintf("%s may %s %s in %s", a.GetUser().GetName(), a.GetVerb(), what, a.GetNamespace()) {
				return authorizer.DecisionAllow, "", nil
			}
		}
		return authorizer.DecisionNoOpinion, "no rule", nil
	})
	config.LoopbackClientConfig = &rest.Config{Host: "https://loopback"}
	config.ExternalAddress = "127.0.0.1:443"
	server, err := packageserver.New(config, content)
	require.NoError(t, err)
	front := httptest.NewServer(server.PrepareRun().Handler)
	t.Cleanup(front.Close)
	return front.URL, content
}

// ask returns the answer to one request.
func ask(t testing.TB, user, method, url, accept string, headers ...string) (*http.Response, string) {
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	request.Header.Set("X-Remote-User", user)
	request.Header.Set("Accept", accept)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

const group = "/apis/packages.operators.coreos.com/v1"

// show is a list as lines.
func show(t testing.TB, body string) (lines []string) {
	var list struct {
		Kind  string
		Items []struct {
			Metadata metav1.ObjectMeta
			Status   struct{ CatalogSource string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &list), body)
	require.Equal(t, "PackageManifestList", list.Kind)
	for _, i := range list.Items {
		lines = append(lines, i.Metadata.Namespace+"/"+i.Metadata.Name+" of "+i.Status.CatalogSource)
	}
	return lines
}

func TestLists(t *testing.T) {
	url, content := serve(t, "*")
	for query, want := range map[string][]string{
		"/packagemanifests":                                                         {"olm/etcd of community", "team/etcd of own", "olm/grafana of community"},
		"/namespaces/team/packagemanifests":                                         {"team/etcd of own", "team/etcd of community", "team/grafana of community"},
		"/namespaces/ops/packagemanifests":                                          {"ops/etcd of community", "ops/grafana of community"},
		"/namespaces/ops/packagemanifests?limit=1":                                  {"ops/etcd of community", "ops/grafana of community"},
		"/namespaces/team/packagemanifests?labelSelector=catalog%3Down":             {"team/etcd of own"},
		"/namespaces/team/packagemanifests?fieldSelector=metadata.name%3Dgrafana":   {"team/grafana of community"},
		"/packagemanifests?fieldSelector=metadata.namespace%3Dteam":                 {"team/etcd of own"},
		"/packagemanifests?labelSelector=operatorframework.io/arch.arm64=supported": nil,
	} {
		_, body := ask(t, "u", "GET", url+group+query, "application/vnd.kubernetes.protobuf,application/json")
		require.Equal(t, want, show(t, body), query)
		require.NotContains(t, body, "base64data")
	}
	response, _ := ask(t, "u", "GET", url+group+"/packagemanifests?fieldSelector=status.x%3Dy", "application/json")
	require.Equal(t, http.StatusBadRequest, response.StatusCode)

	content.Forget(types.NamespacedName{Namespace: "olm", Name: "community"})
	_, body := ask(t, "u", "GET", url+group+"/packagemanifests", "application/json")
	require.Equal(t, []string{"team/etcd of own"}, show(t, body), "a CatalogSource is gone")
	content.Know(source("olm", "community"))
	content.Drop(types.NamespacedName{Namespace: "team", Name: "own"})
	_, body = ask(t, "u", "GET", url+group+"/packagemanifests", "application/json")
	require.Equal(t, []string{"olm/etcd of community", "olm/grafana of community"}, show(t, body), "the content of another is gone")
}

func TestOnePackage(t *testing.T) {
	url, _ := serve(t, "*")
	_, body := ask(t, "u", "GET", url+group+"/namespaces/team/packagemanifests/etcd", "application/json")
	require.JSONEq(t, `{"kind":"PackageManifest","apiVersion":"packages.operators.coreos.com/v1",
		"metadata":{"name":"etcd","namespace":"team","labels":{"catalog":"own","catalog-namespace":"team","provider":"Example","provider-url":"",
			"operatorframework.io/arch.amd64":"supported","operatorframework.io/os.linux":"supported"}},
		"spec":{},
		"status":{"catalogSource":"own","catalogSourceDisplayName":"Operators of own","catalogSourcePublisher":"","catalogSourceNamespace":"team",
			"provider":{"name":"Example"},"packageName":"etcd","defaultChannel":"stable",
			"channels":[{"name":"stable","currentCSV":"etcd.v1","entries":[{"name":"etcd.v1","version":"1.0.0"}],
				"currentCSVDesc":{"displayName":"The etcd","version":"1.0.0","provider":{"name":"Example"},"customresourcedefinitions":{},"apiservicedefinitions":{},
					"installModes":[{"type":"OwnNamespace","supported":true}]}}]}}`, body)
	response, body := ask(t, "u", "GET", url+group+"/namespaces/team/packagemanifests/none", "application/json")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	require.Contains(t, body, `packagemanifests.packages.operators.coreos.com \"none\" not found`)
}

func TestTables(t *testing.T) {
	url, _ := serve(t, "*")
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for query, want := range map[string][][]any{
		"/namespaces/team/packagemanifests":      {{"etcd", "Operators of own", "<unknown>"}, {"etcd", "Operators of community", "<unknown>"}, {"grafana", "Operators of community", "<unknown>"}},
		"/namespaces/team/packagemanifests/etcd": {{"etcd", "Operators of own", "<unknown>"}},
	} {
		_, body := ask(t, "u", "GET", url+group+query, asTable)
		var table metav1.Table
		require.NoError(t, json.Unmarshal([]byte(body), &table), body)
		require.Equal(t, "Table", table.Kind)
		var names []string
		for _, c := range table.ColumnDefinitions {
			names = append(names, c.Name)
		}
		require.Equal(t, []string{"Name", "Catalog", "Age"}, names)
		var cells [][]any
		for _, r := range table.Rows {
			cells = append(cells, r.Cells)
		}
		require.Equal(t, want, cells)
	}
}

func TestAnIconIsNoPage(t *testing.T) {
	url, _ := serve(t, "*")
	response, body := ask(t, "u", "GET", url+group+"/namespaces/ops/packagemanifests/etcd/icon", "image/*")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "<svg><script/></svg>", body)
	require.Equal(t, "image/svg+xml", response.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "default-src 'none'; style-src 'unsafe-inline'; sandbox", response.Header.Get("Content-Security-Policy"))
	etag := response.Header.Get("ETag")
	require.NotEmpty(t, etag)
	response, body = ask(t, "u", "GET", url+group+"/namespaces/ops/packagemanifests/etcd/icon", "image/*", "If-None-Match", etag)
	require.Equal(t, http.StatusNotModified, response.StatusCode)
	require.Empty(t, body)
	response, _ = ask(t, "u", "GET", url+group+"/namespaces/ops/packagemanifests/none/icon", "image/*")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

// TestOnlyTheSubresourceHasIcons checks that get and list return no icon, in any form, while the subresource icon
// returns it.
func TestOnlyTheSubresourceHasIcons(t *testing.T) {
	url, _ := serve(t, "*")
	const object = "/namespaces/team/packagemanifests/etcd"
	for path, accept := range map[string]string{
		"/packagemanifests":                 "application/json",
		"/namespaces/team/packagemanifests": "application/json;as=Table;v=v1;g=meta.k8s.io",
		object:                              "application/json",
		object + "?pretty=true":             "application/json",
		object + "?includeObject=Object":    "application/json;as=Table;v=v1;g=meta.k8s.io",
	} {
		response, body := ask(t, "u", "GET", url+group+path, accept)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Contains(t, body, "etcd", path)
		require.NotContains(t, body, `"icon"`, path)
		require.NotContains(t, body, "base64data", path)
	}
	_, body := ask(t, "u", "GET", url+group+object+"/icon", "image/*")
	require.Equal(t, "<svg><script/></svg>", body)
}

func TestAPackageWithoutAnIconHasOne(t *testing.T) {
	url, content := serve(t, "*")
	plain := contentOf(t, "plain")
	plain[0].Icon = v1alpha1.Icon{}
	content.Put(types.NamespacedName{Namespace: "olm", Name: "community"}, plain)
	response, body := ask(t, "u", "GET", url+group+"/namespaces/ops/packagemanifests/plain/icon", "image/*")
	require.Equal(t, "image/svg+xml", response.Header.Get("Content-Type"))
	require.Contains(t, body, "<svg xmlns=")
}

func TestNothingIsWritten(t *testing.T) {
	url, _ := serve(t, "*")
	for _, c := range []struct{ method, path string }{
		{"POST", "/namespaces/team/packagemanifests"}, {"PUT", "/namespaces/team/packagemanifests/etcd"}, {"PATCH", "/namespaces/team/packagemanifests/etcd"},
		{"DELETE", "/namespaces/team/packagemanifests/etcd"}, {"DELETE", "/namespaces/team/packagemanifests"}, {"GET", "/namespaces/team/packagemanifests?watch=true"},
		{"GET", "/watch/namespaces/team/packagemanifests"}, {"POST", "/namespaces/team/packagemanifests/etcd/icon"},
	} {
		response, body := ask(t, "u", c.method, url+group+c.path, "application/json")
		require.Contains(t, []int{http.StatusMethodNotAllowed, http.StatusNotFound}, response.StatusCode, "%s %s: %s", c.method, c.path, body)
	}
	response, body := ask(t, "u", "GET", url+group+"/packagemanifests?watch=true", "application/json")
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	require.Contains(t, body, `watch is not supported on resources of kind \"packagemanifests.packages.operators.coreos.com\"`)
}

// A user sees the catalogs of a namespace that he may read, and those of all if he may; icons are asked for by
// themselves.
func TestWhoMayRead(t *testing.T) {
	url, _ := serve(t, "dev may list packagemanifests in team", "dev may get packagemanifests in team", "dev may get packagemanifests/icon in team", "lead may list packagemanifests in ")
	for _, c := range []struct {
		user, path string
		code       int
	}{
		{"dev", "/namespaces/team/packagemanifests", 200}, {"dev", "/namespaces/team/packagemanifests/etcd", 200}, {"dev", "/namespaces/team/packagemanifests/etcd/icon", 200},
		{"dev", "/packagemanifests", 403}, {"dev", "/namespaces/olm/packagemanifests", 403}, {"dev", "/namespaces/olm/packagemanifests/etcd/icon", 403},
		{"lead", "/packagemanifests", 200}, {"lead", "/namespaces/team/packagemanifests", 403}, {"", "/packagemanifests", 401},
	} {
		response, body := ask(t, c.user, "GET", url+group+c.path, "application/json")
		require.Equal(t, c.code, response.StatusCode, "%s %s: %s", c.user, c.path, body)
	}
}

func TestDiscoveryAndExplain(t *testing.T) {
	url, _ := serve(t, "*")
	_, body := ask(t, "u", "GET", url+group, "application/json")
	require.JSONEq(t, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"packages.operators.coreos.com/v1","resources":[
		{"name":"packagemanifests","singularName":"packagemanifest","namespaced":true,"kind":"PackageManifest","verbs":["get","list"]},
		{"name":"packagemanifests/icon","singularName":"","namespaced":true,"kind":"PackageManifest","verbs":["get"]}]}`, body)
	_, body = ask(t, "u", "GET", url+"/openapi/v3/apis/packages.operators.coreos.com/v1", "application/json")
	var v3 struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &v3), body)
	manifest := v3.Components.Schemas["com.coreos.operators.packages.v1.PackageManifest"]
	require.Equal(t, []any{map[string]any{"group": "packages.operators.coreos.com", "version": "v1", "kind": "PackageManifest"}}, manifest["x-kubernetes-group-version-kind"])
	at := func(path string) map[string]any {
		place := manifest
		for name := range strings.SplitSeq(path, ".") {
			if items, ok := place["items"].(map[string]any); ok {
				place = items
			}
			place = place["properties"].(map[string]any)[name].(map[string]any)
		}
		return place
	}
	require.Equal(t, "Name of the ClusterServiceVersion at the head of the channel.", at("status.channels.currentCSV")["description"])
	require.Equal(t, "boolean", at("status.channels.currentCSVDesc.installModes.supported")["type"])
	require.Equal(t, "string", at("status.channels.currentCSVDesc.customresourcedefinitions.owned.resources.kind")["type"])
	require.Contains(t, at("status.channels.currentCSVDesc.annotations"), "additionalProperties")
	response, _ := ask(t, "u", "GET", url+"/openapi/v2", "application/json")
	require.Equal(t, http.StatusOK, response.StatusCode)
}
