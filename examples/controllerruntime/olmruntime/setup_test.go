// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// usersManager is a manager as a program has it before the library comes.
func usersManager(t *testing.T, config *rest.Config, m ctrl.Options) ctrl.Manager {
	t.Helper()
	m.Metrics, m.GracefulShutdownTimeout, m.Logger = server.Options{BindAddress: "0"}, new(5*time.Second), logr.Discard()
	if m.Controller.SkipNameValidation == nil {
		m.Controller.SkipNameValidation = new(true) // the tests have many managers
	}
	mgr, err := ctrl.NewManager(config, m)
	require.NoError(t, err)
	return mgr
}

var (
	configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	service   = corev1.SchemeGroupVersion.WithKind("Service")
)

// apart are the kinds with a cache of the library's own, with the reason; many stands for all kinds.
func apart(mgr *olmruntime.Manager, kinds ...string) map[string]string {
	found := map[string]string{}
	for gvk, why := range mgr.Apart {
		if len(kinds) == 0 || slices.Contains(kinds, gvk.Kind) {
			found[gvk.Kind] = why
		}
	}
	return found
}

// TestWhatAUsersCacheLeavesOutIsNotTakenForAbsent: whatever the user's cache holds, the library sees every object,
// whole, and hears of its changes; and the user's cache holds what he said.
func TestWhatAUsersCacheLeavesOutIsNotTakenForAbsent(t *testing.T) {
	dropData := func(o any) (any, error) {
		if s, is := o.(*corev1.Service); is {
			s.Spec = corev1.ServiceSpec{}
		}
		return o, nil
	}
	only := func(by cache.ByObject) cache.Options {
		return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: by}}
	}
	mine := map[string]cache.Config{"a": {}}
	green := labels.SelectorFromSet(labels.Set{"color": "green"})
	unknown := "the manager's cache was not made by olmruntime.NewCache"
	for name, tt := range map[string]struct {
		cache cache.Options
		own   cache.NewCacheFunc
		// index is what the user does to the cache first.
		index bool
		// why Services are read apart: "" where they are not; recommended: with CacheOptions.
		why, recommended string
	}{
		"a cache that nothing is known of": {own: cache.New, why: unknown, recommended: unknown},
		"a cache of everything":            {},
		"without managed fields":           {cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}},
		"one namespace": {
			cache: cache.Options{DefaultNamespaces: mine}, why: "the cache's options restrict it to the namespaces a",
		},
		"some labels": {
			cache: cache.Options{DefaultLabelSelector: green}, why: "the cache's options restrict it to the labels color=green",
		},
		"some fields": {
			cache: cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "x")},
			why:   "the cache's options restrict it to the fields metadata.name=x",
		},
		"a transform that drops content": {
			cache: cache.Options{DefaultTransform: dropData}, why: "a transform of the cache's options changes more than managed fields",
		},
		"a transform that fails": {
			cache: cache.Options{DefaultTransform: func(any) (any, error) { return nil, errors.New("no") }},
			why:   "a transform of the cache's options changes more than managed fields",
		},
		"one namespace of the kind": {
			cache:       only(cache.ByObject{Namespaces: mine}),
			why:         "the cache's options restrict it to the namespaces a",
			recommended: "the cache's options restrict it to the namespaces a",
		},
		"some labels of the kind": {
			cache:       only(cache.ByObject{Label: green}),
			why:         "the cache's options restrict it to the labels color=green",
			recommended: "the cache's options restrict it to the labels color=green",
		},
		"labels in a namespace of the kind": {
			cache:       only(cache.ByObject{Namespaces: map[string]cache.Config{"": {}, "a": {LabelSelector: green}}}),
			why:         "the cache's options restrict it to the labels color=green",
			recommended: "the cache's options restrict it to the labels color=green",
		},
		"a kind that its entry takes from a default": {
			cache: cache.Options{
				DefaultLabelSelector: green, ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: {Label: labels.Everything()}},
			},
		},
		"two entries of the kind": {cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: {}, decode.Blank(service): {}},
		},
			why: "ByObject of the cache's options has several entries for " +
				"it", recommended: "ByObject of the cache's options has several entries for it"},
		"an index of the same name": {
			index:       true,
			why:         "its index olm.labels: indexer conflict: map[field:olm.labels:{}]",
			recommended: "its index olm.labels: indexer conflict: map[field:olm.labels:{}]",
		},
	} {
		for _, withOptions := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, time.Now())
				put := func(namespace, color string) {
					require.NoError(
						t,
						c.Create(
							&corev1.Service{
								ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Labels: map[string]string{"color": color}},
								Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: color},
							},
						),
					)
				}
				put("a", "green")
				put("b", "red")
				s, config := serve(t, c)
				m, want := ctrl.Options{Cache: tt.cache, NewCache: tt.own}, tt.why
				if m.NewCache == nil {
					m.NewCache = olmruntime.NewCache
				}
				if withOptions {
					m.Cache, want = olmruntime.CacheOptions(controllers.Options{}, tt.cache), tt.recommended
				}
				user := usersManager(t, config, m)
				if tt.index {
					require.NoError(
						t,
						user.GetFieldIndexer().IndexField(t.Context(), &corev1.Service{}, "olm.labels", func(client.Object) []string { return nil }),
					)
				}
				mgr, err := olmruntime.SetupWithManager(user, olmruntime.Options{}, controllers.Catalog)
				require.NoError(t, err)
				require.Equal(t, want, mgr.Apart[service])
				run(t, user)
				red := labels.SelectorFromSet(labels.Set{"color": "red"})
				var all []olmcore.Object
				for err = errors.New("not started"); err != nil; time.Sleep(time.Millisecond) {
					all, err = mgr.List(t.Context(), service, "", nil) // waits for the cache, once that starts
				}
				require.Len(t, all, 2)
				some, err := mgr.List(t.Context(), service, "b", red)
				require.NoError(t, err)
				require.Len(t, some, 1)
				one, err := olmcore.Get[*corev1.Service](t.Context(), mgr, "b", "x")
				require.NoError(t, err)
				require.Equal(t, "red", one.Spec.ExternalName)
				require.Equal(t, 0, s.Requests()["get"], "it comes from a cache")
			})
		}
	}
}

