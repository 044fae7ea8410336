// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// changeBeforeDelete lets a user change each object of a kind once, just before its first deletion reaches the API
// server. It returns the keys of the objects that were changed.
func changeBeforeDelete(t *testing.T, c *fake.Cluster, kind string, change func(olmcore.Object)) *[]olmcore.Key {
	var changed []olmcore.Key
	c.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if key := target.Key(); verb == olmcore.VerbDelete && target.Kind == kind && !slices.Contains(changed, key) {
			changed = append(changed, key)
			require.NoError(t, c.Edit(key, change))
		}
		return nil
	}
	return &changed
}

// exists reports whether the cluster contains an object.
func exists(c *fake.Cluster, key olmcore.Key) bool {
	return slices.ContainsFunc(c.Objects(), func(o olmcore.Object) bool { return olmcore.KeyOf(o) == key })
}

// requireNoFailure checks that events contain no Diagnostic about a Conflict.
func requireNoFailure(t *testing.T, events []controller.Event) {
	t.Helper()
	for _, e := range events {
		if e.Diagnostic != nil {
			require.NotContains(t, e.Diagnostic.Message, "it changed since", "%s", e)
		}
	}
}

// TestACopyThatBecomesAnOriginalStays checks that a copied ClusterServiceVersion stays if a user removes the marks of a
// copy after the decision to delete it.
func TestACopyThatBecomesAnOriginalStays(t *testing.T) {
	c, err := manyTeams()
	require.NoError(t, err)
	d := &fake.Driver{Cluster: c, Controllers: (&olm.OLM{Disconnected: true}).Controllers()}
	require.NoError(t, d.Settle(t.Context()))
	changed := changeBeforeDelete(t, c, "ClusterServiceVersion", func(o olmcore.Object) {
		version := o.(*v1alpha1.ClusterServiceVersion)
		delete(version.Labels, olmcore.LabelCopiedFrom)
		delete(version.Annotations, operatorsv1.OperatorGroupNamespaceAnnotationKey)
	})
	original := fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1")
	require.NoError(t, c.Delete(olmcore.RefOf(original).Unversioned()))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Len(t, *changed, 2, "both copies were about to be deleted")
	for _, key := range *changed {
		require.True(t, exists(c, key), "%s is no copy", key)
	}
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1"))
	requireNoFailure(t, d.Events)
}

// TestACopyThatChangesIsDeletedAllTheSame checks that a change that leaves a copy a copy only delays its deletion.
func TestACopyThatChangesIsDeletedAllTheSame(t *testing.T) {
	c, err := manyTeams()
	require.NoError(t, err)
	d := &fake.Driver{Cluster: c, Controllers: (&olm.OLM{Disconnected: true}).Controllers()}
	require.NoError(t, d.Settle(t.Context()))
	changed := changeBeforeDelete(t, c, "ClusterServiceVersion", func(o olmcore.Object) {
		o.SetAnnotations(map[string]string{"example.com/note": "mine", operatorsv1.OperatorGroupNamespaceAnnotationKey: "operators"})
	})
	original := fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1")
	require.NoError(t, c.Delete(olmcore.RefOf(original).Unversioned()))
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	require.Len(t, *changed, 2)
	for _, key := range *changed {
		require.False(t, exists(c, key), "%s", key)
	}
	requireNoFailure(t, d.Events)
}

// TestACopyWithoutItsLabelIsStillACopy checks that a copied ClusterServiceVersion whose annotation names another
// namespace stays a copy without its label, as in OLM. It is deleted with its original. If the original exists, a whole
// copy replaces it.
func TestACopyWithoutItsLabelIsStillACopy(t *testing.T) {
	removeLabel := func(o olmcore.Object) { delete(o.(*v1alpha1.ClusterServiceVersion).Labels, olmcore.LabelCopiedFrom) }
	c, err := manyTeams()
	require.NoError(t, err)
	d := &fake.Driver{Cluster: c, Controllers: (&olm.OLM{Disconnected: true}).Controllers()}
	require.NoError(t, d.Settle(t.Context()))
	var copies []olmcore.Key
	for _, o := range c.Objects() {
		if o.GetLabels()[olmcore.LabelCopiedFrom] != "" && olmcore.KeyOf(o).Kind == "ClusterServiceVersion" {
			copies = append(copies, olmcore.KeyOf(o))
		}
	}
	require.Len(t, copies, 2)
	require.NoError(t, c.Edit(copies[0], removeLabel))
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	whole := fake.Find[*v1alpha1.ClusterServiceVersion](c, copies[0].Namespace, copies[0].Name)
	require.NotNil(t, whole)
	require.Equal(t, "operators", whole.Labels[olmcore.LabelCopiedFrom])

	changed := changeBeforeDelete(t, c, "ClusterServiceVersion", removeLabel)
	original := fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1")
	require.NoError(t, c.Delete(olmcore.RefOf(original).Unversioned()))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Len(t, *changed, 2)
	for _, key := range copies {
		require.False(t, exists(c, key), "%s", key)
	}
	requireNoFailure(t, d.Events)
}

// TestAnObjectThatChangesOwnerStays checks that cleanup and sweep do not delete a ClusterRole whose owner labels a user
// removes after the decision.
func TestAnObjectThatChangesOwnerStays(t *testing.T) {
	disown := func(o olmcore.Object) {
		labels := o.GetLabels()
		for _, key := range []string{olmcore.LabelOwner, olmcore.LabelOwnerKind, olmcore.LabelOwnerNamespace, olmcore.LabelOwnerUID} {
			delete(labels, key)
		}
		o.SetLabels(labels)
	}
	for name, remove := range map[string]func(*world) error{
		"cleanup": func(w *world) error {
			version := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("alpha", 1))
			return w.cluster.Delete(olmcore.RefOf(version).Unversioned())
		},
		"sweep": func(w *world) error { return w.vanish(csvName("alpha", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := sweptWorld(t, true)
			require.NoError(t, w.cluster.Delete(olmcore.Ref{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: "Subscription", Namespace: namespace, Name: "alpha"}))
			changed := changeBeforeDelete(t, w.cluster, "ClusterRole", disown)
			require.NoError(t, remove(w))
			require.NoError(t, w.driver.RunFor(t.Context(), 25*time.Minute))
			require.NotEmpty(t, *changed)
			for _, key := range *changed {
				require.NotNil(t, fake.Find[*rbacv1.ClusterRole](w.cluster, "", key.Name), "%s is nobody's", key)
			}
			require.Empty(t, w.csvs())
			require.Empty(t, w.orphans())
			requireNoFailure(t, w.driver.Events)
		})
	}
}
