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

// Grant is a rule, and who holds it.
type Grant struct {
	// Subject is who holds it: "ServiceAccount namespace/name", "User name", "Group name", or "users by LABEL" of what
	// is aggregated to ClusterRoles of users.
	Subject string `json:"subject"`
	// Scope is where: "cluster", or "namespace NAME".
	Scope string `json:"scope"`
	// Rule is what is allowed, its lists sorted. Of all that a role allows which was not read it is empty, and Role
	// names that role.
	Rule rbacv1.PolicyRule `json:"rule"`
	Role string            `json:"role,omitempty"`
	// Escalation says why it deserves a second look, sorted; empty for what does not.
	Escalation []Escalation `json:"escalation"`
}

// Escalation is a reason for which a Grant is more than it seems.
type Escalation string

// Escalations.
const (
	// EveryVerb, EveryResource and EveryGroup are rules with an asterisk.
	EveryVerb     Escalation = "every verb"
	EveryResource Escalation = "every resource"
	EveryGroup    Escalation = "every API group"
	// Secrets can be read or written.
	Secrets Escalation = "secrets"
	// Escalate and Bind are verbs by which whoever holds them gives himself any role, Impersonate to act as another,
	// also by tokens of ServiceAccounts.
	Escalate    Escalation = "escalate"
	Bind        Escalation = "bind"
	Impersonate Escalation = "impersonate"
	// ClusterWide rules hold in all namespaces, or for what is in none.
	ClusterWide Escalation = "cluster-wide"
	// UnknownRole: a role is bound that was not read.
	UnknownRole Escalation = "unknown role"
)

// String is the rule in a line.
func (g Grant) String() string {
	if g.Role != "" {
		return "all that " + g.Role + " allows"
	}
	return brief(g.Rule)
}

// Difference is what two sets of roles and bindings give that the other one does not. Both lists are sorted by subject,
// scope and rule, and never nil.
type Difference struct {
	Added   []Grant `json:"added"`
	Removed []Grant `json:"removed"`
}

// Compare returns what is gained and what is lost where Roles, ClusterRoles and their bindings become others, as Gained
// finds it in either direction, down to the single verb and resource: of a rule that was given in part, only the rest
// is named. Other objects do not count.
func Compare(before, after []olmcore.Object) Difference {
	have, asked := givenBy(before), givenBy(after)
	return Difference{Added: asked.grantsBeyond(have), Removed: have.grantsBeyond(asked)}
}

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
		grants = append(grants, Grant{Subject: u.name, Scope: u.scope(), Role: u.role, Escalation: escalations(u.holder, rbacv1.PolicyRule{}, UnknownRole)})
	}
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Scope, b.Scope), strings.Compare(a.String(), b.String()))
	})
	return grants
}

// scope says where a holder may do something.
func (h holder) scope() string {
	if h.namespace == "" {
		return "cluster"
	}
	return "namespace " + h.namespace
}

// join makes as few rules as it can of some: those that differ in one list alone become one, unless it is empty in one
// of them, which means something else. The lists are sorted.
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

// lists are those of a rule, in the order in which rules are joined.
var lists = []func(*rbacv1.PolicyRule) *[]string{
	func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
	func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
	func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
	func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
}

// keyOf tells rules apart.
func keyOf(rule rbacv1.PolicyRule) string {
	var parts []string
	for _, list := range lists {
		parts = append(parts, strings.Join(*list(&rule), "\x00"))
	}
	return strings.Join(parts, "\x01")
}

// marks are the rows by which escalations are found.
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
		return has(r.Verbs, "impersonate") && (slices.Contains(r.Verbs, "impersonate") || has(r.Resources, "users", "groups", "serviceaccounts", "uids"))
	}},
	{ClusterWide, func(to holder, _ rbacv1.PolicyRule) bool { return to.namespace == "" }},
}

func changesRoles(r rbacv1.PolicyRule) bool {
	return has(r.APIGroups, rbacv1.GroupName) && has(r.Resources, "roles", "clusterroles")
}

// has reports whether a list has one of some entries, or the asterisk.
func has(list []string, entries ...string) bool {
	return slices.ContainsFunc(list, func(e string) bool { return e == rbacv1.VerbAll || slices.Contains(entries, e) })
}

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