// TestTheCacheOfAPlainManagerIsLeftAlone: nothing is added to its scheme, and its own objects are as the user wants
// them.
func TestTheCacheOfAPlainManagerIsLeftAlone(t *testing.T) {
	c := newCluster(t, time.Now())
	for _, namespace := range []string{"a", "b"} {
		require.NoError(t, c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}))
	}
	_, config := serve(t, c)
	own := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(own))
	known := len(own.AllKnownTypes())
	user := usersManager(t, config, ctrl.Options{Scheme: own, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}}})
	mgr, err := olmruntime.SetupWithManager(user, olmruntime.Options{})
	require.NoError(t, err)
	want, watched := map[string]string{}, controllers.Options{}.Watched() // all but those that are never shared
	for gvk := range watched {
		if !watched.Reduces(gvk) {
			want[gvk.Kind] = "the manager's cache was not made by olmruntime.NewCache"
		}
	}
	require.Equal(t, want, apart(mgr))
	require.Len(t, own.AllKnownTypes(), known)
	run(t, user)
	require.True(t, user.GetCache().WaitForCacheSync(t.Context()))
	var list corev1.ConfigMapList
	require.NoError(t, user.GetClient().List(t.Context(), &list))
	require.Len(t, list.Items, 1)
}

// TestAKindThatTheSchemeLacksIsReadApart: also where the scheme has another type for it.
func TestAKindThatTheSchemeLacksIsReadApart(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	other := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(other))
	mgr, err := olmruntime.SetupWithManager(
		usersManager(t, config, ctrl.Options{Scheme: other, NewCache: olmruntime.NewCache}),
		olmruntime.Options{},
	)
	require.NoError(t, err)
	require.Equal(
		t,
		map[string]string{"Deployment": "the manager's scheme lacks *v1.Deployment"},
		apart(mgr, "Deployment", "Pod", v1alpha1.SubscriptionKind),
	)

	mgr, err = olmruntime.SetupWithManager(
		usersManager(t, config, ctrl.Options{Scheme: scheme.Scheme, NewCache: olmruntime.NewCache}),
		olmruntime.Options{},
	)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"CustomResourceDefinition": "the manager's scheme lacks *v1.CustomResourceDefinition", "APIService": "the manager's scheme lacks *v1.APIService",
	}, apart(mgr))
	mgr, err = olmruntime.New(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, olmruntime.Options{})
	require.NoError(t, err)
	require.Empty(t, mgr.Apart)
}

// TestAShardSharesWhatItNeeds: a cache that holds the namespaces that a shard reads is enough for Pods.
func TestAShardSharesWhatItNeeds(t *testing.T) {
	_, config := serve(t, newCluster(t, time.Now()))
	o := olmruntime.Options{Options: controllers.Options{Namespaces: []string{"a"}}}
	m := ctrl.Options{NewCache: olmruntime.NewCache, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}}
	mgr, err := olmruntime.SetupWithManager(usersManager(t, config, m), o)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Pod": "the cache's options restrict it to the namespaces a, b"}, apart(mgr, "Pod", "Node"))
	m.Cache = olmruntime.CacheOptions(o.Options, m.Cache)
	mgr, err = olmruntime.SetupWithManager(usersManager(t, config, m), o)
	require.NoError(t, err)
	require.Empty(t, apart(mgr, "Pod", "Node"))
	require.Len(t, m.Cache.DefaultNamespaces, 2)
}

