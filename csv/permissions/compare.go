// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/olmcore/olm/olmcore"
)

// Grant is a rule that a subject holds in a scope.
type Grant struct {
	// Subject is "ServiceAccount namespace/name", "User name" or "Group name". It is "users by LABEL" for rules that
	// the label aggregates into the ClusterRoles of users.
	Subject string `json:"subject"`
	// Scope is "cluster" or "namespace NAME".
	Scope string `json:"scope"`
	// Rule is the granted rule, with sorted lists. If the rules of the role are not known, Rule is empty and Role names
	// the role. Otherwise Role is empty.
	Rule rbacv1.PolicyRule `json:"rule"`
	Role string            `json:"role,omitempty"`
	// Escalation contains the reasons to review the grant, sorted. It is empty if there are none.
	Escalation []Escalation `json:"escalation"`
}

// Escalation is a reason why a Grant allows more than it seems to allow.
type Escalation string

// Escalations of a Grant.
const (
	// EveryVerb means that the rule has the verb "*". EveryResource means that the rule has the resource "*" or
	// "*/SUBRESOURCE". EveryGroup means that the rule has the API group "*".
	EveryVerb     Escalation = "every verb"
	EveryResource Escalation = "every resource"
	EveryGroup    Escalation = "every API group"
	// Secrets means that the rule allows a verb on Secrets.
	Secrets Escalation = "secrets"
	// Escalate and Bind mean that the rule allows the verb escalate or bind on Roles or ClusterRoles. The subject can then
	// give itself any role. Impersonate means that the subject can act as another subject, for example with a token that
	// it creates for a ServiceAccount.
	Escalate    Escalation = "escalate"
	Bind        Escalation = "bind"
	Impersonate Escalation = "impersonate"
	// ClusterWide means that the rule holds in the whole cluster: in all namespaces, and for cluster-scoped objects.
	ClusterWide Escalation = "cluster-wide"
	// UnknownRole means that a binding references a role, but the rules of that role are not known.
	UnknownRole Escalation = "unknown role"
)

// String returns the rule in one line.
func (g Grant) String() string {
	if g.Role != "" {
		return "all that " + g.Role + " allows"
	}
	return brief(g.Rule)
}

// Difference contains the grants that one of two sets of roles and bindings contains and the other does not. Both lists
// are sorted by subject, scope and rule, and are never nil.
type Difference struct {
	Added   []Grant `json:"added"`
	Removed []Grant `json:"removed"`
}

// Compare returns the grants that are added and removed when the Roles, ClusterRoles and bindings in before are
// replaced by those in after. See Gained for how roles with unknown rules are compared. If only a part of a rule is
// added or removed, the Grant contains only that part. Objects of other kinds are ignored.
func Compare(before, after []olmcore.Object) Difference {
	have, asked := givenBy(before), givenBy(after)
	return Difference{Added: asked.grantsBeyond(have), Removed: have.grantsBeyond(asked)}
}

// grantsBeyond returns the grants that g contains and have does not.
func (g given) grantsBeyond(have given) []Grant {
	grants := []Grant{}
	isBounded := g.isBounded(have)
	for to, rules := range g.beyond(have) {
		rest := rules
		if isBounded {
			granted := slices.Concat(have.rules[to], have.rules[holder{name: to.name}])
			_, rest = validation.Covers(granted, rules)
		}
		for _, rule := range join(rest) {
			grants = append(grants, Grant{Subject: to.name, Scope: to.scope(), Rule: rule, Escalation: escalations(to, rule)})
		}
	}
	for _, u := range g.unknownBeyond(have) {
		grants = append(grants, Grant{
			Subject: u.name, Scope: u.scope(), Role: u.role, Escalation: escalations(u.holder, rbacv1.PolicyRule{}, UnknownRole),
		})
	}
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Scope, b.Scope), strings.Compare(a.String(), b.String()))
	})
	return grants
}

