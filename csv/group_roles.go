// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	groupUIDPrefix  = "olm.operatorgroup.uid/"
	aggregatePrefix = "olm.opgroup.permissions/aggregate-to-"
)

// roleSuffixes are the ClusterRoles of a group: what its users may do with the
// APIs that its operators provide.
var roleSuffixes = [...]string{"admin", "edit", "view"}

// groupRoleName is the name that OLM gives, at most 253 characters long.
func groupRoleName(g *operatorsv1.OperatorGroup, suffix string) string {
	return string(appendRoleName(nil, g, suffix))
}

func appendRoleName(to []byte, g *operatorsv1.OperatorGroup, suffix string) []byte {
	var room [512]byte
	seed := append(append(append(room[:0], g.Namespace...), '/'), g.Name...)
	seed = append(append(seed, '/'), suffix...)
	var digits [38]byte
	sum := appendBase62(digits[:0], sha256.Sum224(seed))
	const head, limit = "olm.og.", 253
	name := g.Name[:min(len(g.Name), limit-len(head)-len("-.")-len(suffix)-len(sum))]
	to = append(append(to, head...), name...)
	to = append(append(to, '.'), suffix...)
	return append(append(to, '-'), sum...)
}

// appendBase62 writes a number, most significant byte first, as big.Int.Text(62)
// does, without allocating.
func appendBase62(to []byte, number [sha256.Size224]byte) []byte {
	const symbols = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var digits [38]byte
	at := len(digits)
	for more := true; more; {
		rest := uint32(0)
		more = false
		for i, b := range number {
			rest = rest<<8 | uint32(b)
			number[i] = byte(rest / 62)
			rest %= 62
			more = more || number[i] != 0
		}
		at--
		digits[at] = symbols[rest]
	}
	return append(to, digits[at:]...)
}

func groupOwner(g *operatorsv1.OperatorGroup) olmcore.Owner {
	return olmcore.Owner{Kind: operatorsv1.OperatorGroupKind, Namespace: g.Namespace, Name: g.Name}
}

// members are the original CSVs of the group's namespace.
func (in *GroupInput) members() []*version {
	return slices.DeleteFunc(slices.Clone(in.ClusterServiceVersions.Items), func(c *version) bool { return !in.isMember(c) })
}

// roles brings the aggregated ClusterRoles about. They select by label the roles
// that exist for each API.
func (in *GroupInput) roles() []olmcore.Action {
	if !in.ClusterRoles.Complete || !in.ClusterServiceVersions.Complete || in.rolesAreSettled() {
		return nil
	}
	g := in.OperatorGroup
	apis := parseAPIs(groupAPIs(g))
	for _, c := range in.members() {
		apis = append(apis, providedAPIs(c)...)
	}
	var actions []olmcore.Action
	for _, suffix := range roleSuffixes {
		want := &rbacv1.ClusterRole{
			TypeMeta:        metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta:      metav1.ObjectMeta{Name: groupRoleName(g, suffix), Labels: groupOwner(g).Labels()},
			AggregationRule: aggregation(apis, suffix),
		}
		want.Labels[olmcore.LabelManaged] = "true"
		i := indexNamed(in.ClusterRoles.Items, "", want.Name)
		if i < 0 {
			actions = append(actions, olmcore.CreateOf(want, olmcore.Cause{
				Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Name + " has no role for " + suffix,
			}))
			continue
		}
		live := in.ClusterRoles.Items[i]
		labels, relabelled := olmcore.MergeLabels(live.Labels, want.Labels)
		if live.DeletionTimestamp != nil || !relabelled && sameAggregation(live.AggregationRule, want.AggregationRule) {
			continue
		}
		after := live.DeepCopy()
		after.Labels, after.AggregationRule = labels, want.AggregationRule
		actions = append(actions, olmcore.UpdateOf(live, after, olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "the role does not follow what the operators of OperatorGroup " + g.Name + " provide",
		}))
	}
	return actions
}

