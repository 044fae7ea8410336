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

// maxParts is the maximum number of combinations of verb, API group, resource and name that Gained compares. With more
// combinations the comparison could take hours, so all rules are reported as gained.
const maxParts = 20_000

// maxPairs is the maximum number of comparisons of these combinations with rules that are granted already.
const maxPairs = 20_000_000

// Gained returns the rules that the Roles, ClusterRoles and bindings in after grant, but those in before do not. The
// result contains one line for each rule, sorted, and is empty if no rule is gained. Objects of other kinds are
// ignored.
//
// For an upgrade, after contains the objects of the new version: see olmcore.PermissionObjects. before contains the
// objects of the new and the replaced version that exist in the cluster.
//
// A rule that before grants in the whole cluster is not a gain in a namespace. If there are too many rules to compare,
// all rules in after are reported. If after contains a binding to a role that it does not contain, the rules of the
// role are not known. The binding is then reported as a gain, unless before contains a binding of the same subject to
// the same role. The same holds for a binding to a ClusterRole with an aggregationRule. The rules in after that are
// aggregated into such a ClusterRole are compared too. Rules that a label aggregates into the ClusterRoles of users are
// reported as granted to "users by LABEL".
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

// unknownBeyond returns the bindings to unknown roles that g contains and have does not.
func (g given) unknownBeyond(have given) []unknown {
	known := make(map[unknown]bool, len(have.unknown))
	for _, u := range have.unknown {
		known[u] = true
	}
	return slices.DeleteFunc(slices.Clone(g.unknown), func(u unknown) bool { return known[u] })
}

// beyond returns the rules that g contains and have does not, by holder.
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

// brief returns a rule in one line, cut so that a status can contain it.
func brief(rule rbacv1.PolicyRule) string { return fmt.Sprintf("%.200s", line(rule)) }

// line returns a rule in one line.
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

// holder is a subject with rules in a namespace, or in the whole cluster if namespace is empty.
type holder struct{ namespace, name string }

func (h holder) String() string {
	if h.namespace == "" {
		return h.name + " in the cluster"
	}
	return h.name + " in namespace " + h.namespace
}

// role is the key of a Role, or of a ClusterRole if namespace is empty.
type role struct{ namespace, name string }

// given contains the rules that roles and bindings give, and the bindings to roles that are not known.
type given struct {
	rules   map[holder][]rbacv1.PolicyRule
	unknown []unknown
	// aggregated contains the known rules of ClusterRoles with an aggregationRule, by name.
	aggregated map[string][]rbacv1.PolicyRule
}

// unknown is a binding of a holder to a role that was not read. The role is written "Kind name".
type unknown struct {
	holder
	role string
}

func (u unknown) String() string { return u.holder.String() + ": all that " + u.role + " allows" }

// isBounded reports whether g and have are small enough to be compared.
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

// givenBy returns the rules that roles and bindings give.
func givenBy(objects []olmcore.Object) given {
	all, rules := given{rules: map[holder][]rbacv1.PolicyRule{}, aggregated: aggregatedBy(objects)}, map[role][]rbacv1.PolicyRule{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.Role:
			rules[role{o.Namespace, o.Name}] = o.Rules
		case *rbacv1.ClusterRole:
			if o.AggregationRule != nil {
				continue // its rules are not known
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

// bind gives subjects the rules of a role, in a namespace or in the cluster.
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
