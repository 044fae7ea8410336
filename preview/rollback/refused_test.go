// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestANewerVersionIsNoWayBack: the version that is installed is not taken away for it.
func TestANewerVersionIsNoWayBack(t *testing.T) {
	w := upgradetest.New(t, nil)
	a := advised(t, w, upgradetest.Second, true)
	require.Equal(t, "vault.v2.0.0 is newer than vault.v1.0.0, which is installed: approve its InstallPlan instead", a.Refused)
	require.Empty(t, a.Steps)
	require.Empty(t, advised(t, w, upgradetest.First, false).Refused)
}

// TestASubscriptionThatIsBeingDeleted: it brings nothing any more.
func TestASubscriptionThatIsBeingDeleted(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	require.NoError(t, fake.Edit(w.Cluster, vault.Namespace, vault.Name, func(s *v1alpha1.Subscription) { s.Finalizers = []string{"example.com/held"} }))
	require.NoError(t, olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{olmcore.DeleteOf(w.Subscribed(), olmcore.Cause{Reason: "Test", Message: "test"})}))
	require.Equal(t, "the Subscription is being deleted: create it again first, with startingCSV vault.v1.0.0", advised(t, w, "", false).Refused)
}

// TestNodesOfWhichNothingIsKnown: they have what an operator asks of them, in the version before as in the newer one.
func TestNodesOfWhichNothingIsKnown(t *testing.T) {
	label := "node-role.kubernetes.io/control-plane"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "control", Labels: map[string]string{label: ""}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w := upgradetest.New(t, func(first, second *bundle) {
		for _, b := range []*bundle{first, second} {
			b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = map[string]string{label: ""}
		}
	}, node)
	p, err := preview.Run(context.Background(), w.Cluster, w.Plan(t), w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	require.Empty(t, p.Blocked)
	w.Approve(t)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, w.Phase(upgradetest.Second))
	require.Empty(t, advised(t, w, "", false).Refused)
}

// TestWhatWasNotReadIsNotGuessed: without the versions there is no advice, and without definitions a loss is not known.
func TestWhatWasNotReadIsNotGuessed(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	for kind, want := range map[string]string{
		"ClusterServiceVersion":    "what there is is not known: ClusterServiceVersion could not be read",
		"InstallPlan":              "what there is is not known: InstallPlan could not be read",
		"CustomResourceDefinition": "something would be lost: what custom resources lose is not known, as no CustomResourceDefinition could be read",
		"PriorityClass":            "",
	} {
		in := rollback.Input{
			Now: w.Cluster.Now(), Namespace: vault.Namespace, Subscription: vault.Name, To: upgradetest.First, NotRead: []string{kind}, Options: w.OLM.Options,
		}
		for _, o := range w.Cluster.Objects() {
			if olmcore.GVKOf(o).Kind != kind {
				in.Objects = append(in.Objects, o)
			}
		}
		a, err := rollback.Advise(context.Background(), in)
		require.NoError(t, err)
		require.Equal(t, want, a.Refused)
	}
}

// TestAClockThatIsBehind: what OLM wrote lies in the future of who asks, and the way leads there all the same. A time
// that no clock shows does not count.
func TestAClockThatIsBehind(t *testing.T) {
	w := upgradetest.New(t, breakSecond)
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	want := advised(t, w, "", false)
	require.Empty(t, want.Refused)
	require.NoError(t, fake.Edit(w.Cluster, vault.Namespace, upgradetest.First, func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.LastUpdateTime = new(metav1.NewTime(w.Cluster.Now().AddDate(1000, 0, 0)))
	}))
	a, err := rollback.Run(context.Background(), w.Cluster, vault, "", false, w.Cluster.Now().Add(-40*time.Minute), w.OLM.Options)
	require.NoError(t, err)
	require.Empty(t, a.Refused)
	require.Equal(t, lines(want), lines(a))
}

// TestWhatTheSamePlanBringsToOthers: the plan that is approved belongs to the namespace.
func TestWhatTheSamePlanBringsToOthers(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	shop := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: vault.Namespace, Name: "shop"}, Spec: w.Subscribed().Spec.DeepCopy()}
	shop.Spec.Package = "shop"
	require.NoError(t, w.Cluster.Create(shop))
	vaults := []bundle{upgradetest.BundleOf(1), upgradetest.BundleOf(2)}
	offer(t, w, map[string][]bundle{"vault": vaults, "shop": {shopOf(1)}})
	plan := fake.Find[*v1alpha1.Subscription](w.Cluster, vault.Namespace, "shop").Status.InstallPlanRef
	require.NoError(t, fake.Edit(w.Cluster, plan.Namespace, plan.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	w.Run(t)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, w.Phase("shop.v1"))
	offer(t, w, map[string][]bundle{"vault": vaults, "shop": {shopOf(1), shopOf(2)}})
	a := advised(t, w, upgradetest.First, false)
	require.Equal(t, "something would be lost: shop.v1 becomes shop.v2, which the same InstallPlan brings", a.Refused)
	require.NotEmpty(t, advised(t, w, upgradetest.First, true).Steps)
}

func shopOf(n uint64) bundle {
	b := upgradetest.BundleOf(n)
	b.CRD, b.CSV.Spec.CustomResourceDefinitions, b.CSV.Spec.Version.Version = nil, v1alpha1.CustomResourceDefinitions{}, semver.Version{Major: n}
	b.CSV.Name, b.CSV.Spec.Replaces = map[uint64]string{1: "shop.v1", 2: "shop.v2"}[n], map[uint64]string{2: "shop.v1"}[n]
	b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "shop"
	return b
}

// offer has the catalog of a world serve these packages, and lets some minutes pass.
func offer(t *testing.T, w *upgradetest.World, packages map[string][]bundle) {
	t.Helper()
	var all []resolution.Package
	for name, bundles := range packages {
		p := resolution.Package{Name: name, DefaultChannel: "stable", Channels: []resolution.Channel{{Name: "stable"}}}
		for _, b := range bundles {
			p.Channels[0].Entries = append(p.Channels[0].Entries, resolution.ChannelEntry{Name: b.CSV.Name, Replaces: b.CSV.Spec.Replaces})
			value, err := json.Marshal(map[string]string{"packageName": name, "version": b.CSV.Spec.Version.String()})
			require.NoError(t, err)
			objects := []olmcore.Object{b.CSV}
			if b.CRD != nil {
				objects = append(objects, b.CRD)
			}
			p.Bundles = append(p.Bundles, resolution.Bundle{Name: b.CSV.Name, Bundle: olmcore.Bundle{
				Objects: objects, Properties: []olmcore.Property{{Type: resolution.PropertyPackage, Value: value}},
			}})
		}
		all = append(all, p)
	}
	content, problems := resolution.Build(all)
	require.Empty(t, problems)
	w.Catalogs = &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: content}}
	w.Catalogs.Serve(&w.OLM.Options)
	w.OLM.CatalogsChanged()
	require.NoError(t, fake.Edit(w.Cluster, "olm", "community", func(c *v1alpha1.CatalogSource) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "offers", bundleNames(packages))
	}))
	w.Run(t)
}

func bundleNames(packages map[string][]bundle) (all string) {
	for _, b := range append(packages["vault"], packages["shop"]...) {
		all += " " + b.CSV.Name
	}
	return all
}
