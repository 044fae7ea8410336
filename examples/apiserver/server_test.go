// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func serve(t *testing.T) (*apiserver.Server, string) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, front.URL
}

// ask sends one request and returns the status code and the fields of the answer.
func ask(t *testing.T, method, url, content, body string) (int, map[string]any) {
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", content)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var answer map[string]any
	require.NoError(t, json.Unmarshal(data, &answer), "%s", data)
	return response.StatusCode, answer
}

func TestRequestsBecomeActions(t *testing.T) {
	_, url := serve(t)
	maps := url + "/api/v1/namespaces/ns/configmaps"
	subs := url + "/apis/operators.coreos.com/v1alpha1/namespaces/ns/subscriptions"
	const merge, plain = "application/merge-patch+json", "application/json"
	cm := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","l":"w"}}`
	sub := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"s"},"spec":{"name":"p","channel":"c","source":"x","sourceNamespace":"ns"},"status":{"currentCSV":"lost","lastUpdated":null}}`
	uid := ""
	for _, tt := range []struct {
		what, method, url, content, body string
		code                             int
		want                             string // as JSON within the answer
	}{
		{"create", "POST", maps, plain, cm, 201, `"k":"v"`},
		{"create again", "POST", maps, plain, cm, 409, `"reason":"AlreadyExists"`},
		{"get", "GET", maps + "/a", "", "", 200, `"kind":"ConfigMap"`},
		{"get what is not there", "GET", maps + "/b", "", "", 404, `"reason":"NotFound"`},
		{"get of a kind that is not there", "GET", url + "/apis/x/v1/ys/z", "", "", 404, `"message":"404 page not found"`},
		{"list", "GET", maps, "", "", 200, `"kind":"ConfigMapList"`},
		{"patch", "PATCH", maps + "/a", merge, `{"data":{"k":null}}`, 200, `"data":{"l":"w"}`},
		{"patch with an old version", "PATCH", maps + "/a", merge, `{"metadata":{"resourceVersion":"1"},"data":{"k":"z"}}`, 409, `"reason":"Conflict"`},
		{"patch of a kind that is not served", "PATCH", maps + "/a", "application/apply-patch+yaml", `{}`, 415, `"code":415`},
		{"put", "PUT", maps + "/a", plain, strings.Replace(cm, `,"l":"w"`, "", 1), 200, `"data":{"k":"v"}`},
		{"a status is dropped on create", "POST", subs, plain, sub, 201, `"channel":"c"`},
		{"a patch leaves the status alone", "PATCH", subs + "/s", merge, `{"spec":{"channel":"d"},"status":{"currentCSV":"lost"}}`, 200, `"channel":"d"`},
		{"a patch of the status leaves the rest alone", "PATCH", subs + "/s/status", merge, `{"spec":{"channel":"e"},"status":{"currentCSV":"v1"}}`, 200, `"currentCSV":"v1"`},
		{"delete of another incarnation", "DELETE", subs + "/s", plain, `{"preconditions":{"uid":"other"}}`, 409, `"reason":"Conflict"`},
		{"delete", "DELETE", subs + "/s", plain, `{}`, 200, `"status":"Success"`},
		{"delete again", "DELETE", subs + "/s", plain, ``, 404, `"reason":"NotFound"`},
	} {
		code, answer := ask(t, tt.method, tt.url, tt.content, tt.body)
		text, err := json.Marshal(answer)
		require.NoError(t, err)
		require.Equal(t, tt.code, code, "%s: %s", tt.what, text)
		require.Contains(t, string(text), tt.want, tt.what)
		require.NotContains(t, string(text), "lost", tt.what)
		require.NotContains(t, string(text), `"channel":"e"`, tt.what)
		if metadata, ok := answer["metadata"].(map[string]any); ok && tt.what == "put" {
			uid, _ = metadata["uid"].(string)
		}
	}
	require.NotEmpty(t, uid)
	code, _ := ask(t, "PATCH", maps+"/a", merge, `{"metadata":{"uid":"other"},"data":{"k":"z"}}`)
	require.Contains(t, []int{http.StatusConflict, http.StatusUnprocessableEntity}, code, "a patch of another incarnation is refused")
}

func TestDiscovery(t *testing.T) {
	s, url := serve(t)
	_, answer := ask(t, "GET", url+"/version", "", "")
	require.Equal(t, apiserver.Version, answer["gitVersion"])
	_, answer = ask(t, "GET", url+"/apis/operators.coreos.com", "", "")
	require.Len(t, answer["versions"], 4)
	_, answer = ask(t, "GET", url+"/apis/operators.coreos.com/v1alpha1", "", "")
	require.Len(t, answer["resources"], 8, "four kinds with their statuses")
	_, answer = ask(t, "GET", url+"/api/v1", "", "")
	require.Equal(t, "v1", answer["groupVersion"])
	code, _ := ask(t, "GET", url+"/apis/no.such.group/v1", "", "")
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, map[string]int{"discovery": 4}, s.Requests())
	require.Empty(t, s.Requests(), "they are counted anew")
	s.Break(true)
	code, _ = ask(t, "GET", url+"/version", "", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
}

func TestAWatchSeesEveryWrite(t *testing.T) {
	s, url := serve(t)
	change := func(o func(c *fake.Cluster) error) { require.NoError(t, s.With(o)) }
	put := func(name string, labels map[string]string) func(c *fake.Cluster) error {
		return func(c *fake.Cluster) error {
			o := &corev1.ConfigMap{}
			o.Namespace, o.Name, o.Labels = "ns", name, labels
			if fake.Find[*corev1.ConfigMap](c, "ns", name) != nil {
				return c.Update(o)
			}
			return c.Create(o)
		}
	}
	change(put("before", nil))
	_, list := ask(t, "GET", url+"/api/v1/namespaces/ns/configmaps", "", "")
	version := list["metadata"].(map[string]any)["resourceVersion"].(string)
	change(put("a", map[string]string{"app": "x"}))
	change(put("a", map[string]string{"app": "y"}))

	all := watch(t, url+"/api/v1/configmaps?watch=1&resourceVersion="+version)
	selected := watch(t, url+"/api/v1/namespaces/ns/configmaps?watch=true&labelSelector=app%3Dx&resourceVersion="+version)
	initial := watch(t, url+"/api/v1/namespaces/ns/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	require.Equal(t, []string{"ADDED a", "MODIFIED a"}, next(all, 2))
	require.Equal(t, []string{"ADDED a", "DELETED a"}, next(selected, 2))
	require.Equal(t, []string{"ADDED a", "ADDED before", "BOOKMARK "}, next(initial, 3))
	change(func(c *fake.Cluster) error {
		return c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"})
	})
	change(put("b", map[string]string{"app": "x"}))
	require.Equal(t, []string{"DELETED a", "ADDED b"}, next(all, 2))
	require.Equal(t, []string{"ADDED b"}, next(selected, 1))
	require.Equal(t, []string{"DELETED a", "ADDED b"}, next(initial, 2))
}

// watch returns the lines of a watch.
func watch(t *testing.T, url string) *bufio.Scanner {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

func next(lines *bufio.Scanner, n int) []string {
	var seen []string
	for range n {
		var e struct {
			Type   string           `json:"type"`
			Object corev1.ConfigMap `json:"object"`
		}
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &e) != nil {
			return append(seen, "nothing")
		}
		seen = append(seen, e.Type+" "+e.Object.Name)
	}
	return seen
}
