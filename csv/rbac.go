// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// account is a ServiceAccount as the subject of RBAC rules.
type account struct{ namespace, name string }

// isSubject reports whether a binding's subject means the account: itself, its
// user name, or one of the three groups that every ServiceAccount is in.
// bindingNamespace is empty for a ClusterRoleBinding.
func (a account) isSubject(s *rbacv1.Subject, bindingNamespace string) bool {
	const user, group = "system:serviceaccount:", "system:serviceaccounts"
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		namespace := s.Namespace
		if namespace == "" {
			namespace = bindingNamespace
		}
		return s.Name == a.name && namespace == a.namespace
	case rbacv1.UserKind:
		rest, ok := strings.CutPrefix(s.Name, user)
		namespace, name, split := strings.Cut(rest, ":")
		return ok && split && namespace == a.namespace && name == a.name
	case rbacv1.GroupKind:
		rest, ok := strings.CutPrefix(s.Name, group)
		return s.Name == "system:authenticated" || ok && (rest == "" || rest[0] == ':' && rest[1:] == a.namespace)
	}
	return false
}

func (a account) isBound(subjects []rbacv1.Subject, bindingNamespace string) bool {
	for i := range subjects {
		if a.isSubject(&subjects[i], bindingNamespace) {
			return true
		}
	}
	return false
}

// grants are the rules that apply to an account: those that hold in the whole
// cluster, and those that hold in its namespace alone.
type grants struct {
	cluster, namespaced [][]rbacv1.PolicyRule
}

// rbac looks up what the observed roles and bindings grant.
type rbac struct {
	in *Input
}

// collect appends the rules that bindings give an account. The slices of g keep
// their capacity, so that a caller can bring them along on its stack.
func (r rbac) collect(a account, g grants) grants {
	in, uid := r.in, r.in.ClusterServiceVersion.UID
	for _, b := range in.ClusterRoleBindings.Items {
		if a.isBound(b.Subjects, "") && !r.goesWithOther(&b.ObjectMeta) {
			g.cluster = append(g.cluster, r.clusterRules(b.RoleRef.Name))
		}
	}
	for _, b := range in.RoleBindings.Items {
		if b.Namespace != a.namespace || !a.isBound(b.Subjects, b.Namespace) || ownedByOtherCSV(b.OwnerReferences, uid) {
			continue
		}
		if b.RoleRef.Kind == "ClusterRole" {
			g.namespaced = append(g.namespaced, r.clusterRules(b.RoleRef.Name))
			continue
		}
		if i := indexNamed(in.Roles.Items, b.Namespace, b.RoleRef.Name); i >= 0 && !ownedByOtherCSV(in.Roles.Items[i].OwnerReferences, uid) {
			g.namespaced = append(g.namespaced, in.Roles.Items[i].Rules)
		}
	}
	return g
}

func (r rbac) clusterRules(name string) []rbacv1.PolicyRule {
	roles := r.in.ClusterRoles.Items
	i := indexNamed(roles, "", name)
	if i < 0 || r.goesWithOther(&roles[i].ObjectMeta) {
		return nil
	}
	if role := roles[i]; len(role.Rules) == 0 && role.AggregationRule != nil {
		return aggregate(role, roles)
	}
	return roles[i].Rules
}

// goesWithOther reports whether a cluster-scoped object is another CSV's: its
// clean-up will take the object away. That of a predecessor counts too, or an
// upgrade would lose what the old version leaves with.
func (r rbac) goesWithOther(m *metav1.ObjectMeta) bool {
	c := r.in.ClusterServiceVersion
	if owner, ok := olmcore.OwnerOf(m.Labels); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		return owner.Namespace != c.Namespace || owner.Name != c.Name
	}
	return ownedByOtherCSV(m.OwnerReferences, c.UID)
}

// aggregate computes what the API server has not written into an aggregated
// ClusterRole yet.
func aggregate(whole *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var union []rbacv1.PolicyRule
	for _, role := range roles {
		if role.Name != whole.Name && slices.ContainsFunc(whole.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(role.Labels))
		}) {
			union = append(union, role.Rules...)
		}
	}
	return union
}

