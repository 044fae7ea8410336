// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

func etcd(namespace string) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcdoperator.v0.9.4"}}
	permission := v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "etcd-operator", Rules: rules()}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{permission}
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{permission}
	return c
}

// TestPermissionObjectsAreBitIdentical: names and hashes are those that a
// cluster which OLM runs already has.
func TestPermissionObjectsAreBitIdentical(t *testing.T) {
	const (
		roleName        = "etcdoperator.v0.9.4-etcd--UPL9qybYw5qrYAElycSSJ9bPP0DI8BLbIyyfv"
		clusterRoleName = "etcdoperator.v0.9.4-6Vb3QRK7gzRbhiWg4W5KtuKTxUZR1wpfErMHnA"
		rulesHash       = "11rrkxEvVvfh9HkCh7cyssbBqZFy9B7koZklln"
		bindingHash     = "4rXGURgp0ZBIdtsYIx9vlSZqfBIQpiZXMFmDex"
	)
	objects, err := create.PermissionObjects(etcd("operators"))
	require.NoError(t, err)
	labels := func(hash string) map[string]string {
		return map[string]string{
			"olm.owner": "etcdoperator.v0.9.4", "olm.owner.namespace": "operators", "olm.owner.kind": "ClusterServiceVersion",
			"olm.permissions.hash": hash,
		}
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "etcdoperator.v0.9.4",
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "etcd-operator", Namespace: "operators"}}
	clusterBinding := objects[4].(*rbacv1.ClusterRoleBinding)
	want := []olmcore.Object{
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "etcd-operator", OwnerReferences: owner},
		},
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: roleName, Labels: labels(rulesHash), OwnerReferences: owner},
			Rules:      rules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: roleName, Labels: labels(bindingHash), OwnerReferences: owner},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: roleName}, Subjects: subject,
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: clusterRoleName, Labels: labels(rulesHash)},
			Rules:      rules(),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: clusterRoleName, Labels: labels(clusterBinding.Labels["olm.permissions.hash"])},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: clusterRoleName}, Subjects: subject,
		},
	}
	same(t, want, objects)
}

// TestHashedNamesAreBitIdentical has the values that OLM's own tests have.
func TestHashedNamesAreBitIdentical(t *testing.T) {
	for _, c := range []struct {
		base string
		over []string
		want string
	}{
		{"myname", []string{"something"}, "myname-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
		{strings.Repeat("name", 25), []string{"something", "else"}, "namenamenamenamenamename-6XtefCelEzfYlFOD1fARIK5vhWVfWfGHja7H3q"},
		{strings.Repeat("a", 25), []string{"something"}, "aaaaaaaaaaaaaaaaaaaaaaaaa-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
	} {
		got, err := olmcore.HashedName(c.base, c.over)
		require.NoError(t, err)
		same(t, c.want, got)
	}
	same(t, "install-johmmfoxkh", "install-"+olmcore.NameSuffix(10, strings.Repeat("0", 64), "1"))
}

// TestTheAlongsideKeyIsBitIdentical: other namespaces' entries are recognised.
func TestTheAlongsideKeyIsBitIdentical(t *testing.T) {
	s := crdStep("etcdoperator.v0.9.4", "v1")
	p := plan("Installing", []*v1alpha1.Step{s}, started(0), func(p *v1alpha1.InstallPlan) { p.Namespace = "operators" })
	g := group()
	g.Namespace = "operators"
	r, err := installplan.Reconcile(installplan.Input{Now: noon, InstallPlan: p, OperatorGroups: []*operatorsv1.OperatorGroup{g}})
	require.NoError(t, err)
	require.Equal(t, "operators/etcdoperator.v0.9.4",
		r.Actions[1].(olmcore.Create).Object.GetAnnotations()["operatorframework.io/installed-alongside-4b21bc9c2e75a808"])
}

func TestPermissionObjectsOfTwoNamespacesDiffer(t *testing.T) {
	a, err := create.PermissionObjects(etcd("a"))
	require.NoError(t, err)
	b, err := create.PermissionObjects(etcd("b"))
	require.NoError(t, err)
	require.Equal(t, a[1].GetName(), b[1].GetName(), "the Role's name says nothing of the namespace")
	require.NotEqual(t, a[3].GetName(), b[3].GetName(), "ClusterRoles are shared by all namespaces")
}

func TestTheDefaultAccountIsNotCreated(t *testing.T) {
	c := etcd("ops")
	c.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "default"
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = nil
	objects, err := create.PermissionObjects(c)
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.IsType(t, &rbacv1.Role{}, objects[0])
}

func TestPermissionObjectsOfNothingAreRefused(t *testing.T) {
	_, err := create.PermissionObjects(nil)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = create.PermissionObjects(&v1alpha1.ClusterServiceVersion{})
	require.ErrorContains(t, err, "unrecognized install strategy")
}
