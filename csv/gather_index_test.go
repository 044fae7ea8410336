// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// keeper is a Reader that keeps indexes.
type keeper struct {
	*olmcore.Snapshot
	kept map[string]any
}

func (k keeper) Index(key string, build func() any) any {
	if k.kept[key] == nil {
		k.kept[key] = build()
	}
	return k.kept[key]
}

// TestGatherReadsTheSameWithAnIndex: of groups with the same APIs and of bindings of
// every form.
func TestGatherReadsTheSameWithAnIndex(t *testing.T) {
	objects := []olmcore.Object{}
	for i, annotation := range []string{"Cool.v1.example.com", "Other.v1.example.com", "A.v1.b, Cool.v1.example.com", "", "Cool.v1.example.com,Z.v1.z"} {
		objects = append(objects, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", i), Name: "g", Annotations: map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: annotation},
		}})
	}
	for i, subject := range []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "ns0", Name: "sa"}, {Kind: "ServiceAccount", Namespace: "ns1", Name: "sa"}, {Kind: "ServiceAccount", Name: "sa"},
		{Kind: "User", Name: "system:serviceaccount:ns0:sa"}, {Kind: "User", Name: "sa"},
		{Kind: "Group", Name: "system:serviceaccounts"}, {Kind: "Group", Name: "system:serviceaccounts:ns0"}, {Kind: "Group", Name: "system:authenticated"},
		{Kind: "Group", Name: "system:serviceaccounts:ns1"}, {Kind: "Group", Name: "admins"},
	} {
		name := fmt.Sprint("b", i)
		objects = append(objects,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject, {Kind: "User", Name: "x"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}})
	}
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns0", Name: "cool.v1", UID: "1"}}
	c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cools.example.com", Kind: "Cool", Version: "v1"}}
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "sa"}}
	snapshot, err := olmcore.NewSnapshot(append(objects, c), olmcore.Everything)
	require.NoError(t, err)
	want, err := csv.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: "ns0", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	require.Len(t, want.OtherGroups.Items, 2)
	require.Len(t, want.ClusterRoleBindings.Items, 5)
	indexed := keeper{snapshot, map[string]any{}}
	for range 2 {
		got, err := csv.Gather(t.Context(), indexed, types.NamespacedName{Namespace: "ns0", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	}
	require.Len(t, indexed.kept, 2)
}
