// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestAStalePodListNeverCostsTheLastPod: one of two Pods is deleted as surplus, and while the cache still shows both,
// the node of the one that stays is found to be worse. Deleting that one, too, would leave the catalog without any.
func TestAStalePodListNeverCostsTheLastPod(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithKind("Pod")
	cached := func(schema.GroupVersionKind, string) bool { return true }
	for name, tt := range map[string]struct {
		node   func(c *fake.Cluster, name string) error
		cached func(schema.GroupVersionKind, string) bool
	}{
		"the node was not ready for a moment, and writes are waited for": {flap, cached},
		"the node is not ready, and writes are not waited for": {func(c *fake.Cluster, name string) error {
			return c.Node(name).SetNotReady("")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(noon)
			c.AutoCreateNamespaces = true
			require.NoError(t, c.Node("a").Create(nil))
			require.NoError(t, c.Node("b").Create(nil))
			require.NoError(t, c.Create(&v1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "community", Annotations: map[string]string{"olmcore/replicas": "2"}},
				Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "quay.io/example/catalog:v1"},
			}))
			view := c.View("cache")
			set := controllers.New(&controllers.Options{Catalog: catalog.Config{Spread: catalog.SpreadRequire}})
			runner := &controller.Runner{Controller: controllerOf(t, set, controllers.Catalog), Reader: view, Executor: c, Cached: tt.cached}
			run := func() {
				_, err := runner.Run(t.Context(), types.NamespacedName{Namespace: "ops", Name: "community"}, c.Now())
				require.NoError(t, err)
			}
			syncOthers := func() {
				for _, kind := range view.Behind() {
					if kind != pods {
						view.SyncKind(kind)
					}
				}
			}
			for range 20 {
				view.Sync()
				run()
				require.NoError(t, c.RunFor(10*time.Second))
			}
			require.Len(t, served(t, c), 2)
			require.NoError(t, fake.Edit(c, "ops", "community", func(cs *v1alpha1.CatalogSource) { cs.Annotations = nil }))
			view.Sync()
			for range 5 { // the cache shows everything but that a Pod was deleted
				if len(served(t, c)) == 2 {
					view.Sync()
				}
				run()
				require.NoError(t, c.RunFor(time.Second))
				syncOthers()
			}
			left := served(t, c)
			require.Len(t, left, 1)
			require.NoError(t, tt.node(c, left[0].Spec.NodeName))
			require.NoError(t, c.RunFor(30*time.Second))
			syncOthers()
			run()
			require.Len(t, served(t, c), 1, "the last one goes")
		})
	}
}

// flap makes a node one that became ready again just now.
func flap(c *fake.Cluster, name string) error {
	o, err := c.Get(context.Background(), corev1.SchemeGroupVersion.WithKind("Node"), "", name)
	if err != nil {
		return err
	}
	node := o.DeepCopyObject().(*corev1.Node)
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastTransitionTime = metav1.NewTime(c.Now())
	}
	return c.UpdateStatus(node)
}

// served are the Pods of the catalog that no one deleted.
func served(t *testing.T, c *fake.Cluster) []*corev1.Pod {
	all, err := olmcore.List[*corev1.Pod](t.Context(), c, "ops", nil)
	require.NoError(t, err)
	var pods []*corev1.Pod
	for _, pod := range all {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}
