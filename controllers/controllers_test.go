// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ops", Name: name} }

// started is a cluster with a Subscription that resolves to nothing new, its catalog, and how often it was resolved.
// change changes the options of the controllers.
func started(t *testing.T, change ...func(*controllers.Options)) (c *fake.Cluster, set *controllers.Set, resolved *int) {
	c, resolved = fake.NewCluster(noon), new(int)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(
		&operatorsv1.OperatorGroup{ObjectMeta: named("group")},
		&v1alpha1.CatalogSource{
			ObjectMeta: named("community"),
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "here:1"},
		},
		&v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", Labels: map[string]string{"operators.coreos.com/etcd.ops": ""}},
			Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd", CatalogSource: "community", CatalogSourceNamespace: "ops"},
		},
	))
	options := &controllers.Options{
		Resolve: func(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
			*resolved++
			return olmcore.Resolution{Observed: request.Subscriptions}, nil
		},
		Fingerprint: (&controllers.Catalogs{}).Fingerprint,
	}
	for _, change := range change {
		change(options)
	}
	return c, controllers.New(options), resolved
}

// withoutFingerprint are controllers that are not told which answers hold.
func withoutFingerprint(o *controllers.Options) { o.Fingerprint = nil }

func controllerOf(t *testing.T, set *controllers.Set, name string) controller.Controller {
	for _, c := range set.Controllers {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no controller %s", name)
	return controller.Controller{}
}

// changed tells every controller what a watch delivers.
func changed(t *testing.T, c *fake.Cluster, set *controllers.Set, change controller.Change) {
	for _, controller := range set.Controllers {
		_, err := controller.Changed(t.Context(), c, change)
		require.NoError(t, err)
	}
}

func TestKeys(t *testing.T) {
	c, _, _ := started(t)
	all := controllers.New(&controllers.Options{Sweeps: true, Operators: true})
	want := map[string][]types.NamespacedName{
		controllers.Catalog:      {{Namespace: "ops", Name: "community"}},
		controllers.Subscription: {{Namespace: "ops"}},
		controllers.InstallPlan:  nil,
		controllers.Sweep:        {{Namespace: "ops"}},
		controllers.Group:        {{Namespace: "ops", Name: "group"}},
		controllers.CSV:          nil,
		controllers.Condition:    nil,
		controllers.Copies:       nil,
		controllers.OLMConfig:    nil,
		controllers.Permissions:  nil,
		controllers.CSVSweep:     {{Name: "cluster"}},
		controllers.Operator:     {{Name: "etcd.ops"}},
	}
	got := map[string][]types.NamespacedName{}
	for _, controller := range all.Controllers {
		keys, err := controller.Keys(t.Context(), c)
		require.NoError(t, err)
		got[controller.Name] = keys
	}
	require.Equal(t, want, got)

	none, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	keys, err := controllerOf(t, all, controllers.CSVSweep).Keys(t.Context(), none)
	require.NoError(t, err)
	require.Equal(t, []types.NamespacedName{{Name: "cluster"}}, keys, "the sweep has work when every version is gone")
	_, err = controllerOf(t, all, controllers.CSV).Keys(t.Context(), &failing{Reader: c, times: 1})
	require.ErrorIs(t, err, errUnread)
}

// TestWhatMakesANamespaceResolveAgain: an answer is kept until its fingerprint is another one. Without fingerprints it
// is kept until something says that the catalogs changed.
func TestWhatMakesANamespaceResolveAgain(t *testing.T) {
	source := &v1alpha1.CatalogSource{ObjectMeta: named("community")}
	source.Generation = 1
	edited := source.DeepCopy()
	edited.Generation = 2
	reported := source.DeepCopy()
	reported.Status.Message = "well"
	for name, tt := range map[string]struct {
		happens func(t *testing.T, c *fake.Cluster, s *controllers.Set)
		// again with fingerprints, and without.
		again, without bool
	}{
		"nothing":            {func(*testing.T, *fake.Cluster, *controllers.Set) {}, false, false},
		"the caller says so": {func(_ *testing.T, _ *fake.Cluster, s *controllers.Set) { s.CatalogsChanged() }, true, true},
		"all memory is lost": {func(_ *testing.T, _ *fake.Cluster, s *controllers.Set) { s.Forget() }, true, true},
		"a catalog is new": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) {
			changed(t, c, s, controller.Change{New: source})
		}, false, true},
		"a catalog is gone": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) {
			changed(t, c, s, controller.Change{Old: source, New: source, Deleted: true})
		}, false, true},
		"the spec of a catalog is edited": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) {
			changed(t, c, s, controller.Change{Old: source, New: edited})
		}, false, true},
		"only the status of a catalog is": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) {
			changed(t, c, s, controller.Change{Old: source, New: reported})
		}, false, false},
		"another kind of object is new": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) {
			changed(t, c, s, controller.Change{New: &corev1.Node{}})
		}, false, false},
		"an operator came": {func(t *testing.T, c *fake.Cluster, _ *controllers.Set) {
			require.NoError(t, c.Create(&v1alpha1.ClusterServiceVersion{ObjectMeta: named("another")}))
		}, true, false},
		"the OperatorGroup hides global catalogs": {func(t *testing.T, c *fake.Cluster, _ *controllers.Set) {
			require.NoError(t, fake.Edit(c, "ops", "group", func(g *operatorsv1.OperatorGroup) {
				g.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
			}))
		}, true, false},
		"a catalog that is deleted did it": {func(t *testing.T, c *fake.Cluster, s *controllers.Set) { dismantle(t, c, s) }, false, true},
	} {
		run := func(t *testing.T, again bool, change ...func(*controllers.Options)) {
			c, set, resolved := started(t, change...)
			namespace := controllerOf(t, set, controllers.Subscription)
			run := func() {
				for range 3 {
					result, err := namespace.Reconcile(t.Context(), c, types.NamespacedName{Namespace: "ops"}, c.Now(), nil)
					require.NoError(t, err)
					require.NoError(t, olmcore.Run(t.Context(), c, result.Actions))
				}
			}
			run()
			require.Equal(t, 1, *resolved)
			tt.happens(t, c, set)
			run()
			require.Equal(t, again, *resolved == 2, "resolved %d times", *resolved)
		}
		t.Run(name, func(t *testing.T) { run(t, tt.again) })
		t.Run(name+", without fingerprints", func(t *testing.T) { run(t, tt.without, withoutFingerprint) })
	}
}

