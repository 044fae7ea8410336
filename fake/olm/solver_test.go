// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// offer makes the catalog offer these entries of a package's one channel, besides
// what it offers already, to be chosen from by the real solver.
func (w *world) offer(t *testing.T, content map[string]resolution.Package, pkg string, entries ...resolution.ChannelEntry) {
	content[pkg] = packageOf(pkg, entries...)
	catalogs, err := catalogsOf(content)
	require.NoError(t, err)
	catalogs.Serve(&w.olm.Options)
}

func packageOf(pkg string, entries ...resolution.ChannelEntry) resolution.Package {
	p := resolution.Package{Name: pkg, DefaultChannel: "stable", Channels: []resolution.Channel{{Name: "stable", Entries: entries}}}
	for i, e := range entries {
		p.Bundles = append(p.Bundles, resolution.Bundle{Name: e.Name, Bundle: olmcore.Bundle{
			Objects: bundle(pkg, i+1),
			Properties: []olmcore.Property{{
				Type: resolution.PropertyPackage, Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":"%d.0.0"}`, pkg, i+1)),
			}},
		}})
	}
	return p
}

func catalogsOf(content map[string]resolution.Package) (controllers.Catalogs, error) {
	var all []resolution.Package
	for _, name := range slices.Sorted(maps.Keys(content)) {
		all = append(all, content[name])
	}
	catalog, problems := resolution.Build(all)
	if len(problems) > 0 {
		return controllers.Catalogs{}, fmt.Errorf("the catalog is not valid: %v", problems)
	}
	return controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: catalog}}, nil
}

func (w *world) status(name string) v1alpha1.SubscriptionStatus {
	return fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name).Status
}

// TestTheSolversAnswerMayBeLost: two Subscriptions are resolved together, and whatever write of that is lost, they end
// with the one plan that they would have had.
func TestTheSolversAnswerMayBeLost(t *testing.T) {
	var last *world
	require.NoError(t, invariant.Resumable(invariant.World{
		New: func() (*fake.Cluster, error) {
			content := map[string]resolution.Package{}
			last = newWorld(t)
			last.offer(t, content, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
			last.offer(t, content, "beta", resolution.ChannelEntry{Name: csvName("beta", 1)})
			if err := last.subscribe("alpha", v1alpha1.ApprovalAutomatic); err != nil {
				return nil, err
			}
			return last.cluster, last.subscribe("beta", v1alpha1.ApprovalAutomatic)
		},
		Controllers: func(*fake.Cluster) []controller.Controller {
			options := last.olm.Options
			options.Sweeps = false
			return (&olm.OLM{Options: options}).Controllers()
		},
		Rounds:     rounds,
		SettleTime: time.Minute,
		Ignore:     ignore,
	}))
}

// TestAnotherPackageIsInstalled: a Subscription whose spec.name is changed to a
// package that replaces what it has gets a plan for that, and ends up with it.
func TestAnotherPackageIsInstalled(t *testing.T) {
	w, content := newWorld(t), map[string]resolution.Package{}
	w.offer(t, content, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
	w.offer(t, content, "beta", resolution.ChannelEntry{Name: csvName("beta", 1), Replaces: csvName("alpha", 1)})
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	first := w.status("alpha").InstallPlanRef.UID

	require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Spec.Package = "beta" }))
	w.run(t, 2*time.Minute)
	s := w.status("alpha")
	require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, s.State)
	require.Equal(t, csvName("beta", 1), s.InstalledCSV)
	require.NotEqual(t, first, s.InstallPlanRef.UID)
	require.Len(t, w.plans(), 2)
}

// TestAVersionRangeHoldsAnOperatorUntilItIsTakenAway: the annotation changes neither the
// generation of its Subscription nor its status, and is heard nevertheless.
func TestAVersionRangeHoldsAnOperatorUntilItIsTakenAway(t *testing.T) {
	w, content := newWorld(t), map[string]resolution.Package{}
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	w.offer(t, content, "alpha", one)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 2*time.Minute)
	annotate := func(text string) {
		require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) {
			delete(s.Annotations, resolution.AnnotationVersionRange)
			if text != "" {
				s.Annotations = map[string]string{resolution.AnnotationVersionRange: text}
			}
		}))
	}
	annotate("<2.0.0")
	w.offer(t, content, "alpha", one, two)
	w.olm.CatalogsChanged()
	w.run(t, 5*time.Minute)
	require.Equal(t, one.Name, w.status("alpha").InstalledCSV)
	require.Len(t, w.plans(), 1)

	annotate("")
	w.run(t, 5*time.Minute)
	require.Equal(t, two.Name, w.status("alpha").InstalledCSV)
	require.Len(t, w.plans(), 2)
}

