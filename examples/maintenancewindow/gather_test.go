// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/maintenancewindow"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

var secrets = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}

// version is an installed version whose spec says that its account may read Secrets.
func version() *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a.v1", UID: "v"}}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "robot", Rules: []rbacv1.PolicyRule{secrets}}}
	return c
}

// TestWhatIsGrantedCountsAndNotWhatIsWritten: an upgrade keeps what the installed version has in the cluster. A version
// that only says so, is a copy, or is not there, has nothing: of an upgrade from a.v0 it takes none over.
func TestWhatIsGrantedCountsAndNotWhatIsWritten(t *testing.T) {
	copied := version()
	copied.Labels = map[string]string{olmcore.LabelCopiedFrom: "db"}
	roles, err := olmcore.PermissionObjects(version())
	require.NoError(t, err)
	roles = slices.Clip(roles)
	changed := roles[1].DeepCopyObject().(*rbacv1.ClusterRole)
	changed.Rules = nil
	for name, tt := range map[string]struct {
		objects  []olmcore.Object
		fresh    bool
		approves bool
	}{
		"it has it":                   {append(roles, version()), false, true},
		"its roles are there":         {roles, false, true},
		"only its spec has it":        {[]olmcore.Object{version()}, false, false},
		"its role has less":           {[]olmcore.Object{version(), changed, roles[2]}, false, false},
		"no binding":                  {[]olmcore.Object{version(), roles[1]}, false, false},
		"it is a copy":                {[]olmcore.Object{copied}, false, false},
		"it is not there":             {nil, false, false},
		"it is the first of its kind": {nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(noon)
			in := inputOf(spec{"schedule": "* * * * *", "duration": "1h"})
			planOf(&in).Status.Plan, _ = steps("a.v2", secrets)
			if !tt.fresh {
				tt.objects = append(slices.Clip(tt.objects), installed("a.v0", "a"))
			}
			other := followerOf(&in).DeepCopy()
			other.Name, other.Status.InstallPlanRef.UID = "b", "another"
			require.NoError(t, c.Load(append(tt.objects, planOf(&in), followerOf(&in), other, in.Window)...))
			got, err := maintenancewindow.Controller().Reconcile(t.Context(), c, types.NamespacedName{Name: "weekend"}, noon, nil)
			require.NoError(t, err)
			require.Equal(t, tt.approves, len(got.Transitions) > 0, "%v", lines(got))
		})
	}
}

func TestAWindowThatIsGone(t *testing.T) {
	c := fake.NewCluster(noon)
	require.NoError(t, c.Create(definition(t)...))
	require.NoError(t, c.Settle())
	_, err := maintenancewindow.Controller().Reconcile(t.Context(), c, types.NamespacedName{Name: "gone"}, noon, nil)
	require.True(t, apierrors.IsNotFound(err), err)
}

func TestWhichChangesCount(t *testing.T) {
	controller, all := maintenancewindow.Controller(), []types.NamespacedName{{}}
	require.Equal(t, []types.NamespacedName{{Name: "weekend"}}, controller.Affected(windowOf(nil)))
	for _, o := range []olmcore.Object{&v1alpha1.InstallPlan{}, &v1alpha1.Subscription{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, version()} {
		require.Equal(t, all, controller.Affected(o))
	}
	require.Empty(t, controller.Affected(&corev1.Pod{}))
}