// scope returns where a holder has its rules.
func (h holder) scope() string {
	if h.namespace == "" {
		return "cluster"
	}
	return "namespace " + h.namespace
}

// join merges rules that differ in only one list, and sorts the lists. It does not merge a rule in which that list is
// empty, because an empty list has another meaning.
func join(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, list := range lists {
		byRest := map[string]*rbacv1.PolicyRule{}
		for _, rule := range rules {
			rest := rule
			*list(&rest) = nil
			key := keyOf(rest)
			if len(*list(&rule)) == 0 {
				key += "\x02"
			}
			if byRest[key] == nil {
				byRest[key] = &rest
			}
			into := list(byRest[key])
			*into = slices.Concat(*into, *list(&rule))
		}
		rules = nil
		for _, key := range slices.Sorted(maps.Keys(byRest)) {
			all := list(byRest[key])
			slices.Sort(*all)
			*all = slices.Compact(*all)
			rules = append(rules, *byRest[key])
		}
	}
	return rules
}

// lists returns the lists of a rule, in the order in which join merges them.
var lists = []func(*rbacv1.PolicyRule) *[]string{
	func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
	func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
	func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
	func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
}

// keyOf returns a key that is different for different rules.
func keyOf(rule rbacv1.PolicyRule) string {
	var parts []string
	for _, list := range lists {
		parts = append(parts, strings.Join(*list(&rule), "\x00"))
	}
	return strings.Join(parts, "\x01")
}

// marks is the table of escalations. To add an escalation, add a row.
var marks = []struct {
	is Escalation
	of func(to holder, r rbacv1.PolicyRule) bool
}{
	{EveryVerb, func(_ holder, r rbacv1.PolicyRule) bool { return has(r.Verbs) }},
	{EveryResource, func(_ holder, r rbacv1.PolicyRule) bool {
		return has(r.Resources) || slices.ContainsFunc(r.Resources, func(e string) bool { return strings.HasPrefix(e, "*/") })
	}},
	{EveryGroup, func(_ holder, r rbacv1.PolicyRule) bool { return has(r.APIGroups) }},
	{Secrets, func(_ holder, r rbacv1.PolicyRule) bool { return has(r.APIGroups, "") && has(r.Resources, "secrets") }},
	{Escalate, func(_ holder, r rbacv1.PolicyRule) bool { return has(r.Verbs, "escalate") && changesRoles(r) }},
	{Bind, func(_ holder, r rbacv1.PolicyRule) bool { return has(r.Verbs, "bind") && changesRoles(r) }},
	{Impersonate, func(_ holder, r rbacv1.PolicyRule) bool {
		if has(r.APIGroups, "") && has(r.Verbs, "create") && has(r.Resources, "serviceaccounts/token", "*/token") {
			return true
		}
		isNamed := slices.Contains(r.Verbs, "impersonate")
		return has(r.Verbs, "impersonate") && (isNamed || has(r.Resources, "users", "groups", "serviceaccounts", "uids"))
	}},
	{ClusterWide, func(to holder, _ rbacv1.PolicyRule) bool { return to.namespace == "" }},
}

// changesRoles reports whether a rule is about Roles or ClusterRoles.
func changesRoles(r rbacv1.PolicyRule) bool {
	return has(r.APIGroups, rbacv1.GroupName) && has(r.Resources, "roles", "clusterroles")
}

// has reports whether a list contains one of some entries, or the asterisk.
func has(list []string, entries ...string) bool {
	return slices.ContainsFunc(list, func(e string) bool { return e == rbacv1.VerbAll || slices.Contains(entries, e) })
}

// escalations returns the escalations of a rule that a holder has, and those in also.
func escalations(to holder, rule rbacv1.PolicyRule, also ...Escalation) []Escalation {
	found := append([]Escalation{}, also...)
	for _, m := range marks {
		if m.of(to, rule) {
			found = append(found, m.is)
		}
	}
	slices.Sort(found)
	return found
}
