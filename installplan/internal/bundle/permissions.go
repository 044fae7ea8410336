// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

const labelPermissionsHash = "olm.permissions.hash"

// PermissionObjects returns the ServiceAccounts, Roles, ClusterRoles and their
// bindings that a ClusterServiceVersion's install strategy asks for, account by
// account in the order of their names. csv's namespace is where they go; owner
// references carry no UID. Names and labels are bit-identical to OLM's. The error is
// an *olmcore.InputError: there is no csv, or its strategy cannot be installed.
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
	objects := map[string][]olmcore.Object{} // by account
	namespaced := map[string]bool{}
	for _, p := range strategy.StrategySpec.Permissions {
		role, err := roleObjects(csv, p)
		if err != nil {
			return nil, err
		}
		namespaced[p.ServiceAccountName] = true
		objects[p.ServiceAccountName] = addNew(objects[p.ServiceAccountName], role)
	}
	for _, p := range strategy.StrategySpec.ClusterPermissions {
		role, err := clusterRoleObjects(csv, p)
		if err != nil {
			return nil, err
		}
		objects[p.ServiceAccountName] = addNew(objects[p.ServiceAccountName], role)
	}
	var all []olmcore.Object
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if name != "default" {
			account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}}
			account.Name, account.OwnerReferences = name, owner(csv)
			if namespaced[name] {
				account.Namespace = csv.Namespace
			}
			all = append(all, account)
		}
		all = append(all, objects[name]...)
	}
	return all, nil
}

// addNew appends a role and its binding unless there is an object of their name,
// which is a hash of what they allow.
func addNew(have, pair []olmcore.Object) []olmcore.Object {
	if slices.ContainsFunc(have, func(o olmcore.Object) bool { return o.GetName() == pair[0].GetName() }) {
		return have
	}
	return append(have, pair...)
}

// permission is hashed into names, so its fields are those of the API type in
// their order.
type permission = v1alpha1.StrategyDeploymentPermissions

func roleObjects(csv *v1alpha1.ClusterServiceVersion, p permission) ([]olmcore.Object, error) {
	name, err := olmcore.HashedName(csv.Name+"-"+p.ServiceAccountName, struct {
		Name       string     `json:"name"`
		Permission permission `json:"permission"`
	}{csv.Name, p})
	if err != nil {
		return nil, err
	}
	b, err := newBinding(csv, p, "Role", name)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: b.roleLabels, OwnerReferences: owner(csv)}
	bindingMeta := metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: b.labels, OwnerReferences: owner(csv)}
	return []olmcore.Object{
		&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: meta, Rules: p.Rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: bindingMeta, RoleRef: b.roleRef, Subjects: b.subjects},
	}, nil
}

func clusterRoleObjects(csv *v1alpha1.ClusterServiceVersion, p permission) ([]olmcore.Object, error) {
	name, err := olmcore.HashedName(csv.Name, struct {
		Name       string     `json:"name"`
		Namespace  string     `json:"namespace"`
		Permission permission `json:"permission"`
	}{csv.Name, csv.Namespace, p})
	if err != nil {
		return nil, err
	}
	b, err := newBinding(csv, p, "ClusterRole", name)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: name, Labels: b.roleLabels}
	bindingMeta := metav1.ObjectMeta{Name: name, Labels: b.labels}
	return []olmcore.Object{
		&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta, Rules: p.Rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: bindingMeta, RoleRef: b.roleRef, Subjects: b.subjects},
	}, nil
}

// binding is what binds an account to a role, and the labels of both.
type binding struct {
	roleRef            rbacv1.RoleRef
	subjects           []rbacv1.Subject
	roleLabels, labels map[string]string
}

func newBinding(csv *v1alpha1.ClusterServiceVersion, p permission, kind, role string) (binding, error) {
	b := binding{
		roleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: csv.Namespace}},
	}
	hash, err := olmcore.HashWithoutNewline(p.Rules)
	if err != nil {
		return b, err
	}
	b.roleLabels = labels(csv, hash)
	hash, err = olmcore.HashWithoutNewline(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{b.roleRef, b.subjects})
	b.labels = labels(csv, hash)
	return b, err
}

func labels(csv *v1alpha1.ClusterServiceVersion, hash string) map[string]string {
	labels := olmcore.Owner{Kind: kinds.CSV, Namespace: csv.Namespace, Name: csv.Name}.Labels()
	labels[labelPermissionsHash] = hash
	return labels
}

func owner(csv *v1alpha1.ClusterServiceVersion) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: kinds.CSV, Name: csv.Name,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
