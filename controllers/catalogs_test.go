// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

var community = types.NamespacedName{Namespace: "ops", Name: "community"}

// offering is a catalog with one version of etcd.
func offering(t testing.TB, version string) *resolution.Catalog {
	value, err := json.Marshal(map[string]string{"packageName": "etcd", "version": version})
	require.NoError(t, err)
	name := "etcd.v" + version
	built, problems := resolution.Build([]resolution.Package{{
		Name: "etcd", DefaultChannel: "stable",
		Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: name}}}},
		Bundles: []resolution.Bundle{{Name: name, Bundle: olmcore.Bundle{
			Image: "example.com/etcd:" + version, Properties: []olmcore.Property{{Type: resolution.PropertyPackage, Value: value}},
		}}},
	}})
	require.Empty(t, problems)
	return built
}

// TestContentIsAwaited: nothing is concluded before it is known what a catalog holds, or why that cannot be known.
func TestContentIsAwaited(t *testing.T) {
	c, _, _ := started(t)
	catalogs := &controllers.Catalogs{Awaited: true}
	o := controllers.Options{}
	catalogs.Serve(&o)
	require.Equal(t, controllers.DefaultGlobalNamespace, catalogs.GlobalNamespace)
	runner := runnerOf(t, controllers.New(&o), c, controllers.Subscription)
	condition := func() v1alpha1.SubscriptionCondition {
		_, err := runner.Run(t.Context(), types.NamespacedName{Namespace: "ops"}, noon)
		require.NoError(t, err)
		s, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), c, "ops", "etcd")
		require.NoError(t, err)
		return s.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed)
	}
	target := func() []olmcore.Operator {
		answer, err := catalogs.Resolve(t.Context(), c, subscription.ResolveRequest{Namespace: "ops"})
		require.NoError(t, err)
		return answer.Operators
	}
	require.Empty(t, condition().Message, "nothing was put")
	catalogs.Put(resolution.CatalogState{Key: community})
	require.Empty(t, condition().Message, "it is being read")

	catalogs.Put(resolution.CatalogState{Key: community, Problem: "connection refused"})
	require.Contains(t, condition().Message, "connection refused")
	catalogs.Put(resolution.CatalogState{Key: community, Content: offering(t, "1.0.0")})
	require.Empty(t, condition().Message)
	require.Equal(t, "etcd.v1.0.0", target()[0].Name)
	catalogs.Put(resolution.CatalogState{Key: community, Content: offering(t, "2.0.0"), Stale: true, Problem: "connection refused"})
	require.Equal(t, "etcd.v2.0.0", target()[0].Name, "content of an earlier read counts")

	catalogs.Content = map[types.NamespacedName]*resolution.Catalog{community: offering(t, "3.0.0")}
	require.Equal(t, "etcd.v3.0.0", target()[0].Name, "that of files comes first")
	catalogs.Content = nil
	catalogs.Drop(community)
	_, err := catalogs.Resolve(t.Context(), c, subscription.ResolveRequest{Namespace: "ops"})
	require.ErrorIs(t, err, controllers.ErrPending)
}

// TestReadsAreCounted: what is told of the same content again is no further one.
func TestReadsAreCounted(t *testing.T) {
	var catalogs controllers.Catalogs
	require.Zero(t, catalogs.Reads(community))
	first := offering(t, "1.0.0")
	for _, step := range []struct {
		content *resolution.Catalog
		want    int
	}{{nil, 0}, {first, 1}, {first, 1}, {offering(t, "1.0.0"), 2}, {nil, 2}} {
		catalogs.Put(resolution.CatalogState{Key: community, Content: step.content})
		require.Equal(t, step.want, catalogs.Reads(community))
	}
	catalogs.Drop(community)
	require.Zero(t, catalogs.Reads(community))
}

func runnerOf(t testing.TB, set *controllers.Set, c interface {
	olmcore.Reader
	olmcore.Executor
}, name string) *controller.Runner {
	runners := set.Runners(c, c)
	i := slices.IndexFunc(runners, func(r *controller.Runner) bool { return r.Name == name })
	require.GreaterOrEqual(t, i, 0)
	return runners[i]
}

