// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"cmp"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// labelPermissionsHash is OLM's label of roles and bindings with the hash of their
// content.
const labelPermissionsHash = "olm.permissions.hash"

// defaultAccount is made by Kubernetes itself in each namespace.
const defaultAccount = "default"

// missingPermissions returns the ServiceAccounts, roles and bindings that an
// InstallPlan makes for the CSV and that do not exist: all names and labels are those
// of the plan's.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
func missingPermissions(o *Observed) []olmcore.Object {
	exist := map[olmcore.Key]bool{}
	note(exist, o.ServiceAccounts.Items)
	note(exist, o.Roles.Items)
	note(exist, o.RoleBindings.Items)
	note(exist, o.ClusterRoles.Items)
	note(exist, o.ClusterRoleBindings.Items)
	var missing []olmcore.Object
	for _, p := range permissionsOf(o.CSV) {
		objects, err := p.objects(o.CSV)
		if err != nil {
			return nil
		}
		for _, object := range objects {
			if key := olmcore.KeyOf(object); !exist[key] {
				exist[key] = true
				missing = append(missing, object)
			}
		}
	}
	return missing
}

func note[T olmcore.Object](exist map[olmcore.Key]bool, items []T) {
	for _, o := range items {
		exist[olmcore.KeyOf(o)] = true
	}
}

// name returns the name that OLM gives to the role of a permission, and to its binding.
func (p permission) name(c *owned.CSV) (string, error) {
	if p.cluster {
		return olmcore.HashedName(c.Name, struct {
			Name       string                                 `json:"name"`
			Namespace  string                                 `json:"namespace"`
			Permission v1alpha1.StrategyDeploymentPermissions `json:"permission"`
		}{c.Name, c.Namespace, p.StrategyDeploymentPermissions})
	}
	return olmcore.HashedName(c.Name+"-"+p.ServiceAccountName, struct {
		Name       string                                 `json:"name"`
		Permission v1alpha1.StrategyDeploymentPermissions `json:"permission"`
	}{c.Name, p.StrategyDeploymentPermissions})
}

// objects returns what an InstallPlan makes for a permission.
func (p permission) objects(c *owned.CSV) ([]olmcore.Object, error) {
	name, err := p.name(c)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if p.cluster {
		prefix = "Cluster"
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: prefix + "Role", Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: p.ServiceAccountName, Namespace: c.Namespace}}
	role, roleErr := p.meta(c, name, p.Rules)
	binding, err := p.meta(c, name, struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects})
	if err != nil || roleErr != nil {
		return nil, cmp.Or(roleErr, err)
	}
	var objects []olmcore.Object
	if p.ServiceAccountName != defaultAccount {
		objects = append(objects, &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: p.ServiceAccountName, OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}},
		})
	}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: prefix + kind}
	}
	if p.cluster {
		return append(objects,
			&rbacv1.ClusterRole{TypeMeta: typed("Role"), ObjectMeta: role, Rules: p.Rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: binding, RoleRef: ref, Subjects: subjects}), nil
	}
	return append(objects,
		&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: role, Rules: p.Rules},
		&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: binding, RoleRef: ref, Subjects: subjects}), nil
}

// meta returns the metadata of a role or binding with this content.
func (p permission) meta(c *owned.CSV, name string, content any) (metav1.ObjectMeta, error) {
	hash, err := olmcore.HashWithoutNewline(content)
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	m := metav1.ObjectMeta{Name: name, Labels: owned.By(c).Labels()}
	m.Labels[labelPermissionsHash], m.Labels[olmcore.LabelManaged] = hash, "true"
	if p.cluster {
		m.Labels[olmcore.LabelOwnerUID] = string(c.UID)
	} else {
		m.Namespace, m.OwnerReferences = c.Namespace, []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}
	}
	return m, nil
}
