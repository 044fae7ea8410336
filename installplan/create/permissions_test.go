// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/objecthash"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// bindingsOf returns the verbs of each ServiceAccount, and checks that each name occurs once.
func bindingsOf(t require.TestingT, objects []olmcore.Object) []string {
	var lines []string
	verbs, seen := map[string][]string{}, map[string]bool{}
	for _, o := range objects {
		key := olmcore.KeyOf(o).Kind + "/" + o.GetName()
		require.False(t, seen[key], "%s occurs twice", key)
		seen[key] = true
		switch x := o.(type) {
		case *corev1.ServiceAccount:
			lines = append(lines, "ServiceAccount "+x.Name)
		case *rbacv1.Role:
			verbs["Role "+x.Name] = x.Rules[0].Verbs
		case *rbacv1.ClusterRole:
			verbs["ClusterRole "+x.Name] = x.Rules[0].Verbs
		case *rbacv1.RoleBinding:
			lines = append(lines, bound(t, verbs, x.Name, x.RoleRef, x.Subjects))
		case *rbacv1.ClusterRoleBinding:
			lines = append(lines, bound(t, verbs, x.Name, x.RoleRef, x.Subjects))
		}
	}
	return lines
}

func bound(t require.TestingT, verbs map[string][]string, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	require.Equal(t, name, ref.Name, "a binding has the name of its role")
	require.Contains(t, verbs, ref.Kind+" "+ref.Name)
	require.Len(t, subjects, 1)
	require.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Name: subjects[0].Name, Namespace: "ops"}, subjects[0])
	return ref.Kind + " " + subjects[0].Name + " [" + strings.Join(verbs[ref.Kind+" "+ref.Name], " ") + "]"
}

func etcd(namespace string) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcdoperator.v0.9.4"}}
	permission := v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "etcd-operator", Rules: Rules()}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{permission}
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{permission}
	return c
}

func may(account string, verbs ...string) v1alpha1.StrategyDeploymentPermissions {
	return v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

// permitted returns a version whose ServiceAccounts have these permissions in the namespace and in the cluster.
func permitted(namespace string, here, everywhere []v1alpha1.StrategyDeploymentPermissions) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a.v1"}}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.Permissions, c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = here, everywhere
	return c
}

// TestPermissionObjectsAreBitIdentical checks that names and hashes equal those in clusters that OLM manages.
//
// OLM's case: generated names, bit for bit.
func TestPermissionObjectsAreBitIdentical(t *testing.T) {
	const (
		roleName        = "etcdoperator.v0.9.4-etcd--UPL9qybYw5qrYAElycSSJ9bPP0DI8BLbIyyfv"
		clusterRoleName = "etcdoperator.v0.9.4-6Vb3QRK7gzRbhiWg4W5KtuKTxUZR1wpfErMHnA"
		rulesHash       = "11rrkxEvVvfh9HkCh7cyssbBqZFy9B7koZklln"
		bindingHash     = "4rXGURgp0ZBIdtsYIx9vlSZqfBIQpiZXMFmDex"
	)
	objects, err := olmcore.PermissionObjects(etcd("operators"))
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
			Rules:      Rules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: roleName, Labels: labels(bindingHash), OwnerReferences: owner},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: roleName}, Subjects: subject,
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: clusterRoleName, Labels: labels(rulesHash)},
			Rules:      Rules(),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: clusterRoleName, Labels: labels(clusterBinding.Labels["olm.permissions.hash"])},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: clusterRoleName}, Subjects: subject,
		},
	}
	Same(t, want, objects)
}

// TestClusterRolesOfTwoNamespacesDiffer checks that the names of ClusterRoles depend on the namespace, and those of
// Roles do not. It includes OLM's cases.
//
// OLM's case: several Roles of several accounts; other namespaces, other ClusterRoles.
func TestClusterRolesOfTwoNamespacesDiffer(t *testing.T) {
	a, err := olmcore.PermissionObjects(etcd("a"))
	require.NoError(t, err)
	b, err := olmcore.PermissionObjects(etcd("b"))
	require.NoError(t, err)
	require.Equal(t, a[1].GetName(), b[1].GetName(), "the name of the Role does not depend on the namespace")
	require.NotEqual(t, a[3].GetName(), b[3].GetName(), "ClusterRoles are shared by all namespaces")
}

func TestDefaultServiceAccountIsNotCreated(t *testing.T) {
	c := etcd("ops")
	c.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "default"
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = nil
	objects, err := olmcore.PermissionObjects(c)
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.IsType(t, &rbacv1.Role{}, objects[0])
}

func TestPermissionObjectsNeedADeploymentStrategy(t *testing.T) {
	_, err := olmcore.PermissionObjects(nil)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = olmcore.PermissionObjects(&v1alpha1.ClusterServiceVersion{})
	require.ErrorContains(t, err, "unrecognized install strategy")
}

