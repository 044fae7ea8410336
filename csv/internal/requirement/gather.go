// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// gatherPermissions keeps the bindings of the CSV's ServiceAccounts and the roles that
// they reference. While something is missing, what the InstallPlan made is looked up
// by name too.
func gatherPermissions(r *read.Reads, o *Observed) {
	c := o.CSV
	var accounts []string
	planned := map[bool][]string{} // names of roles and of their bindings, by whether they are of the cluster
	for _, p := range permissionsOf(c) {
		accounts = append(accounts, p.ServiceAccountName)
		if name, err := p.name(c); err == nil && c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
			planned[p.cluster] = append(planned[p.cluster], name)
		}
	}
	slices.Sort(accounts)
	accounts = slices.Compact(accounts)
	o.ServiceAccounts = read.Named[*corev1.ServiceAccount](r, c.Namespace, accounts)
	o.Roles, o.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	o.ClusterRoles, o.ClusterRoleBindings = olmcore.Found[*rbacv1.ClusterRole](), olmcore.Found[*rbacv1.ClusterRoleBinding]()
	if len(accounts) == 0 {
		return
	}
	binds := func(subjects []rbacv1.Subject, namespace string) bool {
		return slices.ContainsFunc(accounts, func(name string) bool {
			return rbac.Account{Namespace: c.Namespace, Name: name}.IsBound(subjects, namespace)
		})
	}
	local := read.Indexed(r, c.Namespace, bindingTerms(c.Namespace, accounts, planned[false]), func(b *rbacv1.RoleBinding) []string {
		return termsOfBinding(b.Name, b.Namespace, b.Subjects)
	})
	o.RoleBindings = read.Only(local, func(b *rbacv1.RoleBinding) bool {
		return binds(b.Subjects, c.Namespace) || slices.Contains(planned[false], b.Name)
	})
	global := read.Indexed(r, "", bindingTerms(c.Namespace, accounts, planned[true]), func(b *rbacv1.ClusterRoleBinding) []string {
		return termsOfBinding(b.Name, "", b.Subjects)
	})
	o.ClusterRoleBindings = read.Only(global, func(b *rbacv1.ClusterRoleBinding) bool {
		return binds(b.Subjects, "") || slices.Contains(planned[true], b.Name)
	})
	roles, clusterRoles := planned[false], planned[true]
	for _, b := range o.RoleBindings.Items {
		if b.RoleRef.Kind == "ClusterRole" {
			clusterRoles = append(clusterRoles, b.RoleRef.Name)
		} else {
			roles = append(roles, b.RoleRef.Name)
		}
	}
	for _, b := range o.ClusterRoleBindings.Items {
		clusterRoles = append(clusterRoles, b.RoleRef.Name)
	}
	o.Roles = read.Named[*rbacv1.Role](r, c.Namespace, roles)
	o.ClusterRoles = read.Named[*rbacv1.ClusterRole](r, "", clusterRoles)
	gatherAggregated(r, o)
}

// gatherAggregated adds the roles that an aggregated ClusterRole without rules selects.
func gatherAggregated(r *read.Reads, o *Observed) {
	for _, role := range o.ClusterRoles.Items {
		for _, selector := range rbac.Selectors(role) {
			o.ClusterRoles = read.Join(o.ClusterRoles, read.List[*rbacv1.ClusterRole](r, "", selector))
		}
	}
}

// bindingTerms are the index terms of the bindings that can mean accounts of a
// namespace, or have one of the names.
func bindingTerms(namespace string, accounts, names []string) []string {
	terms := []string{rbac.GroupAll, rbac.GroupAll + ":" + namespace, rbac.GroupAuthenticated}
	for _, name := range accounts {
		terms = append(terms, rbac.UserPrefix+namespace+":"+name)
	}
	for _, name := range names {
		terms = append(terms, "/"+name)
	}
	return terms
}

func termsOfBinding(name, namespace string, subjects []rbacv1.Subject) []string {
	terms := []string{"/" + name}
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			terms = append(terms, rbac.UserPrefix+cmp.Or(s.Namespace, namespace)+":"+s.Name)
		} else {
			terms = append(terms, s.Name)
		}
	}
	return terms
}
