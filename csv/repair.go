// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

const labelPermissionsHash = "olm.permissions.hash"

// repairs returns what creates the ServiceAccounts, roles and bindings that an
// InstallPlan makes for the CSV and that are not there: all names and labels are
// those of the plan's, and so is the identity. The account "default" is
// Kubernetes' own.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
func repairs(in *Input, report []v1alpha1.RequirementStatus) []olmcore.Action {
	lacking := slices.ContainsFunc(report, func(r v1alpha1.RequirementStatus) bool { return r.Kind == "ServiceAccount" && !isMet(r.Status) })
	if !lacking || !isLabelValue(in.ClusterServiceVersion.Name) {
		return nil
	}
	var actions []olmcore.Action
	as := installIdentity(in)
	seen := map[olmcore.Key]bool{}
	add := func(o olmcore.Object) {
		key := olmcore.KeyOf(o)
		if !seen[key] && !in.exists(key) {
			labelComponents(o, in.ClusterServiceVersion)
			actions = append(actions, olmcore.Create{Target: olmcore.RefOf(o), Object: o, As: as, Cause: olmcore.Cause{
				Reason: ReasonRepair, Message: "the InstallPlan of ClusterServiceVersion " + in.ClusterServiceVersion.Name + " created it, and it is gone",
			}})
		}
		seen[key] = true
	}
	for scope, list := range permissionLists(in.ClusterServiceVersion) {
		for i := range list {
			objects, err := permissionObjects(in.ClusterServiceVersion, scope, &list[i])
			if err != nil {
				return nil
			}
			for _, o := range objects {
				add(o)
			}
		}
	}
	slices.SortFunc(actions, byTarget)
	return actions
}

// exists looks among the accounts, roles and bindings that were read.
func (in *Input) exists(key olmcore.Key) bool {
	switch key.Kind {
	case "ServiceAccount":
		return indexNamed(in.ServiceAccounts.Items, key.Namespace, key.Name) >= 0
	case "Role":
		return indexNamed(in.Roles.Items, key.Namespace, key.Name) >= 0
	case "RoleBinding":
		return indexNamed(in.RoleBindings.Items, key.Namespace, key.Name) >= 0
	case "ClusterRole":
		return indexNamed(in.ClusterRoles.Items, "", key.Name) >= 0
	}
	return indexNamed(in.ClusterRoleBindings.Items, "", key.Name) >= 0
}

// permissionName is the name that OLM gives to the role, and to its binding, of
// an entry in the install strategy.
func permissionName(c *version, scope int, p *v1alpha1.StrategyDeploymentPermissions) (string, error) {
	if scope == 0 {
		return olmcore.HashedName(c.Name+"-"+p.ServiceAccountName, struct {
			Name       string                                 `json:"name"`
			Permission v1alpha1.StrategyDeploymentPermissions `json:"permission"`
		}{c.Name, *p})
	}
	return olmcore.HashedName(c.Name, struct {
		Name       string                                 `json:"name"`
		Namespace  string                                 `json:"namespace"`
		Permission v1alpha1.StrategyDeploymentPermissions `json:"permission"`
	}{c.Name, c.Namespace, *p})
}

func permissionObjects(c *version, scope int, p *v1alpha1.StrategyDeploymentPermissions) ([]olmcore.Object, error) {
	name, err := permissionName(c, scope, p)
	if err != nil {
		return nil, err
	}
	kind := [2]string{"Role", "ClusterRole"}[scope]
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: p.ServiceAccountName, Namespace: c.Namespace}}
	rules, err := olmcore.HashWithoutNewline(p.Rules)
	if err != nil {
		return nil, err
	}
	binding, err := olmcore.HashWithoutNewline(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects})
	if err != nil {
		return nil, err
	}
	var objects []olmcore.Object
	if p.ServiceAccountName != "default" {
		objects = append(objects, &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: p.ServiceAccountName, OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}},
		})
	}
	meta := func(hash string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: name, Labels: ownerOf(c).Labels()}
		m.Labels[labelPermissionsHash], m.Labels[olmcore.LabelManaged] = hash, "true"
		if scope == 0 {
			m.Namespace, m.OwnerReferences = c.Namespace, []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}
		} else {
			m.Labels[olmcore.LabelOwnerUID] = string(c.UID)
		}
		return m
	}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	if scope == 0 {
		return append(objects,
			&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta(rules), Rules: p.Rules},
			&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta(binding), RoleRef: ref, Subjects: subjects}), nil
	}
	return append(objects,
		&rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: meta(rules), Rules: p.Rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: meta(binding), RoleRef: ref, Subjects: subjects}), nil
}
