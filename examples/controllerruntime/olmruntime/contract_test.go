// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// newCached returns a manager of which nothing but the caches run.
func newCached(ctx context.Context, config *rest.Config, o controllers.Options) (*olmruntime.Manager, error) {
	mgr, err := olmruntime.New(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, olmruntime.Options{Options: o})
	if err != nil {
		return nil, err
	}
	for c := range mgr.Caches() {
		go func() { _ = c.Start(ctx) }()
		c.WaitForCacheSync(ctx)
	}
	return mgr, nil
}

func TestTheExecutorKeepsTheContract(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	mgr, err := newCached(t.Context(), config, controllers.Options{})
	require.NoError(t, err)
	require.NoError(t, invariant.CheckExecutor(t.Context(), mgr, mgr.Cluster, "ops"), "a cache is late")
}

func TestTheReaderKeepsTheContract(t *testing.T) {
	for name, o := range map[string]controllers.Options{
		"from the cache":                     {},
		"from the cache of a shard":          {Namespaces: []string{"check-reader-a"}},
		"from the cache of a shard, outside": {Namespaces: []string{"elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := serve(t, newCluster(t, time.Now()))
			require.NoError(t, invariant.CheckReader(t.Context(), func(ctx context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
				if err := s.With(func(c *fake.Cluster) error { return c.Create(objects...) }); err != nil {
					return nil, err
				}
				return newCached(ctx, config, o)
			}))
		})
	}
	t.Run("that is broken", func(t *testing.T) {
		s, config := serve(t, newCluster(t, time.Now()))
		mgr, err := olmruntime.New(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, olmruntime.Options{})
		require.NoError(t, err)
		s.Break(true)
		require.NoError(t, invariant.CheckBrokenReader(t.Context(), mgr), "the cache does not run")
		require.NoError(t, invariant.CheckBrokenReader(t.Context(), mgr.Cluster))
	})
}

// A shard reads what its cache is not made for from the API server, instead of taking it for absent.
func TestAShardSeesBeyondItsCache(t *testing.T) {
	c := newCluster(t, time.Now())
	for _, namespace := range []string{"in", "out"} {
		require.NoError(t, c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Labels: map[string]string{"a": "b"}}}))
	}
	s, config := serve(t, c)
	r, err := newCached(t.Context(), config, controllers.Options{Namespaces: []string{"in"}})
	require.NoError(t, err)
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	read := func(namespace string, want int) map[string]int {
		s.Requests()
		objects, err := r.List(t.Context(), configMap, namespace, labels.Set{"a": "b"}.AsSelector())
		require.NoError(t, err)
		require.Len(t, objects, want, namespace)
		return s.Requests()
	}
	read("in", 1) // starts the watches
	require.Empty(t, read("in", 1))
	read("out", 1) // the mapper learns the kind
	require.Equal(t, map[string]int{"list": 1}, read("out", 1))
	require.Equal(t, map[string]int{"list": 1}, read("", 2))
	_, err = r.Get(t.Context(), configMap, "out", "x")
	require.NoError(t, err)
	require.Equal(t, map[string]int{"get": 1}, s.Requests())
}

func TestAnActionRunsAsItsServiceAccount(t *testing.T) {
	c := newCluster(t, time.Now())
	c.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if as != nil && as.Namespace == "ops" && as.Name == "installer" && verb == olmcore.VerbCreate {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, target.Name, nil)
	}
	_, config := serve(t, c)
	x, err := newCached(t.Context(), config, controllers.Options{})
	require.NoError(t, err)
	create := olmcore.CreateOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s"}}, olmcore.Cause{Reason: "Test"})
	require.True(t, apierrors.IsForbidden(x.Do(t.Context(), create)))
	create.As = &corev1.ObjectReference{Namespace: "ops", Name: "installer"}
	require.NoError(t, x.Do(t.Context(), create))
	require.True(t, apierrors.IsAlreadyExists(x.Do(t.Context(), create)))
}

// The decoder of the API type panics on it, in a goroutine of the cache.
func TestACatalogSourceWithAnEmptyUpdateStrategyIsRead(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	r, err := newCached(t.Context(), config, controllers.Options{})
	require.NoError(t, err)
	cs, err := olmcore.Get[*v1alpha1.CatalogSource](t.Context(), r, "olm", "community")
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.UpdateStrategy{}, cs.Spec.UpdateStrategy)
}

// TestOneUnfitObjectStopsNoReads: an object that its type cannot hold, in a tenant's
// namespace, keeps no cache from starting and no list from being read.
func TestOneUnfitObjectStopsNoReads(t *testing.T) {
	c := newCluster(t, time.Now())
	require.NoError(t, c.Create(
		&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "v"}},
		&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "v"}},
		&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "s"}, Spec: &v1alpha1.SubscriptionSpec{Package: "p"}},
	))
	s, config := serve(t, c)
	s.Stored = func(object map[string]any) {
		spec, _ := object["spec"].(map[string]any)
		switch metadata := object["metadata"].(map[string]any); {
		case metadata["namespace"] != "evil":
		case object["kind"] == v1alpha1.ClusterServiceVersionKind:
			spec["version"] = "latest"
		case object["kind"] == v1alpha1.SubscriptionKind:
			spec["config"] = map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1e-100000000"}}}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	mgr, err := newCached(ctx, config, controllers.Options{})
	require.NoError(t, err)
	for name, r := range map[string]olmcore.Reader{"the cache": mgr, "the API server": mgr.Cluster} {
		for kind, want := range map[string][]string{
			v1alpha1.ClusterServiceVersionKind: {"ClusterServiceVersion evil/v", "ClusterServiceVersion ops/v"},
			v1alpha1.SubscriptionKind:          {"Subscription evil/s"},
		} {
			objects, err := r.List(ctx, v1alpha1.SchemeGroupVersion.WithKind(kind), "", nil)
			require.NoError(t, err, name)
			var got []string
			for _, o := range objects {
				got = append(got, olmcore.KeyOf(o).String())
			}
			require.Equal(t, want, got, name)
		}
		_, err = r.Get(ctx, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind), "ops", "v")
		require.NoError(t, err, name)
		_, err = r.Get(ctx, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind), "evil", "v")
		var unfit *olmcore.UnfitError
		require.ErrorAs(t, err, &unfit, name)
	}
}
