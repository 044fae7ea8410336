// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/objecthash"
)

// permissionsHash is OLM's label of roles and bindings with the hash of their content.
const permissionsHash = "olm.permissions.hash"

// PermissionObjects returns the ServiceAccounts, Roles, ClusterRoles and their bindings that an InstallPlan makes for a
// ClusterServiceVersion's install strategy, account by account in the order of their names. csv's namespace is where
// they go; an account that has permissions for the cluster alone has none. Owner references carry no UID. Names and
// labels are bit-identical to OLM's. The error is an *InputError: there is no csv, or its strategy cannot be installed.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
// Differs: no object for the account "default"; no namespace on ClusterRoleBindings.
func PermissionObjects(csv *v1alpha1.ClusterServiceVersion) ([]Object, error) {
	if csv == nil {
		return nil, &InputError{Field: "csv", Problem: "is nil"}
	}
	strategy := csv.Spec.InstallStrategy
	if strategy.StrategyName != v1alpha1.InstallStrategyNameDeployment {
		return nil, &InputError{Field: "csv.spec.install.strategy", Problem: "unrecognized install strategy"}
	}
	objects, namespaced := map[string][]Object{}, map[string]bool{} // by account
	add := func(permissions []permission, cluster bool) error {
		for _, p := range permissions {
			role, binding, err := roleAndBinding(csv, p, cluster)
			if err != nil {
				return err
			}
			account := p.ServiceAccountName
			namespaced[account] = namespaced[account] || !cluster
			// Names are hashes of what is allowed.
			if !slices.ContainsFunc(objects[account], func(o Object) bool { return o.GetName() == role.GetName() }) {
				objects[account] = append(objects[account], role, binding)
			}
		}
		return nil
	}
	if err := cmp.Or(add(strategy.StrategySpec.Permissions, false), add(strategy.StrategySpec.ClusterPermissions, true)); err != nil {
		return nil, err
	}
	var all []Object
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if name != "default" { // Kubernetes makes it
			account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}}
			account.Name, account.OwnerReferences = name, []metav1.OwnerReference{referenceTo(csv)}
			if namespaced[name] {
				account.Namespace = csv.Namespace
			}
			all = append(all, account)
		}
		all = append(all, objects[name]...)
	}
	return all, nil
}

// permission is hashed into names, so its fields are those of the API type in their order.
type permission = v1alpha1.StrategyDeploymentPermissions

func permissionName(csv *v1alpha1.ClusterServiceVersion, p permission, cluster bool) (string, error) {
	if cluster {
		return objecthash.HashedName(csv.Name, struct {
			Name       string     `json:"name"`
			Namespace  string     `json:"namespace"`
			Permission permission `json:"permission"`
		}{csv.Name, csv.Namespace, p})
	}
	return objecthash.HashedName(csv.Name+"-"+p.ServiceAccountName, struct {
		Name       string     `json:"name"`
		Permission permission `json:"permission"`
	}{csv.Name, p})
}

// roleAndBinding returns the Role or ClusterRole of a permission and its binding.
func roleAndBinding(csv *v1alpha1.ClusterServiceVersion, p permission, cluster bool) (role, binding Object, err error) {
	prefix := ""
	if cluster {
		prefix = "Cluster"
	}
	name, err := permissionName(csv, p, cluster)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: prefix + "Role", Name: name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: csv.Namespace}}
	rules, rulesErr := objecthash.HashWithoutNewline(p.Rules)
	bound, boundErr := objecthash.HashWithoutNewline(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects})
	if err := cmp.Or(err, rulesErr, boundErr); err != nil {
		return nil, nil, err
	}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: prefix + kind}
	}
	meta := func(hash string) metav1.ObjectMeta {
		labels := Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: csv.Namespace, Name: csv.Name}.Labels()
		labels[permissionsHash] = hash
		if cluster {
			return metav1.ObjectMeta{Name: name, Labels: labels}
		}
		return metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{referenceTo(csv)}}
	}
	if cluster {
		return &rbacv1.ClusterRole{TypeMeta: typed("Role"), ObjectMeta: meta(rules), Rules: p.Rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta(bound), RoleRef: ref, Subjects: subjects}, nil
	}
	return &rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta(rules), Rules: p.Rules},
		&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta(bound), RoleRef: ref, Subjects: subjects}, nil
}

func referenceTo(csv *v1alpha1.ClusterServiceVersion) metav1.OwnerReference {
	ref := OwnerReferenceTo(csv)
	ref.UID = ""
	return ref
}
