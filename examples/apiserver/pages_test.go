// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
)

// TestAListComesInPages when the client wants it to, and whole from a watch cache.
func TestAListComesInPages(t *testing.T) {
	s, server := serve(t)
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		for _, namespace := range []string{"a", "a-b"} {
			for i := range 2 {
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("m%d", i)}}
				if err := c.Create(o); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	page := func(query string) (names []string, next string, left any) {
		code, list := ask(t, "GET", server+"/api/v1/configmaps?"+query, "", "")
		require.Equal(t, http.StatusOK, code)
		for _, o := range list["items"].([]any) {
			m := o.(map[string]any)["metadata"].(map[string]any)
			names = append(names, fmt.Sprint(m["namespace"], "/", m["name"]))
		}
		metadata := list["metadata"].(map[string]any)
		next, _ = metadata["continue"].(string)
		return names, next, metadata["remainingItemCount"]
	}
	names, next, left := page("limit=3")
	require.Equal(t, []string{"a-b/m0", "a-b/m1", "a/m0"}, names)
	require.EqualValues(t, 1, left)
	names, next, left = page("limit=3&continue=" + url.QueryEscape(next))
	require.Equal(t, []string{"a/m1"}, names)
	require.Empty(t, next)
	require.Nil(t, left)
	for _, whole := range []string{"", "limit=4", "limit=1&resourceVersion=0"} {
		names, next, _ = page(whole)
		require.Len(t, names, 4)
		require.Empty(t, next)
	}
	code, _ := ask(t, "GET", server+"/api/v1/configmaps?limit=many", "", "")
	require.Equal(t, http.StatusBadRequest, code)
}