// dismantle deletes the catalog while something holds it, and lets its controller see that.
func dismantle(t *testing.T, c *fake.Cluster, set *controllers.Set) {
	require.NoError(t, fake.Edit(c, "ops", "community", func(s *v1alpha1.CatalogSource) { s.Finalizers = []string{"example.com/held"} }))
	require.NoError(
		t,
		c.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Namespace: "ops", Name: "community"}),
	)
	_, err := controllerOf(
		t,
		set,
		controllers.Catalog,
	).Reconcile(t.Context(), c, types.NamespacedName{Namespace: "ops", Name: "community"}, c.Now(), nil)
	require.NoError(t, err)
}

// TestAResolverThatCannotBeAskedForgetsNothing: how often a resolution failed before decides when to try again, also
// after an error of the resolver itself.
func TestAResolverThatCannotBeAskedForgetsNothing(t *testing.T) {
	c, _, _ := started(t)
	var asked int
	set := controllers.New(&controllers.Options{
		Resolve: func(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
			if asked++; asked == 2 {
				return olmcore.Resolution{}, errUnread
			}
			return olmcore.Resolution{Observed: request.Subscriptions, Failure: &olmcore.ResolutionFailure{Message: "nothing fits"}}, nil
		},
	})
	namespace := controllerOf(t, set, controllers.Subscription)
	var waits []time.Duration
	for len(waits) < 4 {
		result, err := namespace.Reconcile(t.Context(), c, types.NamespacedName{Namespace: "ops"}, c.Now(), nil)
		if asked == 2 && len(waits) == 1 {
			require.ErrorIs(t, err, errUnread)
			waits = append(waits, 0)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, olmcore.Run(t.Context(), c, result.Actions))
		waits = append(waits, result.RequeueAfter)
		c.Advance(result.RequeueAfter)
	}
	require.Greater(t, waits[2], waits[0], "%v", waits)
}