// TestContentMayBeReplacedAtAnyTime is for the race detector.
func TestContentMayBeReplacedAtAnyTime(t *testing.T) {
	catalogs := &controllers.Catalogs{Awaited: true}
	c, err := olmcore.NewSnapshot([]olmcore.Object{&v1alpha1.CatalogSource{ObjectMeta: named("community")}}, olmcore.Everything)
	require.NoError(t, err)
	var all sync.WaitGroup
	for _, work := range []func(){
		func() { catalogs.Put(resolution.CatalogState{Key: community, Content: offering(t, "1.0.0")}) },
		func() { catalogs.Drop(community) },
		func() { _, _ = catalogs.Resolve(t.Context(), c, subscription.ResolveRequest{Namespace: "ops"}) },
		func() { _, _ = catalogs.Fingerprint(t.Context(), c, "ops") },
		func() { _, _ = catalogs.Known(t.Context(), c, "ops") },
	} {
		all.Go(func() {
			for range 50 {
				work()
			}
		})
	}
	all.Wait()
}

// dialed is a client that is connected to what it shall dial.
type dialed map[types.NamespacedName]string

func (d dialed) connection(in catalog.Input, address string) *catalog.Connection {
	key := types.NamespacedName{Namespace: in.CatalogSource.Namespace, Name: in.CatalogSource.Name}
	if address == "" {
		delete(d, key)
		return nil
	}
	d[key] = address
	return &catalog.Connection{Address: address, State: "READY", LastConnect: noon, LastTransition: noon}
}

// TestAClientEndsWithItsCatalogSource: also for a program without watches.
func TestAClientEndsWithItsCatalogSource(t *testing.T) {
	c, _, _ := started(t)
	clients := dialed{}
	runners := controllers.New(&controllers.Options{Connection: clients.connection}).Runners(c, c)
	pass := func() { require.NoError(t, controller.Pass(t.Context(), runners, func() time.Time { return noon })) }
	pass()
	require.Equal(t, dialed{community: "here:1"}, clients)
	source, err := olmcore.Get[*v1alpha1.CatalogSource](t.Context(), c, "ops", "community")
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), olmcore.Delete{Target: olmcore.RefOf(source), Cause: olmcore.Cause{Reason: "User", Message: "a test"}}))
	pass()
	require.Empty(t, clients)
}

// TestAShardHasClientsOfTheGlobalCatalogs: it needs their content, and writes nothing of theirs.
func TestAShardHasClientsOfTheGlobalCatalogs(t *testing.T) {
	c, _, _ := started(t)
	spec := v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "global:1"}
	require.NoError(t, c.Create(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "global"}, Spec: spec}))
	require.NoError(t, c.Create(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "other"}, Spec: spec}))
	clients := dialed{}
	o := controllers.Options{Namespaces: []string{"ops"}, Connection: clients.connection}
	require.NoError(t, controller.Pass(t.Context(), controllers.New(&o).Runners(c, c), func() time.Time { return noon }))
	require.Equal(t, dialed{community: "here:1", {Namespace: "olm", Name: "global"}: "global:1"}, clients)
	global, err := olmcore.Get[*v1alpha1.CatalogSource](t.Context(), c, "olm", "global")
	require.NoError(t, err)
	require.Empty(t, global.Status)
	require.Equal(t, []string{"ops"}, o.Namespaces)
}

// TestAChangeOfAConnectionResolvesNothingAgain: the CatalogSource is as it was.
func TestAChangeOfAConnectionResolvesNothingAgain(t *testing.T) {
	c, set, resolved := started(t)
	runner := runnerOf(t, set, c, controllers.Subscription)
	run := func() {
		_, err := runner.Run(t.Context(), types.NamespacedName{Namespace: "ops"}, noon)
		require.NoError(t, err)
	}
	run()
	run()
	before := *resolved
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "community"}}
	keys, err := runner.Changed(t.Context(), c, controller.Change{Old: source, New: source, At: noon})
	require.NoError(t, err)
	require.Equal(t, []types.NamespacedName{{Namespace: "ops"}}, keys)
	run()
	require.Equal(t, before, *resolved)
}
