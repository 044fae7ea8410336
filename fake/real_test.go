// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// TestPublishedOperatorsLiveInTheCluster creates, changes and deletes every
// object of published bundles, and runs the Deployments of their CSVs.
func TestPublishedOperatorsLiveInTheCluster(t *testing.T) {
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			created := createAll(t, c, b.Objects)
			for _, o := range created {
				if _, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
					d := stored(t, c, o).(*apiextensionsv1.CustomResourceDefinition)
					stored := schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Status.StoredVersions[0], Kind: d.Spec.Names.Kind}
					require.True(t, c.Discovery().Serves(stored), d.Name)
				}
				changeAll(t, c, o)
			}
			again := newCluster(t)
			require.NoError(t, again.Load(c.Objects()...))
			require.Equal(t, dump(t, c), dump(t, again))
			for _, o := range created {
				require.NoError(t, c.Delete(refTo(o)))
			}
			settle(t, c)
			for _, o := range created {
				require.False(t, exists(c, o), olmcore.KeyOf(o))
			}
		})
	}
}

// createAll creates the objects of a bundle in the namespace "ns", with the
// Deployments and ServiceAccounts of its CSV, and checks that these run.
func createAll(t *testing.T, c *fake.Cluster, objects []olmcore.Object) (created []olmcore.Object) {
	t.Helper()
	create := func(o olmcore.Object) {
		err := c.Create(o)
		if meta.IsNoMatchError(err) {
			return // e.g. a ServiceMonitor: it is not served here
		}
		require.NoError(t, err, olmcore.KeyOf(o))
		created = append(created, o)
	}
	for _, o := range objects {
		o = o.DeepCopyObject().(olmcore.Object)
		for _, k := range c.Discovery().Kinds() {
			if k.GroupVersionKind == olmcore.GVKOf(o) && k.Namespaced {
				o.SetNamespace("ns")
			}
		}
		create(o)
		if csv, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
			for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
				account := spec.Spec.Template.Spec.ServiceAccountName
				if account != "" && fake.Find[*corev1.ServiceAccount](c, "ns", account) == nil {
					create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: "ns"}})
				}
				create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Namespace: "ns"}, Spec: spec.Spec})
			}
		}
	}
	settle(t, c)
	for _, o := range created {
		if d, ok := o.(*appsv1.Deployment); ok {
			require.Equal(t, corev1.ConditionTrue, deploymentCondition(stored(t, c, d), appsv1.DeploymentAvailable).Status, d.Name)
		}
	}
	return created
}

// changeAll makes one change of metadata to an object, which must be the only one, and one that changes nothing.
func changeAll(t *testing.T, c *fake.Cluster, o olmcore.Object) {
	t.Helper()
	before := stored(t, c, o)
	after := before.DeepCopyObject().(olmcore.Object)
	version := c.ResourceVersion()
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
	require.Equal(t, version, c.ResourceVersion(), "nothing changed")
	labels, _ := olmcore.MergeMaps(after.GetLabels(), map[string]string{"seen": "yes"})
	after.SetLabels(labels)
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
	require.Equal(t, before.GetGeneration(), stored(t, c, o).GetGeneration())
	require.NoError(t, c.Patch(olmcore.KeyOf(o), []byte(`{"metadata":{"labels":{"seen":null}}}`)))
	require.NotContains(t, stored(t, c, o).GetLabels(), "seen")
}
