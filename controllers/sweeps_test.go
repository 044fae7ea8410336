// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestACleanClusterIsSweptNowAndThen: many versions go at the same time, and what they left behind counts ten minutes
// later.
func TestACleanClusterIsSweptNowAndThen(t *testing.T) {
	c := fake.NewCluster(noon)
	sweep := controllerOf(t, controllers.New(&controllers.Options{Sweeps: true}), controllers.CSVSweep)
	looks := func(after time.Duration) (int, olmcore.Result) {
		lists := 0
		result, err := sweep.Reconcile(t.Context(), counted{c, &lists}, types.NamespacedName{Name: "cluster"}, noon.Add(after), nil)
		require.NoError(t, err)
		return lists, result
	}
	lists, _ := looks(0)
	require.NotZero(t, lists)
	lists, result := looks(4 * time.Second)
	require.Zero(t, lists)
	require.Equal(t, 6*time.Second, result.RequeueAfter)
	lists, _ = looks(-time.Hour)
	require.NotZero(t, lists, "the clock was set back")

	gone := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "a", Name: "gone"}
	require.NoError(t, c.Create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "left", Labels: gone.Labels()}}))
	for range 2 {
		lists, result = looks(time.Hour)
		require.NotZero(t, lists, "what was left behind is said as long as it is there")
		require.Len(t, result.Diagnostics, 1)
	}
}

// TestACopyLeavesNothingBehind: who goes is an original or a group.
func TestACopyLeavesNothingBehind(t *testing.T) {
	sweep := controllerOf(t, controllers.New(&controllers.Options{Sweeps: true}), controllers.CSVSweep)
	v := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "v", DeletionTimestamp: &metav1.Time{Time: noon}}}
	require.NotEmpty(t, sweep.Affected(v))
	v.Labels = map[string]string{olmcore.LabelCopiedFrom: "b"}
	require.Empty(t, sweep.Affected(v))
}
