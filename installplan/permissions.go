// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

const labelPermissionsHash = "olm.permissions.hash"

// PermissionObjects returns the ServiceAccounts, Roles, ClusterRoles and their
// bindings that a ClusterServiceVersion's install strategy asks for, account by
// account in the order of their names. csv's namespace is where they go; its UID
// is not looked at, owner references carry none. Names and labels are
// bit-identical to OLM's. The error says that the strategy is none that can be
// installed.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
// Differs: no object for the account "default"; no namespace on ClusterRoleBindings.
func PermissionObjects(csv *v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	if csv == nil {
		return nil, &olmcore.InputError{Field: "csv", Problem: "is nil"}
	}
	strategy := csv.Spec.InstallStrategy
	if strategy.StrategyName != v1alpha1.InstallStrategyNameDeployment {
		return nil, &olmcore.InputError{Field: "csv.spec.install.strategy", Problem: "unrecognized install strategy"}
	}
	b := permissionBuilder{csv: csv, accounts: map[string]*account{}}
	for _, p := range strategy.StrategySpec.Permissions {
		if err := b.role(p); err != nil {
			return nil, err
		}
	}
	for _, p := range strategy.StrategySpec.ClusterPermissions {
		if err := b.clusterRole(p); err != nil {
			return nil, err
		}
	}
	var objects []olmcore.Object
	for _, name := range slices.Sorted(maps.Keys(b.accounts)) {
		a := b.accounts[name]
		if name != "default" {
			objects = append(objects, b.serviceAccount(name, a.namespaced))
		}
		objects = append(objects, a.objects...)
	}
	return objects, nil
}

type account struct {
	namespaced bool
	objects    []olmcore.Object
	names      map[string]bool
}

type permissionBuilder struct {
	csv      *v1alpha1.ClusterServiceVersion
	accounts map[string]*account
}

// permission is hashed into names, so its fields are those of the API type in
// their order.
type permission = v1alpha1.StrategyDeploymentPermissions

func (b *permissionBuilder) account(name string) *account {
	if b.accounts[name] == nil {
		b.accounts[name] = &account{names: map[string]bool{}}
	}
	return b.accounts[name]
}

func (b *permissionBuilder) role(p permission) error {
	name, err := olmcore.HashedName(b.csv.Name+"-"+p.ServiceAccountName, struct {
		Name       string     `json:"name"`
		Permission permission `json:"permission"`
	}{b.csv.Name, p})
	if err != nil {
		return err
	}
	a := b.account(p.ServiceAccountName)
	a.namespaced = true
	if a.names[name] {
		return nil
	}
	a.names[name] = true
	role, binding, err := b.pair("Role", name, p)
	if err != nil {
		return err
	}
	role.Namespace, binding.Namespace = b.csv.Namespace, b.csv.Namespace
	role.OwnerReferences, binding.OwnerReferences = b.owner(), b.owner()
	a.objects = append(a.objects,
		&rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: role.ObjectMeta, Rules: p.Rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: binding.ObjectMeta,
			RoleRef: binding.RoleRef, Subjects: binding.Subjects})
	return nil
}

func (b *permissionBuilder) clusterRole(p permission) error {
	name, err := olmcore.HashedName(b.csv.Name, struct {
		Name       string     `json:"name"`
		Namespace  string     `json:"namespace"`
		Permission permission `json:"permission"`
	}{b.csv.Name, b.csv.Namespace, p})
	if err != nil {
		return err
	}
	a := b.account(p.ServiceAccountName)
	if a.names[name] {
		return nil
	}
	a.names[name] = true
	role, binding, err := b.pair("ClusterRole", name, p)
	if err != nil {
		return err
	}
	a.objects = append(a.objects,
		&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"), ObjectMeta: role.ObjectMeta, Rules: p.Rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: binding.ObjectMeta,
			RoleRef: binding.RoleRef, Subjects: binding.Subjects})
	return nil
}

// pair returns the metadata of a role and the metadata and content of its
// binding, in the form of a Role and a RoleBinding.
func (b *permissionBuilder) pair(kind, name string, p permission) (role rbacv1.Role, binding rbacv1.RoleBinding, err error) {
	rulesHash, err := olmcore.HashWithoutNewline(p.Rules)
	if err != nil {
		return role, binding, err
	}
	role.Name, role.Labels = name, b.labels(rulesHash)
	binding.Name = name
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: b.csv.Namespace}}
	bindingHash, err := olmcore.HashWithoutNewline(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{binding.RoleRef, binding.Subjects})
	binding.Labels = b.labels(bindingHash)
	return role, binding, err
}

func (b *permissionBuilder) labels(hash string) map[string]string {
	labels := olmcore.Owner{Kind: kindCSV, Namespace: b.csv.Namespace, Name: b.csv.Name}.Labels()
	labels[labelPermissionsHash] = hash
	return labels
}

func (b *permissionBuilder) owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: kindCSV, Name: b.csv.Name,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
}

func (b *permissionBuilder) serviceAccount(name string, namespaced bool) olmcore.Object {
	sa := &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount")}
	sa.Name, sa.OwnerReferences = name, b.owner()
	if namespaced {
		sa.Namespace = b.csv.Namespace
	}
	return sa
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// invalidBundle says why a bundle cannot be turned into steps.
func invalidBundle(name, format string, args ...any) *olmcore.Diagnostic {
	return &olmcore.Diagnostic{
		Severity: olmcore.Error, Reason: ReasonBundleInvalid, Message: "operator " + name + ": " + fmt.Sprintf(format, args...),
	}
}