var errUnread = errors.New("nothing can be read")

// failing fails some times, then it reads.
type failing struct {
	olmcore.Reader
	times int
}

func (f *failing) List(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	namespace string,
	selector labels.Selector,
) ([]olmcore.Object, error) {
	if f.times--; f.times >= 0 {
		return nil, errUnread
	}
	return f.Reader.List(ctx, gvk, namespace, selector)
}

// TestAStateThatAWatchSawIsReported: a plan that was Installing for an instant, before its Complete version was met, is
// reported as observed; a failed read in between loses nothing, and it is reported once.
func TestAStateThatAWatchSawIsReported(t *testing.T) {
	c, set, _ := started(t)
	namespace := controllerOf(t, set, controllers.Subscription)
	key := types.NamespacedName{Namespace: "ops"}
	reconcile := func(r olmcore.Reader) ([]string, error) {
		result, err := namespace.Reconcile(t.Context(), r, key, c.Now(), nil)
		if err != nil {
			return nil, err
		}
		require.NoError(t, olmcore.Run(t.Context(), c, result.Actions))
		var told []string
		for _, transition := range result.Transitions {
			if transition.Type == subscription.TransitionInstallPlan {
				told = append(told, fmt.Sprintf("%s -> %s (%s)", transition.From, transition.To, transition.Certainty))
			}
		}
		return told, nil
	}
	_, err := reconcile(c)
	require.NoError(t, err)

	plan := &v1alpha1.InstallPlan{
		ObjectMeta: named("install-1"),
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true},
	}
	require.NoError(t, c.Create(plan))
	phase := func(p v1alpha1.InstallPlanPhase) {
		require.NoError(t, fake.Edit(c, "ops", "install-1", func(plan *v1alpha1.InstallPlan) { plan.Status.Phase = p }))
		changed(t, c, set, controller.Change{New: fake.Find[*v1alpha1.InstallPlan](c, "ops", "install-1"), At: c.Now()})
	}
	require.NoError(t, fake.Edit(c, "ops", "etcd", func(s *v1alpha1.Subscription) {
		live := fake.Find[*v1alpha1.InstallPlan](c, "ops", "install-1")
		s.Status.State, s.Status.CurrentCSV = v1alpha1.SubscriptionStateUpgradePending, "etcd.v1"
		s.Status.InstallPlanRef = &corev1.ObjectReference{
			APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: live.Name, UID: live.UID,
		}
	}))
	phase(v1alpha1.InstallPlanPhaseInstalling)
	c.Advance(time.Second)
	phase(v1alpha1.InstallPlanPhaseComplete)

	_, err = reconcile(&failing{Reader: c, times: 1})
	require.ErrorIs(t, err, errUnread)
	told, err := reconcile(c)
	require.NoError(t, err)
	require.Contains(t, told, "Installing -> Complete (Observed)")
	again, err := reconcile(c)
	require.NoError(t, err)
	require.Empty(t, again)
}

// TestControllersRunAtTheSameTime has something to say under the race detector.
func TestControllersRunAtTheSameTime(t *testing.T) {
	c, _, _ := started(t)
	snapshot, err := olmcore.NewSnapshot(c.Objects(), olmcore.Everything)
	require.NoError(t, err)
	set := controllers.New(&controllers.Options{Sweeps: true, Operators: true})
	var all sync.WaitGroup
	for _, one := range set.Controllers {
		keys, err := one.Keys(t.Context(), snapshot)
		require.NoError(t, err)
		for _, key := range keys {
			all.Go(func() {
				for range 10 {
					_, _ = one.Reconcile(context.Background(), snapshot, key, noon, nil)
				}
			})
		}
		all.Go(func() {
			_, _ = one.Changed(context.Background(), snapshot, controller.Change{New: &v1alpha1.InstallPlan{ObjectMeta: named("p")}, At: noon})
			set.CatalogsChanged()
		})
	}
	all.Wait()
}
