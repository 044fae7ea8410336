// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"context"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	asking "github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// lived is a fake cluster in which all controllers work on the package a: its answers come from Resolve under a policy.
type lived struct {
	t       *testing.T
	cluster *fake.Cluster
	driver  *fake.Driver
	last    resolution.Result
}

func live(t *testing.T, policy resolution.Policy, config asking.Config) *lived {
	w := &lived{t: t, cluster: fake.NewCluster(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))}
	w.cluster.AutoCreateNamespaces = true
	list := packages(chain()...)
	for i := range list[0].Bundles {
		list[0].Bundles[i].Objects = []olmcore.Object{manifest(list[0].Bundles[i].Name)}
	}
	built, _ := resolution.Build(list)
	gather := func(ctx context.Context, r olmcore.Reader) (resolution.Input, error) {
		in, err := resolution.Gather(ctx, r, "ns", "global", nil)
		in.Policy, in.Catalogs = policy, []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Content: built}}
		return in, err
	}
	o := &olm.OLM{Options: controllers.Options{
		Subscription: config,
		Resolve: func(ctx context.Context, r olmcore.Reader, _ asking.ResolveRequest) (olmcore.Resolution, error) {
			in, err := gather(ctx, r)
			w.last = resolution.Resolve(in)
			return w.last.Resolution, err
		},
		Fingerprint: func(ctx context.Context, r olmcore.Reader, _ string) (string, error) {
			in, err := gather(ctx, r)
			return in.Fingerprint(), err
		},
	}}
	w.driver = &fake.Driver{Cluster: w.cluster, Controllers: o.Controllers()}
	group := oneGroup("ns")[0].DeepCopy()
	group.Spec.TargetNamespaces = []string{"ns"}
	require.NoError(t, w.cluster.Create(group))
	return w
}

// manifest is a ClusterServiceVersion without workload.
func manifest(name string) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	c.Spec.Version.Version = semver.MustParse(line("", name, "").version)
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}}
	return c
}

func (w *lived) settle() {
	w.t.Helper()
	require.NoError(w.t, w.driver.RunFor(context.Background(), 10*time.Minute))
}

func (w *lived) subscription() *v1alpha1.Subscription {
	w.t.Helper()
	s, err := olmcore.Get[*v1alpha1.Subscription](context.Background(), w.cluster, "ns", "a")
	require.NoError(w.t, err)
	require.NotNil(w.t, s)
	return s
}

func (w *lived) csv(name string) *v1alpha1.ClusterServiceVersion {
	w.t.Helper()
	c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](context.Background(), w.cluster, "ns", name)
	require.NoError(w.t, err)
	return c
}

// TestAdoptedOperatorIsUpgradedByItsSubscription shows the whole way of a ClusterServiceVersion that was there
// first: it is taken over as it is, and upgraded like any other from then on.
//
// OLM's case: an operator that is there is taken over.
func TestAdoptedOperatorIsUpgradedByItsSubscription(t *testing.T) {
	for _, policy := range []resolution.Policy{{}, {AdoptSameBundle: true}} {
		w := live(t, policy, asking.Config{})
		first := manifest("a1")
		first.Namespace = "ns"
		first.Annotations = map[string]string{"operatorframework.io/properties": annotation(t, packages(chain()...)[0].Bundles[0].Properties)}
		require.NoError(t, w.cluster.Create(first, subscription("ns", "a", "a", "stable", "global/cat")))
		w.settle()
		s := w.subscription()
		if !policy.AdoptSameBundle {
			require.Empty(t, s.Status.InstalledCSV)
			require.Contains(t, w.last.Failure.Message, "clusterserviceversion a1 exists and is not referenced by a subscription")
			continue
		}
		require.Equal(t, "a3", s.Status.InstalledCSV)
		require.Equal(t, v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateAtLatest), s.Status.State)
		require.Nil(t, w.csv("a1"))
		require.Equal(t, "a2", w.csv("a3").Spec.Replaces)
		require.Equal(t, resolution.Unchanged, w.last.Outcome)
	}
}

// TestDeletedOperatorIsReinstalledAfterItsDeletion deletes an operator that takes its time to go: where deleted
// versions are installed again, its successor of the same name comes after it.
func TestDeletedOperatorIsReinstalledAfterItsDeletion(t *testing.T) {
	w := live(t, resolution.Policy{}, asking.Config{ReinstallMissingCSV: true})
	require.NoError(t, w.cluster.Create(subscription("ns", "a", "a", "stable", "global/cat")))
	w.settle()
	old := w.csv("a3")
	require.NotNil(t, old)
	held := old.DeepCopy()
	held.Finalizers = append(held.Finalizers, "example.com/slow")
	require.NoError(t, w.cluster.Update(held))
	require.NoError(t, w.cluster.Delete(olmcore.RefOf(old).Unversioned()))
	w.settle()
	require.Equal(t, []types.NamespacedName{{Namespace: "ns", Name: "a3"}}, w.last.Operators[0].WaitFor)
	require.Equal(t, old.UID, w.csv("a3").UID)
	require.NotNil(t, w.csv("a3").DeletionTimestamp)

	held = w.csv("a3").DeepCopy()
	held.Finalizers = nil
	require.NoError(t, w.cluster.Update(held))
	w.settle()
	require.NotNil(t, w.csv("a3"))
	require.NotEqual(t, old.UID, w.csv("a3").UID)
	require.Equal(t, "a3", w.subscription().Status.InstalledCSV)
	require.Equal(t, resolution.Unchanged, w.last.Outcome)
}
