// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// The checks of this file tell a group at rest from one that has work, so that
// one at rest costs no memory. Those that say no leave the decision to what
// builds the objects.

// targetsAreSettled reports whether the status holds the targets.
func (in *GroupInput) targetsAreSettled() bool {
	spec := &in.OperatorGroup.Spec
	have, computed := groupTargets(in.OperatorGroup)
	switch {
	case !computed:
		return false
	case len(spec.TargetNamespaces) > 0 && slices.Equal(have, spec.TargetNamespaces) && isStrictlySorted(have):
		return true
	case len(spec.TargetNamespaces) > 0 && len(spec.TargetNamespaces) < 64 && isStrictlySorted(have):
		return have.hasAll(spec.TargetNamespaces) && targets(spec.TargetNamespaces).hasAll(have)
	case len(spec.TargetNamespaces) == 0 && isEveryNamespace(spec.Selector):
		return have.all()
	case len(spec.TargetNamespaces) == 0 && len(spec.Selector.MatchExpressions) == 0 && isStrictlySorted(have):
		return in.selectsJust(have)
	}
	return slices.Equal(have, in.targets())
}

func (t targets) hasAll(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(t, name) })
}

// isStrictlySorted reports whether no name stands twice, too.
func isStrictlySorted(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// selectsJust reports whether a selector without expressions selects exactly
// these sorted names.
func (in *GroupInput) selectsJust(names []string) bool {
	selected := 0
	for _, n := range in.Namespaces.Items {
		if !selects(in.OperatorGroup.Spec.Selector, n.Labels) {
			continue
		}
		if _, found := slices.BinarySearch(names, n.Name); !found {
			return false
		}
		selected++
	}
	return selected == len(names)
}

// apisAreProvided reports whether each API of the annotation has an operator. It
// does not look at a long one, which is quicker sorted out with memory.
func (in *GroupInput) apisAreProvided() bool {
	if strings.Count(groupAPIs(in.OperatorGroup), ",") >= 64 {
		return false
	}
	for rest, more := groupAPIs(in.OperatorGroup), true; more; {
		var entry string
		entry, rest, more = strings.Cut(rest, ",")
		if a, ok := parseAPI(entry); ok && !in.isProvided(a) {
			return false
		}
	}
	return true
}

func (in *GroupInput) isProvided(a api) bool {
	for _, c := range in.ClusterServiceVersions.Items {
		if in.isMember(c) && !isShutOut(c) && provides(c, a) {
			return true
		}
	}
	return false
}

func (in *GroupInput) isMember(c *version) bool {
	return c.Namespace == in.OperatorGroup.Namespace && !isCopied(c)
}

// labelsAreSettled reports whether just the watched namespaces carry the label.
func (in *GroupInput) labelsAreSettled(watched targets) bool {
	var room [128]byte
	key := append(append(room[:0], groupUIDPrefix...), in.OperatorGroup.UID...)
	for _, n := range in.Namespaces.Items {
		_, marked := n.Labels[string(key)]
		_, wanted := slices.BinarySearch(watched, n.Name)
		if marked != wanted && !isLeaving(n) {
			return false
		}
	}
	return true
}

func isLeaving(n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
}

// rolesAreSettled reports whether all ClusterRoles are there and right.
func (in *GroupInput) rolesAreSettled() bool {
	var room [64]uint64
	hashes := in.apiHashes(room[:0])
	var name [256]byte
	for _, suffix := range roleSuffixes {
		want := appendRoleName(name[:0], in.OperatorGroup, suffix)
		settled := false
		for _, role := range in.ClusterRoles.Items {
			if role.Name != string(want) {
				continue
			}
			if settled = isGroupRole(role, in.OperatorGroup) && aggregates(role.AggregationRule, hashes, suffix); !settled {
				return false
			}
		}
		if !settled {
			return false
		}
	}
	return true
}

// apiHashes appends the hashes of the group's APIs, sorted, each once.
func (in *GroupInput) apiHashes(to []uint64) []uint64 {
	for rest, more := groupAPIs(in.OperatorGroup), true; more; {
		var entry string
		entry, rest, more = strings.Cut(rest, ",")
		if a, ok := parseAPI(entry); ok {
			to = append(to, a.hash())
		}
	}
	for _, c := range in.ClusterServiceVersions.Items {
		if !in.isMember(c) {
			continue
		}
		for i := range providedCount(c) {
			to = append(to, provided(c, i).hash())
		}
	}
	slices.Sort(to)
	return slices.Compact(to)
}

func isGroupRole(role *rbacv1.ClusterRole, g *operatorsv1.OperatorGroup) bool {
	owner, ok := olmcore.OwnerOf(role.Labels)
	owner.UID = ""
	return ok && owner == groupOwner(g) && role.Labels[olmcore.LabelManaged] == "true"
}

// aggregates reports whether a rule selects just the roles of these APIs, in the
// order of aggregation.
func aggregates(rule *rbacv1.AggregationRule, hashes []uint64, suffix string) bool {
	if rule == nil || len(hashes) == 0 {
		return rule == nil && len(hashes) == 0
	}
	last := ""
	for i := range rule.ClusterRoleSelectors {
		s := &rule.ClusterRoleSelectors[i]
		if len(s.MatchExpressions) > 0 || len(s.MatchLabels) != 1 {
			return false
		}
		for key, value := range s.MatchLabels {
			digits, ok := strings.CutPrefix(key, aggregatePrefix)
			digits, also := strings.CutSuffix(digits, suffix)
			digits, dashed := strings.CutSuffix(digits, "-")
			hash, err := strconv.ParseUint(digits, 16, 64)
			_, found := slices.BinarySearch(hashes, hash)
			var room [16]byte
			spelt := string(strconv.AppendUint(room[:0], hash, 16)) == digits
			if !ok || !also || !dashed || err != nil || !found || !spelt || value != "true" || key <= last {
				return false
			}
			last = key
		}
	}
	return len(rule.ClusterRoleSelectors) == len(hashes)
}