// allows reports whether the grants satisfy a rule in full.
func (g grants) allows(rule *rbacv1.PolicyRule, position int) bool {
	if len(rule.NonResourceURLs) > 0 {
		return g.allowsURLs(rule)
	}
	// Installed roles repeat the rules of the CSV in their order: look there first.
	for _, lists := range [...][][]rbacv1.PolicyRule{g.cluster, g.namespaced} {
		for _, rules := range lists {
			if position < len(rules) && sameRule(&rules[position], rule) {
				return true
			}
		}
	}
	if g.any(func(c *rbacv1.PolicyRule) bool { return covers(c, rule) }) {
		return true
	}
	return each(rule.ResourceNames, func(name string) bool {
		return each(rule.Resources, func(resource string) bool {
			return each(rule.APIGroups, func(group string) bool {
				return each(rule.Verbs, func(verb string) bool {
					return g.any(func(c *rbacv1.PolicyRule) bool {
						return listed(c.Verbs, verb) && listed(c.APIGroups, group) && resourceListed(c.Resources, resource) && nameListed(c.ResourceNames, name)
					})
				})
			})
		})
	})
}

// allowsURLs ignores what RoleBindings grant: Kubernetes does so too.
func (g grants) allowsURLs(rule *rbacv1.PolicyRule) bool {
	g.namespaced = nil
	return each(rule.NonResourceURLs, func(url string) bool {
		return each(rule.Verbs, func(verb string) bool {
			return g.any(func(c *rbacv1.PolicyRule) bool { return listed(c.Verbs, verb) && urlListed(c.NonResourceURLs, url) })
		})
	})
}

func (g grants) any(match func(*rbacv1.PolicyRule) bool) bool {
	for _, lists := range [...][][]rbacv1.PolicyRule{g.cluster, g.namespaced} {
		for _, rules := range lists {
			for i := range rules {
				if match(&rules[i]) {
					return true
				}
			}
		}
	}
	return false
}

// sameRule reports whether a granted rule is the wanted one, word for word. A
// rule without apiGroups or resources grants nothing, not even itself.
func sameRule(have, want *rbacv1.PolicyRule) bool {
	return len(want.APIGroups) > 0 && len(want.Resources) > 0 &&
		slices.Equal(have.Verbs, want.Verbs) && slices.Equal(have.Resources, want.Resources) &&
		slices.Equal(have.APIGroups, want.APIGroups) && slices.Equal(have.ResourceNames, want.ResourceNames)
}

// covers reports whether one granted rule alone satisfies all of another.
func covers(have, want *rbacv1.PolicyRule) bool {
	return each(want.Verbs, func(v string) bool { return listed(have.Verbs, v) }) &&
		each(want.APIGroups, func(g string) bool { return listed(have.APIGroups, g) }) &&
		each(want.Resources, func(r string) bool { return resourceListed(have.Resources, r) }) &&
		each(want.ResourceNames, func(n string) bool { return nameListed(have.ResourceNames, n) })
}

// each reports whether all values pass; no values stand for one empty value.
func each(values []string, pass func(string) bool) bool {
	if len(values) == 0 {
		return pass("")
	}
	for _, v := range values {
		if !pass(v) {
			return false
		}
	}
	return true
}

func listed(list []string, value string) bool {
	for _, have := range list {
		if have == value || have == "*" {
			return true
		}
	}
	return false
}

func resourceListed(list []string, resource string) bool {
	if listed(list, resource) {
		return true
	}
	_, sub, split := strings.Cut(resource, "/")
	if !split {
		return false
	}
	for _, have := range list {
		if strings.HasPrefix(have, "*/") && have[2:] == sub {
			return true
		}
	}
	return false
}

func nameListed(list []string, name string) bool {
	return len(list) == 0 || name != "" && slices.Contains(list, name)
}

func urlListed(list []string, url string) bool {
	for _, have := range list {
		prefix, wildcard := strings.CutSuffix(have, "*")
		if have == url || wildcard && strings.HasPrefix(url, prefix) {
			return true
		}
	}
	return false
}

// ownedByOtherCSV reports whether CSVs own an object and this one is none of
// them: garbage collection may take it away with its owner.
func ownedByOtherCSV(owners []metav1.OwnerReference, uid types.UID) bool {
	other := false
	for i := range owners {
		if owners[i].UID == uid {
			return false
		}
		other = other || isCSVReference(&owners[i])
	}
	return other
}
