// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

func rule(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
	r := allowing(verbs, resources)
	r.APIGroups, r.ResourceNames = []string{group}, names
	return r
}

func TestCompareReturnsAddedAndRemovedGrants(t *testing.T) {
	type (
		objects = []olmcore.Object
		marks   = []permissions.Escalation
	)
	robot := func(scope string, r rbacv1.PolicyRule, why ...permissions.Escalation) permissions.Grant {
		return permissions.Grant{Subject: "ServiceAccount ops/robot", Scope: scope, Rule: r, Escalation: append(marks{}, why...)}
	}
	none := []permissions.Grant{}
	for name, tt := range map[string]struct {
		before, after  objects
		added, removed []permissions.Grant
	}{
		"no change":                   {nil, nil, none, none},
		"the same under another name": {gives("ops", "v1", rule("", "pods", "get")), gives("ops", "v2", rule("", "pods", "get")), none, none},
		"one verb more, one less": {
			gives("ops", "v1", rule("", "pods", "get,list")), gives("ops", "v2", rule("", "pods", "get,watch,delete")),
			[]permissions.Grant{robot("namespace ops", rule("", "pods", "delete,watch"))}, []permissions.Grant{robot("namespace ops", rule("", "pods", "list"))},
		},
		"from a namespace to the cluster": {
			gives("ops", "v1", rule("apps", "deployments", "get")), gives("", "v2", rule("apps", "deployments", "get")),
			[]permissions.Grant{robot("cluster", rule("apps", "deployments", "get"), permissions.ClusterWide)}, none,
		},
		"secrets": {nil, gives("ops", "v1", rule("", "configmaps,secrets", "get")), []permissions.Grant{
			robot("namespace ops", rule("", "configmaps,secrets", "get"), permissions.Secrets)}, none},
		"an asterisk has all escalations": {nil, gives("ops", "v1", rule("*", "*", "*")), []permissions.Grant{
			robot("namespace ops", rule("*", "*", "*"), permissions.Bind, permissions.Escalate, permissions.EveryGroup, permissions.EveryResource,
				permissions.EveryVerb, permissions.Impersonate, permissions.Secrets)}, none},
		"roles": {nil, gives("ops", "v1", rule("rbac.authorization.k8s.io", "clusterroles", "bind,escalate,get")), []permissions.Grant{
			robot("namespace ops", rule("rbac.authorization.k8s.io", "clusterroles", "bind,escalate,get"), permissions.Bind, permissions.Escalate)}, none},
		"every verb on Pods": {nil, gives("ops", "v1", rule("", "pods", "*")), []permissions.Grant{
			robot("namespace ops", rule("", "pods", "*"), permissions.EveryVerb)}, none},
		"users": {nil, gives("", "v1", rule("", "users", "impersonate")), []permissions.Grant{
			robot("cluster", rule("", "users", "impersonate"), permissions.ClusterWide, permissions.Impersonate)}, none},
		"tokens of ServiceAccounts": {nil, gives("ops", "v1", rule("", "serviceaccounts/token", "create")), []permissions.Grant{
			robot("namespace ops", rule("", "serviceaccounts/token", "create"), permissions.Impersonate)}, none},
		"a subresource of all": {nil, gives("ops", "v1", rule("apps", "*/scale", "patch")), []permissions.Grant{
			robot("namespace ops", rule("apps", "*/scale", "patch"), permissions.EveryResource)}, none},
		"rules aggregated through another role": {
			append(gives("", "v1")[1:], collects("v1", "a"), collects("b", "b", "a")),
			append(gives("", "v1")[1:], collects("v1", "a"), collects("b", "b", "a"), labelled("c", "b", rule("", "secrets", "get"))),
			[]permissions.Grant{robot("cluster", rule("", "secrets", "get"), permissions.ClusterWide, permissions.Secrets)}, none,
		},
		"a name and all names": {nil, gives("ops", "v1", rule("", "pods", "get"), rule("", "pods", "delete", "b", "a")), []permissions.Grant{
			robot("namespace ops", rule("", "pods", "delete", "a", "b")), robot("namespace ops", rule("", "pods", "get"))}, none},
		"a role that was not read": {nil, gives("ops", "view")[1:], []permissions.Grant{
			{Subject: "ServiceAccount ops/robot", Scope: "namespace ops", Role: "Role view", Escalation: marks{permissions.UnknownRole}}}, none},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(permissions.Difference{Added: tt.added, Removed: tt.removed}, permissions.Compare(tt.before, tt.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCompareOfLargeRulesIsBounded checks that rules with too many combinations are not compared, and are returned as
// added.
func TestCompareOfLargeRulesIsBounded(t *testing.T) {
	var many []string
	var lots []rbacv1.PolicyRule
	for i := range 5000 {
		many = append(many, fmt.Sprint("n", i))
		lots = append(lots, rule("", many[i], "get"))
	}
	d := permissions.Compare(gives("ops", "v1", lots...), gives("ops", "v2", rule("", "n0", "get"), rbacv1.PolicyRule{Verbs: many[:140], APIGroups: many[:140], Resources: []string{"pods"}}))
	require.Len(t, d.Added, 2)
	require.Equal(t, rule("", "n0", "get"), d.Added[0].Rule)
}

// collects returns a ClusterRole that aggregates those with a label, and that has labels itself.
func collects(name, label string, own ...string) *rbacv1.ClusterRole {
	r := labelled(name, "")
	for _, l := range own {
		r.Labels[l] = "true"
	}
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}}
	return r
}

func labelled(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}, Rules: rules}
}

// TestCompareLaws checks for random roles that before together with the added grants covers after, that before contains
// no added grant, and that the opposite direction swaps the two lists.
func TestCompareLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
			list := func(label string, of ...string) []string {
				return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 3, rapid.ID[string]).Draw(t, label)
			}
			r := rbacv1.PolicyRule{Verbs: list("verbs", "get", "list", "watch", "*"), APIGroups: list("groups", "", "apps", "*"), Resources: list("resources", "pods", "pods/log", "secrets")}
			if rapid.Bool().Draw(t, "named") {
				r.ResourceNames = list("names", "a", "b", "c")
			}
			return r
		})
		before, after := rapid.SliceOfN(some, 0, 4).Draw(t, "before"), rapid.SliceOfN(some, 0, 4).Draw(t, "after")
		d := permissions.Compare(gives("ops", "v1", before...), gives("ops", "v2", after...))
		have := before
		for _, g := range d.Added {
			covered, _ := validation.Covers(before, []rbacv1.PolicyRule{g.Rule})
			require.False(t, covered, "%v was there", g)
			_, rest := validation.Covers(before, []rbacv1.PolicyRule{g.Rule})
			require.Len(t, rest, len(validation.BreakdownRule(g.Rule)), "a part of %v was there", g)
			have = append(have, g.Rule)
		}
		covered, lacking := validation.Covers(have, after)
		require.True(t, covered, "not named: %v", lacking)
		mirrored := permissions.Compare(gives("ops", "v2", after...), gives("ops", "v1", before...))
		require.Equal(t, permissions.Difference{Added: d.Removed, Removed: d.Added}, mirrored)
		require.Equal(t, len(d.Added) > 0, len(permissions.Gained(gives("ops", "v1", before...), gives("ops", "v2", after...))) > 0)
	})
}
