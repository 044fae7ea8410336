// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// unrelatedKinds contains the watched kinds without a row in the table of relations, and why they need none.
var unrelatedKinds = map[string]string{
	"InstallPlan": "only a cleanup and package permissions read InstallPlans, and a cleanup is retried",
	"OLMConfig":   "only package copies reads OLMConfigs",
	"Pod":         "Pods are read only while an APIService is not available, and the CSV is then reconciled every ten seconds",
}

// TestEveryWatchedKindHasARelation names the kinds that CSVs depend on and that the table of relations lacks.
func TestEveryWatchedKindHasARelation(t *testing.T) {
	watched := map[string]bool{}
	for _, k := range olmcore.Kinds() {
		if !slices.Contains(k.ReadBy, "csv") || k.Watch == olmcore.WatchNever {
			continue
		}
		kind := k.GroupVersionKind
		watched[kind.Kind] = true
		_, isExcused := unrelatedKinds[kind.Kind]
		hasRow := slices.ContainsFunc(relations, func(row relation) bool { return row.kind == kind })
		require.NotEqual(t, hasRow, isExcused, "%s: relations needs a row, or unrelatedKinds says why it needs none", kind.Kind)
	}
	for kind := range unrelatedKinds {
		require.True(t, watched[kind], "%s is not watched", kind)
	}
}

// TestEveryRelationHoldsInBothDirections names the rows with terms for objects that no CSV has.
func TestEveryRelationHoldsInBothDirections(t *testing.T) {
	described := &version{}
	described.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cools.example.com", Version: "v1", Kind: "Cool"}}
	described.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
	everywhere := []string{"ClusterServiceVersion", "namespace", anyCSV.Of}
	for _, row := range relations {
		object := olmcore.NewObject(row.kind)
		object.SetNamespace("ns")
		object.SetName("serving-service-cert")
		object.SetAnnotations(map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: "Cool.v1.example.com"})
		var has []string
		add := func(term olmcore.Term) { has = append(has, term.Of) }
		if row.needed != nil {
			row.needed(described, add)
		}
		for _, term := range row.changed(nil, object) {
			require.True(t, slices.Contains(everywhere, term.Of) || slices.Contains(has, term.Of),
				"%s has a term for %q, and no CSV needs one", row.kind.Kind, term.Of)
		}
	}
}

// TestChangedRulesConcernTheRulesThatTheyMayGrant compares the terms of rules with a comparison of their API groups.
func TestChangedRulesConcernTheRulesThatTheyMayGrant(t *testing.T) {
	groups := [][]string{nil, {""}, {"apps"}, {"", "apps"}, {"*"}, {"*", "batch"}}
	rules := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}}}
	for _, list := range groups {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: list})
	}
	for _, needed := range rules {
		for _, granted := range rules {
			isURL := len(needed.NonResourceURLs) > 0
			want := isURL == (len(granted.NonResourceURLs) > 0)
			if !isURL {
				want = slices.Contains(granted.APIGroups, "*") || slices.ContainsFunc(granted.APIGroups, func(group string) bool {
					return slices.Contains(needed.APIGroups, group) || group == "" && len(needed.APIGroups) == 0
				})
			}
			terms, got := rbac.GrantedBy([]rbacv1.PolicyRule{granted}).Terms(), false
			rbac.AddTerms(needed, func(term olmcore.Term) { got = got || slices.Contains(terms, term) })
			require.Equal(t, want, got, "%v needed, %v granted", needed, granted)
		}
	}
}