func aggregation(apis []api, suffix string) *rbacv1.AggregationRule {
	var keys []string
	for _, a := range apis {
		keys = append(keys, aggregatePrefix+strconv.FormatUint(a.hash(), 16)+"-"+suffix)
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	rule := &rbacv1.AggregationRule{}
	for _, key := range slices.Compact(keys) {
		rule.ClusterRoleSelectors = append(rule.ClusterRoleSelectors, metav1.LabelSelector{MatchLabels: map[string]string{key: "true"}})
	}
	return rule
}

func sameAggregation(a, b *rbacv1.AggregationRule) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.ClusterRoleSelectors, b.ClusterRoleSelectors, func(x, y metav1.LabelSelector) bool {
		return len(x.MatchExpressions) == 0 && len(x.MatchLabels) == 1 && len(y.MatchLabels) == 1 && sameLabels(x.MatchLabels, y.MatchLabels)
	})
}

func sameLabels(a, b map[string]string) bool {
	for key, value := range a {
		if have, ok := b[key]; !ok || have != value {
			return false
		}
	}
	return len(a) == len(b)
}

// namespaceLabels marks the namespaces that the group's status lists with its
// UID, so that webhooks can select them, and takes the mark off others. A group
// that watches all needs none.
func (in *GroupInput) namespaceLabels() []olmcore.Action {
	g := in.OperatorGroup
	watched, computed := groupTargets(g)
	if !in.Namespaces.Complete || !computed || g.UID == "" || in.labelsAreSettled(watched) {
		return nil
	}
	key := groupUIDPrefix + string(g.UID)
	var actions []olmcore.Action
	items := slices.SortedFunc(slices.Values(in.Namespaces.Items), func(a, b *corev1.Namespace) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	for i, n := range items {
		if i > 0 && items[i-1].Name == n.Name {
			continue
		}
		_, marked := n.Labels[key]
		wanted := !watched.all() && watched.contains(n.Name)
		if marked == wanted || isLeaving(n) {
			continue
		}
		after := n.DeepCopy()
		if after.Labels == nil {
			after.Labels = map[string]string{}
		}
		after.Labels[key] = ""
		why := "OperatorGroup " + g.Namespace + "/" + g.Name + " watches it"
		if !wanted {
			delete(after.Labels, key)
			why = "OperatorGroup " + g.Namespace + "/" + g.Name + " does not watch it any more"
		}
		actions = append(actions, olmcore.UpdateOf(n, after, olmcore.Cause{Reason: ReasonGroupChanged, Message: why}))
	}
	return actions
}

// pruned takes from the annotation what no CSV of the namespace provides; nil
// when nothing is to be taken. While a CSV is about to add an API it waits.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, pruneProvidedAPIs.
// Differs: CSVs whose operator was stopped for its APIs provide nothing.
func (in *GroupInput) pruned() olmcore.Action {
	g := in.OperatorGroup
	if !in.ClusterServiceVersions.Complete || g.Spec.StaticProvidedAPIs || in.apisAreProvided() {
		return nil
	}
	listed := parseAPIs(groupAPIs(g))
	named, provided := map[api]bool{}, map[api]bool{}
	for _, a := range listed {
		named[a] = true
	}
	for _, c := range slices.DeleteFunc(in.members(), isShutOut) {
		early := c.Status.Phase == v1alpha1.CSVPhaseNone || c.Status.Phase == v1alpha1.CSVPhasePending
		for _, a := range providedAPIs(c) {
			if early && c.DeletionTimestamp == nil && !named[a] {
				return nil
			}
			provided[a] = true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(listed), func(a api) bool { return !provided[a] })
	if len(kept) == len(listed) {
		return nil
	}
	return listAPIs(g, kept)
}

// isShutOut reports whether a CSV was Failed, and its operator stopped, because of
// the APIs that it provides. One that is Failed because of its OperatorGroup in
// another way keeps its APIs: its operator may run on.
func isShutOut(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && (c.Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
		c.Status.Reason == v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// isGroupRoleName reports whether a name can be that of a group's ClusterRole.
func isGroupRoleName(name string) bool { return strings.HasPrefix(name, "olm.og.") }
