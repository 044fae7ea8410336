// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	coolKey = types.NamespacedName{Namespace: "olm", Name: "cool"}
)

func cool() *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Name: "cool", Namespace: "olm"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "quay.io/example/catalog:v1"},
	}
}

// world is a cluster with the nodes a and b and one CatalogSource, and the
// controller over it.
type world struct {
	*fake.Cluster
	*fake.Driver
	config catalog.Config
}

func newWorld(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) *world {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	for _, node := range []string{"a", "b"} {
		require.NoError(t, c.AddNode(node, nil))
	}
	require.NoError(t, c.Create(cs))
	return &world{Cluster: c, Driver: &fake.Driver{Cluster: c, Controllers: []fake.Controller{controller(config)}}, config: config}
}

// run lets controllers and cluster go on for a time.
func (w *world) run(t testing.TB, d time.Duration) {
	require.NoError(t, w.Driver.RunFor(context.Background(), d))
}

// input is what a reconcile would see now.
func (w *world) input(t testing.TB) catalog.Input {
	in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	return in
}

// converged is the input of a CatalogSource that serves and needs nothing.
func converged(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) catalog.Input {
	w := newWorld(t, config, cs)
	w.run(t, time.Hour)
	return connected(t, w)
}

// connected is what a reconcile sees of a world at rest once its client is connected.
func connected(t testing.TB, w *world) catalog.Input {
	in := w.input(t)
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.True(t, out.Result.Empty(), "not converged: %+v", out)
	in.Connection = &catalog.Connection{Address: "cool.olm.svc:50051", State: "READY", LastConnect: start, LastTransition: start}
	out, err = catalog.Reconcile(in)
	require.NoError(t, err)
	require.NoError(t, olmcore.Run(context.Background(), w.Cluster, out.Actions))
	connection := in.Connection
	in = w.input(t)
	in.Connection = connection
	return in
}

func podsOf(in catalog.Input) (serving []*corev1.Pod) {
	for _, pod := range in.Pods.Items {
		if pod.Labels["olm.catalogSource"] == "cool" {
			serving = append(serving, pod)
		}
	}
	return serving
}