// TestAFailedPlanIsLeftBehind: in a namespace that fails forward a version that leaves the failed one out is installed;
// one that replaces it is not, nor is any where nothing fails forward.
func TestAFailedPlanIsLeftBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		forward bool
		next    resolution.ChannelEntry
		ends    bool
	}{
		"skips":                 {true, resolution.ChannelEntry{Replaces: csvName("alpha", 1), Skips: []string{csvName("alpha", 2)}}, true},
		"a skipRange":           {true, resolution.ChannelEntry{Replaces: csvName("alpha", 2), SkipRange: ">=1.0.0 <3.0.0"}, true},
		"replaces alone":        {true, resolution.ChannelEntry{Replaces: csvName("alpha", 2)}, false},
		"nothing fails forward": {false, resolution.ChannelEntry{Replaces: csvName("alpha", 1), Skips: []string{csvName("alpha", 2)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, content := newWorld(t), map[string]resolution.Package{}
			if tc.forward {
				require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) {
					g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
				}))
			}
			one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
			two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
			w.offer(t, content, "alpha", one)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, time.Minute)
			w.requireInstalled(t, "alpha")

			w.offer(t, content, "alpha", one, two)
			w.olm.CatalogsChanged()
			require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = "1" }))
			w.run(t, time.Minute)
			failed := w.status("alpha").InstallPlanRef
			at := olmcore.Timestamp(w.cluster.Now())
			require.NoError(t, fake.Edit(w.cluster, namespace, failed.Name, func(p *v1alpha1.InstallPlan) {
				require.Equal(t, []string{two.Name}, p.Spec.ClusterServiceVersionNames)
				p.Status.Phase = v1alpha1.InstallPlanPhaseFailed
				p.Status.Conditions = []v1alpha1.InstallPlanCondition{v1alpha1.ConditionFailed(v1alpha1.InstallPlanInstalled, v1alpha1.InstallPlanReasonComponentFailed, "broke", &at)}
			}))
			w.run(t, time.Minute)

			tc.next.Name = csvName("alpha", 3)
			w.offer(t, content, "alpha", one, two, tc.next)
			w.olm.CatalogsChanged()
			require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = "2" }))
			w.run(t, time.Minute)
			if !tc.ends {
				require.Equal(t, failed.UID, w.status("alpha").InstallPlanRef.UID)
				return
			}
			require.Equal(t, csvName("alpha", 3), w.status("alpha").CurrentCSV)
			require.NotEqual(t, failed.UID, w.status("alpha").InstallPlanRef.UID)
		})
	}
}

// TestASubscriptionWithoutASourceNamespace gets its plan all the same, when there is a resolver that finds one.
func TestASubscriptionWithoutASourceNamespace(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Spec.CatalogSourceNamespace = "" }))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	plans := w.plans()
	require.Len(t, plans, 1)
	require.Equal(t, v1alpha1.ApprovalAutomatic, plans[0].Spec.Approval)
	require.True(t, plans[0].Spec.Approved)
	require.Equal(t, 1, plans[0].Spec.Generation)
	require.Equal(t, []string{"community"}, plans[0].Status.CatalogSources)
	require.Equal(t, 1, w.status("alpha").InstallPlanGeneration)
	require.Equal(t, plans[0].UID, w.status("alpha").InstallPlanRef.UID)
}

// TestABadImageThenAGoodBundle: an upgrade whose bundle image cannot be unpacked
// leaves the Subscription where it is and says so; a repaired catalog moves it on.
func TestABadImageThenAGoodBundle(t *testing.T) {
	w := newWorld(t)
	w.olm.InstallPlan.OPMImage, w.olm.InstallPlan.UtilImage = "opm:1", "util:1"
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	publish := func(resolve func(context.Context, olmcore.Reader, subscription.ResolveRequest) (olmcore.Resolution, error)) {
		w.heads["alpha"], w.olm.Resolve = 2, resolve
		w.olm.CatalogsChanged()
		require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = w.cluster.ResourceVersion() }))
		w.run(t, time.Minute)
	}

	publish(func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		answer, err := w.resolve(ctx, r, request)
		for i := range answer.Operators {
			answer.Operators[i].Bundle = olmcore.Bundle{Image: "registry.example.com/bad"}
		}
		return answer, err
	})
	jobs, err := olmcore.List[*batchv1.Job](w.ctx, w.cluster, "olm", nil)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.NoError(t, w.cluster.Job("olm", jobs[0].Name).Finish("DeadlineExceeded"))
	w.run(t, time.Minute)
	s := w.status("alpha")
	require.Equal(t, csvName("alpha", 1), s.CurrentCSV)
	require.Contains(t, s.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed).Message, "Bundle unpacking failed - DeadlineExceeded: ")

	publish(w.resolve)
	w.run(t, time.Minute)
	s = w.status("alpha")
	require.Equal(t, csvName("alpha", 2), s.InstalledCSV)
	require.NotEqual(t, corev1.ConditionTrue, s.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed).Status)
	require.NotEqual(t, corev1.ConditionTrue, s.GetCondition(v1alpha1.SubscriptionBundleUnpacking).Status)
}
