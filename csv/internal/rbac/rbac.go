// SPDX-License-Identifier: Apache-2.0

// Package rbac evaluates which rules the observed roles and bindings grant to a ServiceAccount.
package rbac

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// The user name prefix and the groups of ServiceAccounts.
const (
	UserPrefix         = "system:serviceaccount:"
	GroupAll           = "system:serviceaccounts"
	GroupAuthenticated = "system:authenticated"
)

// RuleError returns a message about an invalid rule of a CSV, or an empty string if the rule is valid.
func RuleError(r *rbacv1.PolicyRule) string {
	switch {
	case len(r.Verbs) == 0:
		return "rule invalid: policy rule must have at least one verb"
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return "rule invalid: rule cannot apply to both regular resources and non-resource URLs"
	}
	return ""
}

// Account is the namespace and name of a ServiceAccount.
type Account struct{ Namespace, Name string }

// IsBound reports whether the subjects of a binding include the account. A subject may name the ServiceAccount, its
// user name, or one of the three groups that contain it. bindingNamespace is empty for a ClusterRoleBinding.
func (a Account) IsBound(subjects []rbacv1.Subject, bindingNamespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Name == a.Name && (s.Namespace == a.Namespace || s.Namespace == "" && bindingNamespace == a.Namespace)
		case rbacv1.UserKind:
			return s.Name == UserPrefix+a.Namespace+":"+a.Name
		case rbacv1.GroupKind:
			return s.Name == GroupAuthenticated || s.Name == GroupAll || s.Name == GroupAll+":"+a.Namespace
		}
		return false
	})
}

// Granted contains the rules that are granted to an account. cluster contains the rules for the whole cluster.
// namespace contains all rules that apply in the account's namespace, including those of cluster.
type Granted struct{ cluster, namespace []rbacv1.PolicyRule }

// GrantedBy returns a Granted with the given rules for the whole cluster.
func GrantedBy(rules []rbacv1.PolicyRule) Granted { return Granted{cluster: rules, namespace: rules} }

var anything = []string{rbacv1.VerbAll} // the wildcard of verbs, API groups, resources and URLs

// Changed returns the rules that only one of two versions of a ClusterRole grants. If the labels or owner references
// changed too, or if both versions are the same, Changed returns all rules of both versions. If Kubernetes has not
// aggregated the rules of a version yet, Changed returns rules that allow everything. old is nil if the old version is
// not known.
func Changed(old, next *rbacv1.ClusterRole) Granted {
	if old == nil {
		old = &rbacv1.ClusterRole{}
	}
	if len(Selectors(old))+len(Selectors(next)) > 0 {
		return GrantedBy(
			[]rbacv1.PolicyRule{{Verbs: anything, APIGroups: anything, Resources: anything}, {Verbs: anything, NonResourceURLs: anything}},
		)
	}
	without := func(rules []rbacv1.PolicyRule, o *rbacv1.ClusterRole) []rbacv1.PolicyRule {
		if old.ResourceVersion == next.ResourceVersion || !equality.Semantic.DeepEqual(old.Labels, next.Labels) ||
			!equality.Semantic.DeepEqual(old.OwnerReferences, next.OwnerReferences) {
			return rules
		}
		return slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(o.Rules, func(other rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, other) })
		})
	}
	return GrantedBy(slices.Concat(without(old.Rules, next), without(next.Rules, old)))
}

// Grants returns a function that looks up the rules of an account. These are the rules that the given roles and
// bindings grant to a ServiceAccount of the CSV. Roles and bindings that belong to another CSV, even a predecessor, are
// ignored, because they are deleted with that CSV.
func Grants(
	c *model.CSV, roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding,
	clusterRoles []*rbacv1.ClusterRole, clusterBindings []*rbacv1.ClusterRoleBinding,
) func(Account) Granted {
	named, clusterNamed := model.IndexByName(roles, c.Namespace), model.IndexByName(clusterRoles, "")
	clusterRules := func(name string) []rbacv1.PolicyRule {
		role := clusterNamed[name]
		if role == nil || belongsToAnother(c, &role.ObjectMeta) {
			return nil
		}
		return rulesOf(role, clusterRoles)
	}
	return func(a Account) (g Granted) {
		for _, b := range clusterBindings {
			if a.IsBound(b.Subjects, "") && !belongsToAnother(c, &b.ObjectMeta) {
				g.cluster = append(g.cluster, clusterRules(b.RoleRef.Name)...)
			}
		}
		g.namespace = slices.Clone(g.cluster)
		for _, b := range bindings {
			role := named[b.RoleRef.Name]
			switch {
			case b.Namespace != c.Namespace || !a.IsBound(b.Subjects, b.Namespace) || model.IsOwnedByAnother(b.OwnerReferences, c.UID):
			case b.RoleRef.Kind == "ClusterRole":
				g.namespace = append(g.namespace, clusterRules(b.RoleRef.Name)...)
			case role != nil && !model.IsOwnedByAnother(role.OwnerReferences, c.UID):
				g.namespace = append(g.namespace, role.Rules...)
			}
		}
		return g
	}
}

// belongsToAnother reports whether a cluster-scoped object belongs to another CSV.
func belongsToAnother(c *model.CSV, m *metav1.ObjectMeta) bool {
	owner, ok := olmcore.OwnerOf(m.Labels)
	if ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		return owner.Namespace != c.Namespace || owner.Name != c.Name
	}
	return model.IsOwnedByAnother(m.OwnerReferences, c.UID)
}

