// SPDX-License-Identifier: Apache-2.0

package content

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules checks the rules of a role.
//
// Source: kubernetes pkg/apis/rbac/validation, ValidatePolicyRule.
func rules(list []rbacv1.PolicyRule, isNamespaced bool) (problems field.ErrorList) {
	for i, r := range list {
		at := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			problems = append(problems, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		urls := at.Child("nonResourceURLs")
		switch {
		case len(r.NonResourceURLs) > 0 && isNamespaced:
			problems = append(problems, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
			problems = append(problems, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		case len(r.NonResourceURLs) > 0:
			continue
		}
		if len(r.NonResourceURLs) == 0 && len(r.APIGroups) == 0 {
			problems = append(problems, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.NonResourceURLs) == 0 && len(r.Resources) == 0 {
			problems = append(problems, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return problems
}

func aggregation(rule *rbacv1.AggregationRule) field.ErrorList {
	if rule == nil || len(rule.ClusterRoleSelectors) > 0 {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("aggregationRule", "clusterRoleSelectors"),
		"at least one clusterRoleSelector required if aggregationRule is non-nil")}
}

// binding checks the role and the subjects of a binding.
//
// Source: kubernetes pkg/apis/rbac/validation, ValidateRoleBinding and ValidateRoleBindingSubject.
func binding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject, isNamespaced bool) (problems field.ErrorList) {
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		problems = append(problems, field.NotSupported(at.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if ref.Kind != "ClusterRole" && (ref.Kind != "Role" || !isNamespaced) {
		problems = append(problems, field.NotSupported(at.Child("kind"), ref.Kind, []string{"Role", "ClusterRole"}))
	}
	if ref.Name == "" {
		problems = append(problems, field.Required(at.Child("name"), ""))
	}
	for i, s := range subjects {
		problems = append(problems, subject(s, isNamespaced, field.NewPath("subjects").Index(i))...)
	}
	return problems
}

func subject(s rbacv1.Subject, isNamespaced bool, at *field.Path) (problems field.ErrorList) {
	if s.Name == "" {
		problems = append(problems, field.Required(at.Child("name"), ""))
	}
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			for _, problem := range validation.ValidateServiceAccountName(s.Name, false) {
				problems = append(problems, field.Invalid(at.Child("name"), s.Name, problem))
			}
		}
		if s.Namespace == "" && !isNamespaced {
			problems = append(problems, field.Required(at.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		kinds := []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}
		return append(problems, field.NotSupported(at.Child("kind"), s.Kind, kinds))
	}
	if s.APIGroup != group {
		problems = append(problems, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return problems
}
