// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestTwoWorkersWithOldCaches: two controllers work on the same versions at once, each from a cache that is behind by
// kind. Nothing that a live version has is deleted, no installed version is replaced by an older one, and once the
// caches are up to date everything ends as it should.
func TestTwoWorkersWithOldCaches(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		base, err := fromFiles("base.yaml", "v1.yaml", "rbac-v2.yaml")
		require.NoError(t, err)
		for _, o := range base[3:] {
			require.NoError(t, h.c.Create(o))
		}
		if rapid.Bool().Draw(t, "installed") {
			require.NoError(t, h.d.RunUntilIdle(ctx, time.Hour))
		}
		views := [2]*fake.View{h.c.View("one"), h.c.View("two")}
		kinds := []schema.GroupVersionKind{
			csvKind, csvKind, groupKind, appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Namespace"),
			rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		}
		work := func(t *rapid.T) {
			view := views[rapid.IntRange(0, 1).Draw(t, "worker")]
			for _, controller := range h.d.Controllers {
				keys := controller.Keys(view)
				if len(keys) == 0 || rapid.IntRange(0, 2).Draw(t, "idle") == 0 {
					continue
				}
				key := rapid.SampledFrom(keys).Draw(t, "key")
				res, err := controller.Reconcile(ctx, view, key, h.c.Now(), nil)
				if apierrors.IsNotFound(err) {
					continue
				}
				require.NoError(t, err)
				_ = olmcore.Run(ctx, h.c, res.Actions) // what an old cache asks for may be refused
			}
		}
		last := "" // who had the Deployment
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.NoError(t, h.violation)
				owner := ""
				if d := fake.Find[*appsv1.Deployment](h.c, "ns", "cool"); d != nil {
					owner = d.Labels[olmcore.LabelOwner]
				}
				require.False(t, last == "cool.v2" && owner == "cool.v1", "the old version took its Deployment back")
				last = owner
			},
			"work": work, "work on": work,
			"news": func(t *rapid.T) {
				view := views[rapid.IntRange(0, 1).Draw(t, "view")]
				for range rapid.IntRange(1, 4).Draw(t, "events") {
					view.Next(rapid.SampledFrom(kinds).Draw(t, "kind"))
				}
			},
			"synced": func(t *rapid.T) { views[rapid.IntRange(0, 1).Draw(t, "view")].Sync() },
			"settle": func(t *rapid.T) { require.NoError(t, h.c.RunFor(time.Second)) },
			"later":  func(t *rapid.T) { require.NoError(t, h.c.RunFor(time.Minute)) },
			"upgrade": func(t *rapid.T) {
				v2, err := fromFiles("v2.yaml")
				require.NoError(t, err)
				_ = h.c.Create(v2...)
			},
			"delete": func(t *rapid.T) {
				if v1 := fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", "cool.v1"); v1 != nil && len(v1.Finalizers) > 0 {
					require.NoError(t, h.c.Delete(refOf(v1)))
				}
			},
		})
		require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
		require.NoError(t, h.violation)
		left := csvs(h.c)
		for _, v := range left {
			require.Nil(t, v.DeletionTimestamp, "%s: %s", v.Name, v.Status.Message)
			require.Equal(t, succeeded, v.Status.Phase, "%s: %s %s", v.Name, v.Status.Reason, v.Status.Message)
		}
		require.LessOrEqual(t, len(left), 1)
		if fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", "cool.v1") == nil {
			gone := &v1alpha1.ClusterServiceVersion{}
			gone.Namespace, gone.Name = "ns", "cool.v1"
			require.Empty(t, clusterObjectsOf(h.c, gone))
		}
	})
}
