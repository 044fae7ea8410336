// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
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

// PermissionObjects is create.PermissionObjects.
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
	add := func(permissions []permission, cluster bool) error {
		for _, p := range permissions {
			pair, err := roleAndBinding(csv, p, cluster)
			if err != nil {
				return err
			}
			account := p.ServiceAccountName
			namespaced[account] = namespaced[account] || !cluster
			// Names are hashes of what is allowed.
			if !slices.ContainsFunc(objects[account], func(o olmcore.Object) bool { return o.GetName() == pair[0].GetName() }) {
				objects[account] = append(objects[account], pair...)
			}
		}
		return nil
	}
	if err := cmp.Or(add(strategy.StrategySpec.Permissions, false), add(strategy.StrategySpec.ClusterPermissions, true)); err != nil {
		return nil, err
	}
	var all []olmcore.Object
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if name != "default" {
			account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}}
			account.Name, account.OwnerReferences = name, []metav1.OwnerReference{kinds.VersionReference(csv.Name)}
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

// roleAndBinding returns the Role or ClusterRole of a permission and its binding.
func roleAndBinding(csv *v1alpha1.ClusterServiceVersion, p permission, cluster bool) ([]olmcore.Object, error) {
	kind, base := "Role", csv.Name+"-"+p.ServiceAccountName
	meta := metav1.ObjectMeta{Namespace: csv.Namespace, OwnerReferences: []metav1.OwnerReference{kinds.VersionReference(csv.Name)}}
	var named any = struct {
		Name       string     `json:"name"`
		Permission permission `json:"permission"`
	}{csv.Name, p}
	if cluster {
		kind, base, meta = "ClusterRole", csv.Name, metav1.ObjectMeta{}
		named = struct {
			Name       string     `json:"name"`
			Namespace  string     `json:"namespace"`
			Permission permission `json:"permission"`
		}{csv.Name, csv.Namespace, p}
	}
	name, err := olmcore.HashedName(base, named)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: csv.Namespace}}
	rules, rulesErr := olmcore.HashWithoutNewline(p.Rules)
	bound, boundErr := olmcore.HashWithoutNewline(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects})
	if err := cmp.Or(err, rulesErr, boundErr); err != nil {
		return nil, err
	}
	labelled := func(hash string) metav1.ObjectMeta {
		meta := *meta.DeepCopy()
		meta.Name, meta.Labels = name, olmcore.Owner{Kind: kinds.CSV, Namespace: csv.Namespace, Name: csv.Name}.Labels()
		meta.Labels[labelPermissionsHash] = hash
		return meta
	}
	binding := rbacv1.RoleBinding{TypeMeta: typeMeta(kind + "Binding"), ObjectMeta: labelled(bound), RoleRef: ref, Subjects: subjects}
	if cluster {
		return []olmcore.Object{&rbacv1.ClusterRole{TypeMeta: typeMeta(kind), ObjectMeta: labelled(rules), Rules: p.Rules}, new(rbacv1.ClusterRoleBinding(binding))}, nil
	}
	return []olmcore.Object{&rbacv1.Role{TypeMeta: typeMeta(kind), ObjectMeta: labelled(rules), Rules: p.Rules}, &binding}, nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
