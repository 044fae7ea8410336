// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// RoleBindings reads the RoleBindings of a namespace that may include its ServiceAccounts named in accounts, and those
// with a name in names.
func RoleBindings(r *Reads, namespace string, accounts, names []string) olmcore.Observed[*rbacv1.RoleBinding] {
	return Indexed(r, namespace, bindingTerms(namespace, accounts, names), func(b *rbacv1.RoleBinding, add func(Term)) {
		termsOfBinding(b.Name, b.Namespace, b.Subjects, add)
	})
}

// ClusterRoleBindings reads the ClusterRoleBindings that may include the ServiceAccounts of a namespace named in
// accounts, and those with a name in names.
func ClusterRoleBindings(r *Reads, namespace string, accounts, names []string) olmcore.Observed[*rbacv1.ClusterRoleBinding] {
	return Indexed(r, "", bindingTerms(namespace, accounts, names), func(b *rbacv1.ClusterRoleBinding, add func(Term)) {
		termsOfBinding(b.Name, "", b.Subjects, add)
	})
}

// ClusterRoles reads the ClusterRoles with these names. If the API server has not written the rules of an aggregated
// ClusterRole yet, it also reads the ClusterRoles that it aggregates.
func ClusterRoles(r *Reads, names []string) olmcore.Observed[*rbacv1.ClusterRole] {
	found := Named[*rbacv1.ClusterRole](r, "", names)
	for _, role := range found.Items {
		for _, selector := range rbac.Selectors(role) {
			found = Join(found, List[*rbacv1.ClusterRole](r, "", selector))
		}
	}
	return found
}

// Terms of bindings: their own names, and those of subjects that can mean a ServiceAccount.
const (
	termBinding = "name"
	termSubject = "subject"
)

func bindingTerms(namespace string, accounts, names []string) []Term {
	terms := []Term{
		{Of: termSubject, Value: rbac.GroupAll}, {Of: termSubject, Value: rbac.GroupAll + ":" + namespace}, {Of: termSubject, Value: rbac.GroupAuthenticated},
	}
	for _, name := range accounts {
		terms = append(terms, Term{Of: termSubject, Value: rbac.UserPrefix + namespace + ":" + name})
	}
	for _, name := range names {
		terms = append(terms, Term{Of: termBinding, Value: name})
	}
	return terms
}

func termsOfBinding(name, namespace string, subjects []rbacv1.Subject, add func(Term)) {
	add(Term{Of: termBinding, Value: name})
	for _, s := range subjects {
		user := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			user = rbac.UserPrefix + cmp.Or(s.Namespace, namespace) + ":" + s.Name
		}
		add(Term{Of: termSubject, Value: user})
	}
}
