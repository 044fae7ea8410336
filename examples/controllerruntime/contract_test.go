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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// newLive returns a client without a cache, and a Reader over it.
func newLive(t *testing.T, config *rest.Config) (client.Client, *olmruntime.Reader) {
	c, err := client.New(config, client.Options{Scheme: olmruntime.Scheme()})
	require.NoError(t, err)
	return c, &olmruntime.Reader{Live: c, Scheme: c.Scheme()}
}

// newCached starts the cache that a manager with these Options has.
func newCached(ctx context.Context, config *rest.Config, o olmruntime.Options) (*olmruntime.Reader, error) {
	c, err := cluster.New(config, func(co *cluster.Options) {
		co.Scheme, co.Cache = olmruntime.Scheme(), o.CacheOptions()
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Start(ctx) }()
	if err := olmruntime.AddIndexes(c.GetFieldIndexer()); err != nil {
		return nil, err
	}
	c.GetCache().WaitForCacheSync(ctx)
	return &olmruntime.Reader{Cache: c.GetCache(), Live: c.GetAPIReader(), Scheme: c.GetScheme(), Namespaces: o.CachedNamespaces()}, nil
}

func TestTheExecutorKeepsTheContract(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	c, r := newLive(t, config)
	require.NoError(t, invariant.CheckExecutor(t.Context(), &olmruntime.Executor{Client: c, Config: config}, r, "ops"))
}

func TestTheReaderKeepsTheContract(t *testing.T) {
	for name, o := range map[string]olmruntime.Options{
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
	t.Run("from the API server", func(t *testing.T) {
		s, config := serve(t, newCluster(t, time.Now()))
		_, r := newLive(t, config)
		require.NoError(t, invariant.CheckReader(t.Context(), func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			return r, s.With(func(c *fake.Cluster) error { return c.Create(objects...) })
		}))
		s.Break(true)
		require.NoError(t, invariant.CheckBrokenReader(t.Context(), r))
	})
}

// A shard reads what its cache is not made for from the API server, instead of
// taking it for absent.
func TestAShardSeesBeyondItsCache(t *testing.T) {
	c := newCluster(t, time.Now())
	for _, namespace := range []string{"in", "out"} {
		require.NoError(t, c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Labels: map[string]string{"a": "b"}}}))
	}
	s, config := serve(t, c)
	r, err := newCached(t.Context(), config, olmruntime.Options{Namespaces: []string{"in"}})
	require.NoError(t, err)
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	read := func(namespace string, want int) map[string]int {
		s.Requests()
		objects, err := r.List(t.Context(), configMap, namespace, nil)
		require.NoError(t, err)
		require.Len(t, objects, want, namespace)
		return s.Requests()
	}
	read("in", 1) // starts the watches
	require.Empty(t, read("in", 1))
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
	live, _ := newLive(t, config)
	x := &olmruntime.Executor{Client: live, Config: config}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s"}}
	create := olmcore.CreateOf(secret, olmcore.Cause{Reason: "Test"})
	require.True(t, apierrors.IsForbidden(x.Do(t.Context(), create)))
	create.As = &corev1.ObjectReference{Namespace: "ops", Name: "installer"}
	require.NoError(t, x.Do(t.Context(), create))
	require.True(t, apierrors.IsAlreadyExists(x.Do(t.Context(), create)), "the client of the account is used again")
	require.Error(t, (&olmruntime.Executor{Client: live}).Do(t.Context(), create), "without a config nobody can be impersonated")
}

// The decoder of the API type panics on it, in a goroutine of the cache.
func TestACatalogSourceWithAnEmptyUpdateStrategyIsRead(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	r, err := newCached(t.Context(), config, olmruntime.Options{})
	require.NoError(t, err)
	cs, err := olmcore.Get[*v1alpha1.CatalogSource](t.Context(), r, "olm", "community")
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.UpdateStrategy{}, cs.Spec.UpdateStrategy)
}
