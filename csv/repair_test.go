// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func TestRepairSaysWhatAnInstallPlanWouldCreate(t *testing.T) {
	in := input(pending, "RequirementsUnknown", "")
	out, err := csv.Reconcile(in)
	require.NoError(t, err)
	require.Empty(t, out.Repair, "nothing is missing")

	strategy := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}}}}
	in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
	out, err = csv.Reconcile(in)
	require.NoError(t, err)
	var got []string
	for _, a := range out.Repair {
		verb, target, _ := a.Describe()
		require.Equal(t, olmcore.VerbCreate, verb)
		got = append(got, target.Kind)
		o := a.(olmcore.Create).Object
		require.Equal(t, target.Namespace == "", len(o.GetOwnerReferences()) == 0)
		require.Equal(t, target.Kind == "ServiceAccount", o.GetLabels()["olm.owner"] == "")
	}
	require.Equal(t, []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, got)
	for _, a := range out.Actions {
		verb, _, _ := a.Describe()
		require.Equal(t, olmcore.VerbUpdateStatus, verb, "nothing of it is asked for")
	}

	strategy.Permissions, strategy.ClusterPermissions[0].ServiceAccountName = nil, "default"
	out, err = csv.Reconcile(in)
	require.NoError(t, err)
	for _, a := range out.Repair {
		_, target, _ := a.Describe()
		require.NotEqual(t, "ServiceAccount", target.Kind, "default is Kubernetes' own")
	}
}

// permissions is Succeeded in the end, and nothing is created twice.
func TestALostServiceAccountComesBack(t *testing.T) {
	ctx := context.Background()
	cluster, driver := newWorld(csv.Config{})
	base, err := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, err)
	require.NoError(t, cluster.Create(base[0], base[1], base[len(base)-1]))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Minute))
	v := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, reason("RequirementsNotMet"), v.Status.Reason)
	in, err := csv.Gather(ctx, cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	out, err := csv.Reconcile(in)
	require.NoError(t, err)
	require.Len(t, out.Repair, 3)

	require.NoError(t, olmcore.Run(ctx, cluster, out.Repair))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.Equal(t, succeeded, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1").Status.Phase)
}