// TestSeveralSetupsOnOneManager: different controllers work side by side, the same ones twice are refused, unless the
// user says otherwise.
func TestSeveralSetupsOnOneManager(t *testing.T) {
	c := newCluster(t, time.Now())
	s, config := serve(t, c)
	live(t, s)
	user := usersManager(
		t,
		config,
		ctrl.Options{NewCache: olmruntime.NewCache, Controller: ctrlconfig.Controller{SkipNameValidation: new(false)}},
	)
	twice := olmruntime.Options{Controller: func(string) controller.Options { return controller.Options{SkipNameValidation: new(true)} }}
	for _, name := range []string{controllers.Group, controllers.Catalog, controllers.Catalog} {
		_, err := olmruntime.SetupWithManager(user, twice, name)
		require.NoError(t, err)
	}
	_, err := olmruntime.SetupWithManager(user, olmruntime.Options{}, controllers.Condition)
	require.NoError(t, err)
	_, err = olmruntime.SetupWithManager(user, olmruntime.Options{}, controllers.Condition)
	require.ErrorContains(t, err, "controller with name olm-condition already exists")
	_, err = olmruntime.SetupWithManager(user, olmruntime.Options{}, "gruop")
	require.ErrorContains(t, err, `"gruop" is no controller: did you mean "group"?`)
	run(t, user)
	until(t, s, "the group is done", done("ops"))
	until(t, s, "the catalog serves", func(c *fake.Cluster) bool { return serving(c) != "" })
}

// TestWhatIsTheUsersHolds: rate limiter, concurrency, predicates, field manager and validation.
func TestWhatIsTheUsersHolds(t *testing.T) {
	c := newCluster(t, time.Now())
	c.Faults().Inject(fake.Fault{Nth: 1, Mode: fake.FailWithoutEffect})
	s, config := serve(t, c)
	var mu sync.Mutex
	managers, asked := map[string]bool{}, map[string]bool{}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if q := r.URL.Query(); q.Has("fieldManager") {
				mu.Lock()
				defer mu.Unlock()
				managers[q.Get("fieldManager")+" "+q.Get("fieldValidation")] = true
			}
			return next.RoundTrip(r)
		})
	}
	limiter := &countingLimiter{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second),
	}
	var names []string
	user := usersManager(t, config, ctrl.Options{})
	_, err := olmruntime.SetupWithManager(user, olmruntime.Options{
		FieldManager: "mine", FieldValidation: "Strict",
		Controller: func(name string) controller.Options {
			names = append(names, name)
			return controller.Options{RateLimiter: limiter, MaxConcurrentReconciles: 2}
		},
		Predicates: []predicate.Predicate{predicate.NewPredicateFuncs(func(o client.Object) bool {
			mu.Lock()
			defer mu.Unlock()
			asked[fmt.Sprintf("%T", o)] = true
			return true
		})},
	}, controllers.Group)
	require.NoError(t, err)
	require.Equal(t, []string{controllers.Group}, names)
	run(t, user)
	until(t, s, "the group is done", done("ops"))
	require.Positive(t, limiter.times())
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, cmp.Diff(map[string]bool{"mine Strict": true}, managers))
	require.True(t, asked["*v1.OperatorGroup"] && asked["*v1.Namespace"] && !asked["*v1.Node"], "%v", asked)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countingLimiter struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	mu    sync.Mutex
	count int
}

func (l *countingLimiter) When(r reconcile.Request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return l.TypedRateLimiter.When(r)
}

func (l *countingLimiter) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// TestAUsersControllerWorksBeside the library's, in one manager: it keeps a ConfigMap for each OperatorGroup.
func TestAUsersControllerWorksBeside(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(group("a")))
	s, config := serve(t, c)
	all := runtime.NewScheme()
	require.NoError(t, errors.Join(corev1.AddToScheme(all), operatorsv1.AddToScheme(all)))
	user := usersManager(t, config, ctrl.Options{Scheme: all, NewCache: olmruntime.NewCache})
	require.NoError(t, ctrl.NewControllerManagedBy(user).For(&operatorsv1.OperatorGroup{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var g operatorsv1.OperatorGroup
			if err := user.GetClient().Get(ctx, r.NamespacedName, &g); err != nil || len(g.Status.Namespaces) == 0 {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "seen"}}
			return reconcile.Result{}, client.IgnoreAlreadyExists(user.GetClient().Create(ctx, o))
		})))
	_, err := olmruntime.SetupWithManager(user, olmruntime.Options{})
	require.NoError(t, err)
	run(t, user)
	until(t, s, "both did their part", func(c *fake.Cluster) bool {
		return done("a")(c) && fake.Find[*corev1.ConfigMap](c, "a", "seen") != nil
	})
}