// TestDuplicatePermissionsAreMerged checks that duplicate permissions give one pair of objects, and that a
// ServiceAccount with cluster permissions only has no namespace, as in OLM.
func TestDuplicatePermissionsAreMerged(t *testing.T) {
	permission := v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "x", Rules: Rules()}
	twice := []v1alpha1.StrategyDeploymentPermissions{permission, permission}
	kinds := func(namespaced, cluster []v1alpha1.StrategyDeploymentPermissions) (out []string) {
		objects, err := olmcore.PermissionObjects(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions, c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = namespaced, cluster
		}))
		require.NoError(t, err)
		for _, o := range objects {
			out = append(out, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetNamespace())
		}
		return out
	}
	require.Equal(t, []string{"ServiceAccount ops", "Role ops", "RoleBinding ops"}, kinds(twice, nil))
	require.Equal(t, []string{"ServiceAccount ", "ClusterRole ", "ClusterRoleBinding "}, kinds(nil, twice))
}

// TestEachRoleIsBoundToItsServiceAccount checks that each Role has its own name, and a binding to its ServiceAccount.
//
// OLM's cases: several Roles of several accounts; other namespaces, other ClusterRoles; permissions of namespace and
// cluster become steps; the account default gets no step.
func TestEachRoleIsBoundToItsServiceAccount(t *testing.T) {
	type permissions = []v1alpha1.StrategyDeploymentPermissions
	for name, c := range map[string]struct {
		here, everywhere permissions
		want             []string // kind, account, verbs of what is bound
	}{
		"two Roles of one account, one of another": {here: permissions{may("one", "get"), may("one", "list"), may("two", "watch")},
			want: []string{"ServiceAccount one", "Role one [get]", "Role one [list]", "ServiceAccount two", "Role two [watch]"}},
		"in the namespace and in the cluster": {here: permissions{may("one", "get")}, everywhere: permissions{may("one", "get"), may("two", "list")},
			want: []string{"ServiceAccount one", "Role one [get]", "ClusterRole one [get]", "ServiceAccount two", "ClusterRole two [list]"}},
		"the account default": {here: permissions{may("default", "get")}, everywhere: permissions{may("default", "list")},
			want: []string{"Role default [get]", "ClusterRole default [list]"}},
		"none at all": {},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := olmcore.PermissionObjects(permitted("ops", c.here, c.everywhere))
			require.NoError(t, err)
			require.Equal(t, c.want, bindingsOf(t, objects))

			// The same objects become steps, under the same names.
			o := Operator("a")
			o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy = permitted("ops", c.here, c.everywhere).Spec.InstallStrategy
			steps, err := bundle.Steps(o, "ops", bundle.Literal)
			require.NoError(t, err)
			var want, got []string
			for _, o := range objects {
				want = append(want, olmcore.KeyOf(o).Kind+" "+o.GetName())
			}
			for _, s := range steps[1:] {
				got = append(got, s.Resource.Kind+" "+s.Resource.Name)
				require.Equal(t, "a.v1", s.Resolving)
			}
			require.Equal(t, want, got)
		})
	}
}

// TestPermissionNamesAreNotTooLong checks that the names of permission objects are valid for any version and
// ServiceAccount. A long name is cut, but its hash is not.
//
// OLM's case: any names stay in range.
func TestPermissionNamesAreNotTooLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z][a-z0-9.-]{0,90}[a-z0-9]`)
		c := permitted("ops", []v1alpha1.StrategyDeploymentPermissions{may(word.Draw(t, "account"), "get")}, []v1alpha1.StrategyDeploymentPermissions{may(word.Draw(t, "other"), "list")})
		c.Name = word.Draw(t, "version")
		objects, err := olmcore.PermissionObjects(c)
		require.NoError(t, err)
		for _, o := range objects {
			if olmcore.KeyOf(o).Kind == "ServiceAccount" {
				continue
			}
			base := c.Name
			if o.GetNamespace() != "" {
				base += "-" + c.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName
			}
			name := o.GetName()
			cut := strings.LastIndex(name, "-")
			require.LessOrEqual(t, len(name), 64) // 63, or one more where nothing is cut
			require.True(t, strings.HasPrefix(base, name[:cut]), "%s is no cut of %s", name[:cut], base)
			require.Regexp(t, `^[0-9a-zA-Z]{30,38}$`, name[cut+1:])
			require.True(t, name[:cut] == base || len(name) == 63, "%s is cut without need", name)
		}
	})
}

// TestHashedNamesEqualThoseOfOLM checks the values in the tests of OLM.
//
// OLM's case: generated names, bit for bit.
func TestHashedNamesEqualThoseOfOLM(t *testing.T) {
	for _, c := range []struct {
		base string
		over []string
		want string
	}{
		{"myname", []string{"something"}, "myname-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
		{strings.Repeat("name", 25), []string{"something", "else"}, "namenamenamenamenamename-6XtefCelEzfYlFOD1fARIK5vhWVfWfGHja7H3q"},
		{strings.Repeat("a", 25), []string{"something"}, "aaaaaaaaaaaaaaaaaaaaaaaaa-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
	} {
		got, err := objecthash.HashedName(c.base, c.over)
		require.NoError(t, err)
		Same(t, c.want, got)
	}
	Same(t, "install-johmmfoxkh", "install-"+olmcore.NameSuffix(10, strings.Repeat("0", 64), "1"))
}
