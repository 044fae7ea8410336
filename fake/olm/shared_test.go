// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
)

// TestTwoNamespacesShareAClusterRole: a bundle ships a ClusterRole of a fixed name
// and is installed in two namespaces at once, by two managers. Each plan wants to
// own it; one of them does in the end, and both plans are complete.
func TestTwoNamespacesShareAClusterRole(t *testing.T) {
	cluster := fake.NewCluster(noon)
	cluster.AutoCreateNamespaces = true
	d := &fake.Driver{Cluster: cluster}
	for range 2 {
		o := &olm.OLM{}
		for _, c := range o.Controllers() {
			if c.Name == controllers.InstallPlan {
				d.Controllers = append(d.Controllers, c)
			}
		}
	}
	namespaces := []string{"one", "two"}
	for _, namespace := range namespaces {
		shared := &v1alpha1.Step{Resolving: "a.v1", Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
			Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "shared",
			Manifest: `{"metadata":{"name":"shared"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`,
		}}
		plan := &v1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "install"},
			Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
		}
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}
		require.NoError(t, cluster.Create(plan, group, &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a.v1"}}))
		group.Status.Namespaces = []string{namespace}
		require.NoError(t, cluster.UpdateStatus(group))
		plan.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, Plan: []*v1alpha1.Step{shared}, CatalogSources: []string{}}
		require.NoError(t, cluster.UpdateStatus(plan))
	}
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	for _, namespace := range namespaces {
		require.Equal(t, v1alpha1.InstallPlanPhaseComplete, fake.Find[*v1alpha1.InstallPlan](cluster, namespace, "install").Status.Phase)
	}
	require.Contains(t, namespaces, fake.Find[*rbacv1.ClusterRole](cluster, "", "shared").Labels["olm.owner.namespace"])
}