// rulesOf returns the rules of a ClusterRole. If Kubernetes has not aggregated them yet, rulesOf returns the rules of
// the ClusterRoles that the aggregationRule selects.
func rulesOf(role *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	rules := slices.Clip(role.Rules)
	for _, selector := range Selectors(role) {
		for _, part := range roles {
			if part.Name != role.Name && selector.Matches(labels.Set(part.Labels)) {
				rules = append(rules, part.Rules...)
			}
		}
	}
	return rules
}

// Selectors returns the selectors in the aggregationRule of a ClusterRole that has no rules yet. It returns nil if the
// ClusterRole has rules or no aggregationRule. Kubernetes adds the rules after the ClusterRole is created.
func Selectors(role *rbacv1.ClusterRole) []labels.Selector {
	if len(role.Rules) > 0 || role.AggregationRule == nil {
		return nil
	}
	var selectors []labels.Selector
	for i := range role.AggregationRule.ClusterRoleSelectors {
		if selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i]); err == nil {
			selectors = append(selectors, selector)
		}
	}
	return selectors
}

// InCluster reports whether the account has all permissions of a rule in the whole cluster.
func (g Granted) InCluster(rule rbacv1.PolicyRule) bool { return g.allow(g.cluster, rule) }

// InNamespace reports whether the account has all permissions of a rule in its namespace. As in Kubernetes, a
// RoleBinding grants no non-resource URLs.
func (g Granted) InNamespace(rule rbacv1.PolicyRule) bool { return g.allow(g.namespace, rule) }

// AddTerms calls add with the index terms of a required rule: its API groups and the term of all API groups, or one
// term for all rules on non-resource URLs.
func AddTerms(rule rbacv1.PolicyRule, add func(olmcore.Term)) {
	if len(rule.NonResourceURLs) > 0 {
		add(onURLs)
		return
	}
	add(inGroup(rbacv1.APIGroupAll))
	each(rule.APIGroups, func(group string) bool {
		add(inGroup(group))
		return true
	})
}

func inGroup(name string) olmcore.Term { return olmcore.Term{Of: "granted group", Value: name} }

var onURLs = olmcore.Term{Of: "granted URLs"}

// Terms returns the index terms of the required rules that the cluster-wide rules of g may satisfy or help to satisfy.
// A required rule has one of the terms if it has an API group in common with a rule of g, or if a rule of g is for all
// API groups. It also has one if both rules are for non-resource URLs.
func (g Granted) Terms() (terms []olmcore.Term) {
	for _, r := range g.cluster {
		for _, group := range r.APIGroups {
			terms = append(terms, inGroup(group))
		}
		if len(r.NonResourceURLs) > 0 {
			terms = append(terms, onURLs)
		}
	}
	return terms
}

// allow reports whether granted covers a rule. Installed roles often contain the rule itself, so this is checked first.
// Otherwise the combinations of API group, resource and verb are checked one by one, up to the first that is not
// granted. So a rule with millions of combinations that is not granted usually ends early.
func (g Granted) allow(granted []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	if len(rule.NonResourceURLs) > 0 {
		return each(rule.NonResourceURLs, func(url string) bool {
			return each(rule.Verbs, func(verb string) bool {
				return covers(g.cluster, rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
			})
		})
	}
	if slices.ContainsFunc(granted, func(g rbacv1.PolicyRule) bool { return isSame(g, rule) }) {
		return true
	}
	return each(rule.APIGroups, func(group string) bool {
		return each(rule.Resources, func(resource string) bool {
			return each(rule.Verbs, func(verb string) bool {
				return covers(granted, rbacv1.PolicyRule{
					APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
				})
			})
		})
	})
}

// isSame reports whether a granted rule has exactly the fields of a needed rule. A rule without API groups or without
// resources grants nothing, so isSame returns false for it.
func isSame(granted, rule rbacv1.PolicyRule) bool {
	return len(rule.APIGroups) > 0 && len(rule.Resources) > 0 &&
		slices.Equal(granted.Verbs, rule.Verbs) && slices.Equal(granted.APIGroups, rule.APIGroups) &&
		slices.Equal(granted.Resources, rule.Resources) && slices.Equal(granted.ResourceNames, rule.ResourceNames)
}

func covers(granted []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	covered, _ := validation.Covers(granted, []rbacv1.PolicyRule{rule})
	return covered
}

// each reports whether all values pass. An empty list is treated as one empty value.
func each(values []string, pass func(string) bool) bool {
	if len(values) == 0 {
		return pass("")
	}
	return !slices.ContainsFunc(values, func(v string) bool { return !pass(v) })
}

// SubjectNamespaces returns the namespaces whose ServiceAccounts a binding may include. A ServiceAccount subject
// without a namespace is ignored. all is true if the binding may include the ServiceAccounts of all namespaces.
func SubjectNamespaces(subjects []rbacv1.Subject) (namespaces []string, all bool) {
	for _, s := range subjects {
		namespace, known := s.Namespace, s.Kind == rbacv1.ServiceAccountKind
		user, isServiceAccount := strings.CutPrefix(s.Name, UserPrefix)
		if isServiceAccount && s.Kind == rbacv1.UserKind {
			namespace, _, known = strings.Cut(user, ":")
		}
		group, isOfNamespace := strings.CutPrefix(s.Name, GroupAll+":")
		if isOfNamespace && s.Kind == rbacv1.GroupKind {
			namespace, known = group, true
		}
		switch {
		case known && namespace != "":
			namespaces = append(namespaces, namespace)
		case s.Kind == rbacv1.GroupKind:
			return nil, true
		}
	}
	return namespaces, false
}
