// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// belongings returns copies of what a plan and the csv controller created for a version, as a manager would create it
// again: with owner labels outside the namespace, with an owner reference inside it.
func (w *world) belongings(version *v1alpha1.ClusterServiceVersion) (all []olmcore.Object) {
	for _, o := range w.cluster.Objects() {
		owner, labelled := olmcore.OwnerOf(o.GetLabels())
		isLabelled := labelled && owner.Name == version.Name && o.GetNamespace() == metav1.NamespaceAll
		if isLabelled && olmcore.KeyOf(o).Kind != "CustomResourceDefinition" || olmcore.OwnedBy(o, version.UID) {
			again := o.DeepCopyObject().(olmcore.Object)
			again.SetUID("")
			again.SetResourceVersion("")
			all = append(all, again)
		}
	}
	owner := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: version.Namespace, Name: version.Name, UID: version.UID}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Labels: owner.Labels()} }
	return append(all,
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("late")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("late")},
		&apiregistrationv1.APIService{ObjectMeta: meta("v1.late.example.com")},
	)
}

// remaining returns those of some objects that exist.
func (w *world) remaining(objects []olmcore.Object) (keys []olmcore.Key) {
	for _, o := range objects {
		if key := olmcore.KeyOf(o); exists(w.cluster, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// orphaned returns the objects that the sweep reported since an event.
func (w *world) orphaned(since int) (keys []olmcore.Key) {
	for _, e := range w.driver.Events[since:] {
		if e.Diagnostic == nil || e.Controller != controllers.CSVSweep || e.Diagnostic.Reason != sweep.ReasonOrphaned {
			continue
		}
		if key := e.Diagnostic.Target.Key(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestWhatAStaleManagerWritesIsSweptUp checks that everything is found that a manager with a stale cache writes for a
// version that is gone, whenever it does so. Inside the namespace the garbage collector deletes it.
func TestWhatAStaleManagerWritesIsSweptUp(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		acts  bool
		only  string // the kind that is written; empty for all
	}{
		"at once":                     {acts: true},
		"after an hour":               {after: time.Hour, acts: true},
		"after a day":                 {after: 24 * time.Hour, acts: true},
		"reported only":               {after: 24 * time.Hour},
		"a kind that no watch covers": {after: 24 * time.Hour, acts: true, only: "PriorityClass"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sweptWorld(t, tt.acts)
			version := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("alpha", 1)).DeepCopy()
			late := slices.DeleteFunc(w.belongings(version), func(o olmcore.Object) bool { return tt.only != "" && olmcore.KeyOf(o).Kind != tt.only })
			require.NotEmpty(t, late)
			require.NoError(t, w.cluster.Delete(olmcore.Ref{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: "Subscription", Namespace: namespace, Name: "alpha"}))
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(version).Unversioned()))
			w.run(t, time.Minute)
			require.Empty(t, w.csvs())
			require.Empty(t, w.remaining(late))
			w.run(t, tt.after)

			since := len(w.driver.Events)
			require.NoError(t, w.cluster.Create(late...))
			require.NoError(t, w.driver.RunFor(t.Context(), 2*time.Hour))
			var outside []olmcore.Key
			for _, o := range late {
				if o.GetNamespace() == metav1.NamespaceAll {
					outside = append(outside, olmcore.KeyOf(o))
				}
			}
			require.ElementsMatch(t, outside, w.orphaned(since))
			if tt.acts {
				require.Empty(t, w.remaining(late))
			} else {
				require.ElementsMatch(t, outside, w.remaining(late))
			}
		})
	}
}

// TestAVersionThatIsDeletedAtOnceLeavesNothing checks that nothing remains of a version that is deleted before the csv
// controller adds the finalizer.
func TestAVersionThatIsDeletedAtOnceLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.olm.CSV.Cleanup.SweepDelete, w.priorities = true, true
	all := w.driver.Controllers
	w.driver.Controllers = slices.DeleteFunc(slices.Clone(all), func(c controller.Controller) bool { return c.Name == controllers.CSV })
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.driver.RunFor(t.Context(), 2*time.Minute))
	version := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("alpha", 1)).DeepCopy()
	late := w.belongings(version)[:3]
	require.NoError(t, w.cluster.Delete(olmcore.Ref{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: "Subscription", Namespace: namespace, Name: "alpha"}))
	require.NoError(t, w.vanish(version.Name))
	w.driver.Controllers = all
	require.NoError(t, w.driver.RunFor(t.Context(), 15*time.Minute))
	require.Empty(t, w.remaining(late))
	require.Empty(t, w.orphans())
	require.NotNil(t, fake.Find[*operatorsv1.OperatorGroup](w.cluster, namespace, "group"))
}

// listedKinds is a Reader that keeps which kinds were listed.
type listedKinds struct {
	olmcore.Reader
	kinds sets.Set[string]
}

func (l listedKinds) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	l.kinds.Insert(gvk.Kind)
	return l.Reader.List(ctx, gvk, namespace, selector)
}

// TestTheSweepReadsEachClusterScopedKindOfStep checks that cleanup and sweep look for each kind of object outside the
// namespaces that a plan can create. A new kind of step is a cluster-scoped one unless it is named here.
func TestTheSweepReadsEachClusterScopedKindOfStep(t *testing.T) {
	namespaced := sets.New("PrometheusRule", "ServiceMonitor", "VerticalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy")
	neverDeleted := sets.New("CustomResourceDefinition")
	r := listedKinds{fake.NewCluster(noon), sets.New[string]()}
	_, err := sweep.Gather(t.Context(), r, cleanup.Config{}, nil)
	require.NoError(t, err)
	for _, k := range (installplan.Config{}).StepKinds() {
		known, isKnown := olmcore.KindOf(k.GroupKind())
		if isKnown && known.Namespaced || namespaced.Has(k.Kind) || neverDeleted.Has(k.Kind) {
			continue
		}
		require.True(t, r.kinds.Has(k.Kind), "%s has no row in clusterKinds of csv/internal/read", k.Kind)
	}
}
