// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/olmcore/olm/olmcore"
)

// maxParts is how many combinations of verb, API group, resource and name Gained compares. Rules with millions of them
// are not compared for hours: all are a gain, whatever their order.
const maxParts = 20_000

// maxPairs is with how many rules that are given already these are compared in all.
const maxPairs = 20_000_000

// Gained returns what Roles, ClusterRoles and their bindings give that others do not, a sorted line for each rule;
// nothing when they give no more. Other objects do not count. Of an upgrade, after is what the new version brings and
// before what the cluster has of it and of the version that it replaces: see olmcore.PermissionObjects.
//
// A subject that is granted a rule in the cluster has it in all namespaces. What a role allows that is not in after is
// not known: a binding to it is a gain, unless before has a binding of that subject to it too; the same holds for
// ClusterRoles with an aggregationRule, but that what is aggregated to them of both is compared. What is aggregated to
// ClusterRoles of users counts as given to all that bear the label.
func Gained(before, after []olmcore.Object) (gained []string) {
	have, asked := givenBy(before), givenBy(after)
	for _, binding := range asked.unknownBeyond(have) {
		gained = append(gained, binding.String())
	}
	for to, rules := range asked.beyond(have) {
		for _, rule := range rules {
			gained = append(gained, to.String()+": "+brief(rule))
		}
	}
	slices.Sort(gained)
	return slices.Compact(gained)
}

// unknownBeyond returns what is given that is not known and that others do not give.
func (g given) unknownBeyond(have given) []unknown {
	known := make(map[unknown]bool, len(have.unknown))
	for _, u := range have.unknown {
		known[u] = true
	}
	return slices.DeleteFunc(slices.Clone(g.unknown), func(u unknown) bool { return known[u] })
}

// beyond returns the rules that others do not give, by who holds them.
func (g given) beyond(have given) map[holder][]rbacv1.PolicyRule {
	more := map[holder][]rbacv1.PolicyRule{}
	isBounded := g.isBounded(have)
	for to, rules := range g.rules {
		granted := slices.Concat(have.rules[to], have.rules[holder{name: to.name}])
		for _, rule := range rules {
			if isBounded {
				if covered, _ := validation.Covers(granted, []rbacv1.PolicyRule{rule}); covered {
					continue
				}
			}
			more[to] = append(more[to], rule)
		}
	}
	return more
}

// brief is a rule in a line of a length that a status can hold.
func brief(rule rbacv1.PolicyRule) string { return fmt.Sprintf("%.200s", line(rule)) }

// line is a rule in a line.
func line(rule rbacv1.PolicyRule) string {
	text := strings.Join(rule.Verbs, ",") + " " + strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ",")
	if groups := strings.Join(rule.APIGroups, ","); groups != "" {
		text += " of " + groups
	}
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ",")
	}
	return text
}

// holder is who may do something, in a namespace or, without one, in the cluster.
type holder struct{ namespace, name string }

func (h holder) String() string {
	if h.namespace == "" {
		return h.name + " in the cluster"
	}
	return h.name + " in namespace " + h.namespace
}

// role is a Role or, without a namespace, a ClusterRole.
type role struct{ namespace, name string }

// given is what roles and bindings give, and what they give that is not known.
type given struct {
	rules   map[holder][]rbacv1.PolicyRule
	unknown []unknown
	// aggregated are the rules that are known to come to ClusterRoles with an aggregationRule.
	aggregated map[string][]rbacv1.PolicyRule
}

// unknown is a role, "Kind name", that is bound to a holder and was not read.
type unknown struct {
	holder
	role string
}

func (u unknown) String() string { return u.holder.String() + ": all that " + u.role + " allows" }

// isBounded reports whether it takes no hours to compare what is given with what others give.
func (g given) isBounded(have given) bool {
	all, pairs := 0, 0
	for to, rules := range g.rules {
		n := 0
		for _, rule := range rules { // combinations of verb, API group, resource and name
			n += len(rule.Verbs) * max(1, len(rule.APIGroups)) * max(1, len(rule.Resources)) * max(1, len(rule.ResourceNames))
			if n > maxParts {
				return false
			}
		}
		all += n
		pairs += n * (len(have.rules[to]) + len(have.rules[holder{name: to.name}]))
	}
	return all <= maxParts && pairs <= maxPairs
}

func givenBy(objects []olmcore.Object) given {
	all, rules := given{rules: map[holder][]rbacv1.PolicyRule{}, aggregated: aggregatedBy(objects)}, map[role][]rbacv1.PolicyRule{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.Role:
			rules[role{o.Namespace, o.Name}] = o.Rules
		case *rbacv1.ClusterRole:
			if o.AggregationRule != nil {
				continue // whatever its binding says is not known
			}
			rules[role{name: o.Name}] = o.Rules
			for label := range o.Labels {
				if strings.Contains(label, toUsers) {
					users := holder{name: "users by " + label}
					all.rules[users] = append(all.rules[users], o.Rules...)
				}
			}
		}
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.RoleBinding:
			to := role{o.Namespace, o.RoleRef.Name}
			if o.RoleRef.Kind == "ClusterRole" {
				to.namespace = ""
			}
			all.bind(o.Namespace, o.RoleRef.Kind, rules, to, o.Subjects)
		case *rbacv1.ClusterRoleBinding:
			all.bind("", o.RoleRef.Kind, rules, role{name: o.RoleRef.Name}, o.Subjects)
		}
	}
	return all
}

// bind gives subjects what a role allows, in a namespace or in the cluster.
func (g *given) bind(namespace, kind string, rules map[role][]rbacv1.PolicyRule, to role, subjects []rbacv1.Subject) {
	for _, s := range subjects {
		who := holder{namespace, s.Kind + " " + s.Name}
		if s.Namespace != "" {
			who.name = s.Kind + " " + s.Namespace + "/" + s.Name
		}
		if allowed, known := rules[to]; known {
			g.rules[who] = append(g.rules[who], allowed...)
		} else {
			g.unknown = append(g.unknown, unknown{who, kind + " " + to.name})
			if to.namespace == "" && len(g.aggregated[to.name]) > 0 {
				g.rules[who] = append(g.rules[who], g.aggregated[to.name]...)
			}
		}
	}
}
