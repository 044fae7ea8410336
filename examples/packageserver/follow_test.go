// SPDX-License-Identifier: Apache-2.0

package packageserver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/olmcore/olm/examples/packageserver"
)

var catalogSources = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "catalogsources"}

func stored(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": map[string]any{"namespace": "olm", "name": name}, "spec": spec}}
}

// What is shown follows the CatalogSources of the cluster, also those that the decoder of their type cannot read.
func TestCatalogSourcesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{catalogSources: "CatalogSourceList"},
			stored("a", map[string]any{"displayName": "A"}), stored("odd", map[string]any{"updateStrategy": map[string]any{}, "displayName": int64(7)}))
		content := &packageserver.Content{GlobalNamespace: "olm"}
		for _, name := range []string{"a", "b", "odd"} {
			content.Put(types.NamespacedName{Namespace: "olm", Name: name}, contentOf(t, "of-"+name))
		}
		require.Empty(t, shown(content))
		require.NoError(t, content.Follow(ctx, client))
		require.Equal(t, []string{"of-a from A", "of-odd from "}, shown(content))
		sources := client.Resource(catalogSources).Namespace("olm")
		_, err := sources.Create(ctx, stored("b", map[string]any{"displayName": "B"}), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = sources.Update(ctx, stored("a", map[string]any{"displayName": "new"}), metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, sources.Delete(ctx, "odd", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, []string{"of-a from new", "of-b from B"}, shown(content))
	})
}

// Without the right to list them nothing is shown, and the server does not become ready.
func TestCatalogSourcesThatMayNotBeListed(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{catalogSources: "CatalogSourceList"})
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, errors.New("forbidden")
	})
	content := &packageserver.Content{}
	require.ErrorContains(t, content.Follow(ctx, client), "the CatalogSources were not listed")
}

// shown is what namespace olm sees, as lines.
func shown(c *packageserver.Content) (lines []string) {
	for _, m := range c.Packages("olm") {
		lines = append(lines, m.Name+" from "+m.Status.CatalogSourceDisplayName)
	}
	return lines
}
