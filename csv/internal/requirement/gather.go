// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"cmp"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// gatherPermissions keeps the bindings of the CSV's ServiceAccounts and the roles that they reference. While something
// is missing, what the InstallPlan made is looked up by name too.
func gatherPermissions(r *read.Reads, o *Observed) {
	c := o.CSV
	accounts, _ := accountsOf(c)
	o.ServiceAccounts = read.Named[*corev1.ServiceAccount](r, c.Namespace, accounts)
	o.Roles, o.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	o.ClusterRoles, o.ClusterRoleBindings = olmcore.Found[*rbacv1.ClusterRole](), olmcore.Found[*rbacv1.ClusterRoleBinding]()
	if len(accounts) == 0 {
		return
	}
	var roles, clusterRoles []string
	if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		planned, _ := olmcore.PermissionObjects(c) // none for a strategy that is not installed
		for _, object := range planned {
			switch object.(type) {
			case *rbacv1.Role:
				roles = append(roles, object.GetName())
			case *rbacv1.ClusterRole:
				clusterRoles = append(clusterRoles, object.GetName())
			}
		}
	}
	o.RoleBindings = read.Indexed(r, c.Namespace, bindingTerms(c.Namespace, accounts, roles), func(b *rbacv1.RoleBinding) []read.Term {
		return termsOfBinding(b.Name, b.Namespace, b.Subjects)
	})
	o.ClusterRoleBindings = read.Indexed(r, "", bindingTerms(c.Namespace, accounts, clusterRoles), func(b *rbacv1.ClusterRoleBinding) []read.Term {
		return termsOfBinding(b.Name, "", b.Subjects)
	})
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
	for _, role := range o.ClusterRoles.Items { // those that an aggregated one without rules selects
		for _, selector := range rbac.Selectors(role) {
			o.ClusterRoles = read.Join(o.ClusterRoles, read.List[*rbacv1.ClusterRole](r, "", selector))
		}
	}
}

// Terms of bindings: their own names, and those of subjects that can mean a ServiceAccount.
const (
	termName    = "name"
	termSubject = "subject"
)

func bindingTerms(namespace string, accounts, names []string) []read.Term {
	var terms []read.Term
	for _, group := range []string{rbac.GroupAll, rbac.GroupAll + ":" + namespace, rbac.GroupAuthenticated} {
		terms = append(terms, read.Term{Of: termSubject, Value: group})
	}
	for _, name := range accounts {
		terms = append(terms, read.Term{Of: termSubject, Value: rbac.UserPrefix + namespace + ":" + name})
	}
	for _, name := range names {
		terms = append(terms, read.Term{Of: termName, Value: name})
	}
	return terms
}

func termsOfBinding(name, namespace string, subjects []rbacv1.Subject) []read.Term {
	terms := []read.Term{{Of: termName, Value: name}}
	for _, s := range subjects {
		user := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			user = rbac.UserPrefix + cmp.Or(s.Namespace, namespace) + ":" + s.Name
		}
		terms = append(terms, read.Term{Of: termSubject, Value: user})
	}
	return terms
}
